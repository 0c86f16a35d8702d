"""Why a batch may not enter the log, or not here and now."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.model import BrokerError, ErrorCode


class LookNeeded(Exception):
    """The records have to be looked at, which takes too long here: ``admit`` again, off the loop or in a process."""


class BatchRefused(BrokerError):
    """The whole batch is refused; nothing of it was stored.

    ``message`` and ``record_errors`` (index in the batch, text) go into the Produce response as Kafka has them: an
    empty message is null there. ``str(error)`` is the reason for people and logs.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str = "",
        record_errors: Sequence[tuple[int, str]] = (),
        *,
        reason: str = "",
    ) -> None:
        super().__init__(code, message)
        self.record_errors = list(record_errors)
        self.reason = reason or message

    def __str__(self) -> str:
        return self.reason
