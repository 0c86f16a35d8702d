"""What goes wrong with a broker under test, in words for the person who reads the test's report."""

from __future__ import annotations


class BrokerFailed(Exception):
    """The broker did not do what the test asked of it; the message ends with what the broker said."""


class StartFailed(BrokerFailed):
    """The process ended, or the deadline passed, before the broker was ready."""


class TopicNotCreated(BrokerFailed):
    """The broker refused the topic; ``code`` is Kafka's error code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
