"""The words of the domain. No I/O, no imports from the rest of the project."""

from headpond.model.errors import (
    BrokerError,
    ErrorCode,
    NotLeader,
    OffsetOutOfRange,
    OutcomeUnknown,
    StorageFailed,
    shortened,
)
from headpond.model.invariant import InvariantBroken, invariant
from headpond.model.partition import NO_LEADER, ZERO_TOPIC_ID, TopicId, TopicPartition

__all__ = [
    "NO_LEADER",
    "ZERO_TOPIC_ID",
    "BrokerError",
    "ErrorCode",
    "InvariantBroken",
    "NotLeader",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "StorageFailed",
    "TopicId",
    "TopicPartition",
    "invariant",
    "shortened",
]
