"""Where a query begins or ends, as its options say it: pure values. ``cluster.py`` turns them into offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headpond.client.offsets import EARLIEST, LATEST
from headpond.model import TopicPartition
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption

NoMatch = Literal["error", "latest"]
"""What a partition does that has no record as late as the starting timestamp."""


@dataclass(frozen=True, slots=True)
class Everywhere:
    """``EARLIEST`` or ``LATEST`` of every partition."""

    spec: int
    option: str = names.STARTING_OFFSETS


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset, ``EARLIEST`` or ``LATEST`` for each partition; all of them must be named."""

    offsets: Mapping[TopicPartition, int]
    option: str = names.STARTING_OFFSETS


@dataclass(frozen=True, slots=True)
class AtTimestamps:
    """The first record that is as late as a timestamp: one for all partitions, or one for each."""

    option: str
    everywhere_ms: int | None = None
    by_partition_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    no_match: NoMatch = "error"


Position = Everywhere | AtOffsets | AtTimestamps


def specs_of(position: Position, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """What ListOffsets is to be asked for each partition: ``EARLIEST``, ``LATEST``, a timestamp; or, for ``AtOffsets``,
    the offset itself. ``WrongOption`` where the position does not name exactly these partitions."""
    if isinstance(position, Everywhere):
        return dict.fromkeys(sorted(partitions), position.spec)
    if isinstance(position, AtTimestamps) and position.everywhere_ms is not None:
        return dict.fromkeys(sorted(partitions), position.everywhere_ms)
    named = position.offsets if isinstance(position, AtOffsets) else position.by_partition_ms
    if set(named) != partitions:
        raise WrongOption(_mismatch(position.option, set(named), partitions))
    return dict(sorted(named.items()))


def _mismatch(option: str, named: set[TopicPartition], partitions: set[TopicPartition]) -> str:
    parts = []
    if missing := sorted(partitions - named):
        parts.append(f"it leaves out {', '.join(map(str, missing))}")
    if extra := sorted(named - partitions):
        parts.append(f"{', '.join(map(str, extra))} is not among what is read")
    hint = " (-2 is earliest, -1 is latest)" if option in (names.STARTING_OFFSETS, names.ENDING_OFFSETS) else ""
    return f"{option} must name every partition that is read, and no other{hint}: {'; '.join(parts)}"


def is_special(spec: int) -> bool:
    return spec in (EARLIEST, LATEST)
