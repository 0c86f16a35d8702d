"""What a client's call can raise: always a ``ClientError`` with one of Kafka's codes and a sentence for people.

Four of them say what became of the request, which decides whether it may be repeated:

    BrokerUnreachable   nothing was sent
    SecurityFailed      nothing was sent, and a repetition would not be either
    ConnectionLost      sent, perhaps carried out, nobody knows (``REQUEST_TIMED_OUT`` says the same)
    any other           the broker refused, or did a part and said which
"""

from __future__ import annotations

from headpond.model import ErrorCode

E = ErrorCode

STALE_METADATA = frozenset(
    {
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.BROKER_NOT_AVAILABLE,
        E.REPLICA_NOT_AVAILABLE,
        E.NETWORK_EXCEPTION,
        E.NOT_CONTROLLER,
        E.KAFKA_STORAGE_ERROR,
        E.LISTENER_NOT_FOUND,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
    }
)
"""Answers after which we ask anew who leads."""

RETRIABLE = STALE_METADATA | {
    E.CORRUPT_MESSAGE,
    E.REQUEST_TIMED_OUT,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    E.CONCURRENT_TRANSACTIONS,
    E.FETCH_SESSION_ID_NOT_FOUND,
    E.INVALID_FETCH_SESSION_EPOCH,
    E.OFFSET_NOT_AVAILABLE,
    E.PREFERRED_LEADER_NOT_AVAILABLE,
    E.UNSTABLE_OFFSET_COMMIT,
    E.THROTTLING_QUOTA_EXCEEDED,
}
"""Kafka's retriable errors: the same request may succeed a moment later."""

OUTCOME_UNKNOWN = frozenset({E.REQUEST_TIMED_OUT, E.NETWORK_EXCEPTION, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""What was asked may have been done, or may still be: not a failure, and repeated only by who can tell duplicates."""


class ClientError(Exception):
    """A broker's refusal, or why there is no answer."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        self.code = code
        self.message = message or code.name
        super().__init__(self.message)

    @property
    def is_retriable(self) -> bool:
        return self.code in RETRIABLE

    @property
    def is_outcome_unknown(self) -> bool:
        return self.code in OUTCOME_UNKNOWN


class BrokerUnreachable(ClientError):
    """No connection could be made; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)


class ConnectionLost(ClientError):
    """The connection ended before the answer came: the request may have been carried out."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class RequestTimedOut(ClientError):
    """No answer in time: the request may have been carried out, or may still be."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class SecurityFailed(ClientError):
    """TLS or SASL did not come about: nothing was sent, and trying again is of no use before somebody changes a
    setting. The message holds no secret."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR) -> None:
        super().__init__(code, message)


class RefusedInCompany(ClientError):
    """A record that was not written because the broker refused another one of its batch: that one's error says why."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)


class ClientClosed(ClientError):
    """Our own side has ended: nothing was sent, and trying again is of no use."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "the client is closed")


def error_code(number: int) -> ErrorCode:
    """A code off the wire; newer brokers may know more than we do."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def raise_for(number: int, what: str, message: str | None = None) -> None:
    """Nothing for code 0; else a ``ClientError`` that begins with ``what``."""
    if number != 0:
        raise refusal(number, what, message)


def refusal(number: int, what: str, message: str | None = None) -> ClientError:
    code = error_code(number)
    named = code.name if code is not ErrorCode.UNKNOWN_SERVER_ERROR else f"{code.name} ({number})"
    return ClientError(code, f"{what}: {message or named}")
