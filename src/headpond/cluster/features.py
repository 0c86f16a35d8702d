"""Features: what this version of the program can do, and what a new cluster turns on.

A feature is finalized, that is promised to clients, when its level stands in the metadata store. Clients choose
protocols by it (transactions v2 only where ``transaction.version`` is 2), so nothing stands here before it works.

In Kafka a level only rises when somebody asks for it (UpdateFeatures), because brokers of an older version may be
around. Here a start finalizes what has no level yet, as long as no other broker is registered: whoever runs one broker
need not know what features are. A level that is there, 0 included, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from headpond.model import BrokerError, ErrorCode

METADATA_VERSION = "metadata.version"

SUPPORTED: dict[str, tuple[int, int]] = {
    "group.version": (0, 1),  # 1: the consumer protocol of KIP-848
    METADATA_VERSION: (7, 30),  # what Kafka 4.3 says of itself; tools show it, no client decides anything by it
    "transaction.version": (0, 2),  # 1: flexible records; 2: an epoch for every transaction (KIP-890)
}
"""Lowest and highest level that this program understands."""

OF_A_NEW_CLUSTER: dict[str, int] = {"group.version": 1, METADATA_VERSION: 30, "transaction.version": 2}


class ChangeKind(IntEnum):
    """As UpdateFeatures says it. A downgrade is safe when nothing gets lost."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureChange(NamedTuple):
    name: str
    level: int
    kind: int


def changed(current: Mapping[str, int], changes: Iterable[FeatureChange], broker_id: int) -> dict[str, int]:
    """The levels that become others. Of several changes of one feature the last counts. Raises ``BrokerError``: all or
    nothing, and the first that is wrong is told."""
    last = {each.name: each for each in changes}
    for each in last.values():
        problem = _problem(current.get(each.name, 0), each, broker_id)
        if problem is not None:
            raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION, problem)
    return {each.name: each.level for each in last.values() if each.level != current.get(each.name, 0)}


def _problem(current: int, change: FeatureChange, broker_id: int) -> str | None:
    """Kafka's words, in its order."""
    why = _why_not(current, change, broker_id)
    if why is not None:
        return f"Invalid update version {change.level} for feature {change.name}. {why}"
    if change.name == METADATA_VERSION and change.level < current:
        why = _NO_WAY_BACK[ChangeKind(change.kind)]
        return f"Unsupported metadata.version downgrade from {current} to {change.level}. {why}"
    return None


def _why_not(current: int, change: FeatureChange, broker_id: int) -> str | None:
    if change.kind not in list(ChangeKind):
        return "The controller does not support the given upgrade type."
    if change.level < 0:
        return "A feature version cannot be less than 0."
    if change.name not in SUPPORTED:
        return f"Local controller {broker_id} does not support this feature."
    low, high = SUPPORTED[change.name]
    if not low <= change.level <= high:
        return f"Local controller {broker_id} only supports versions {low}-{high}"
    if change.level < current and change.kind == ChangeKind.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if change.level > current and change.kind != ChangeKind.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


_NO_WAY_BACK = {
    ChangeKind.SAFE_DOWNGRADE: "Refusing to perform the requested downgrade because it might delete metadata "
    "information.",
    ChangeKind.UNSAFE_DOWNGRADE: "Unsafe metadata downgrade is not supported in this version.",
}
