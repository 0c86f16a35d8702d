"""What clients asked and were told, and what the broker holds in the end: all that checkers judge.

An operation ends ``ok``, ``failed`` (it certainly has no effect) or ``unknown`` (it may have taken effect, or may yet).
One that is still open at the end is unknown too. Times are the simulation's own, the same for all hosts.

Values are unique over a whole run, so that a record that is read can be traced to the one send that made it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Outcome = Literal["ok", "failed", "unknown"]
Isolation = Literal["read_uncommitted", "read_committed"]


class Place(NamedTuple):
    """A partition of one topic in one of its lives: a topic that was deleted and made anew has another id."""

    topic: str
    topic_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True, kw_only=True)
class Operation:
    process: str
    """The client that asked. A client that was started again, or a producer that asked for a new id, has a new name."""
    invoked_s: float
    ended_s: float | None = None
    outcome: Outcome = "unknown"
    error: int = 0
    """The protocol's error code, where there was one."""


@dataclass(slots=True, kw_only=True)
class Send(Operation):
    """One record. ``order`` counts the records of a process for a partition, in the order of their sends."""

    topic: str
    partition: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    order: int = 0
    acks: int = -1
    is_idempotent: bool = False
    transaction: str | None = None
    """The name of the transaction, unique over the run."""
    topic_id: str | None = None
    """None where the client did not say which life of the topic it means."""
    offset: int = -1
    """Where it was told to be, if ok; -1 with acks=0."""
    producer_id: int = -1
    producer_epoch: int = -1
    """With which it was first sent; -1: not an idempotent producer, or not told."""


class Seen(NamedTuple):
    """One record as a reader got it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True, kw_only=True)
class Poll(Operation):
    """What one fetch of one partition brought, in the order of the answers."""

    place: Place
    isolation: Isolation
    position: int
    """The offset that was asked for."""
    session: int = 0
    """Another number after each seek or new assignment: positions go on only within one."""
    next_position: int = -1
    records: tuple[Seen, ...] = ()
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1


@dataclass(slots=True, kw_only=True)
class Search(Operation):
    """ListOffsets by timestamp: the first offset whose record is as new or newer; -1: there is none."""

    place: Place
    timestamp_ms: int
    offset: int = -1
    found_timestamp_ms: int = -1
    isolation: Isolation = "read_uncommitted"


@dataclass(slots=True, kw_only=True)
class CommitOffset(Operation):
    """An offset commit, plain or in a transaction. ``epoch``: the generation or member epoch; -1: no member."""

    group: str
    topic: str
    partition: int
    offset: int
    member: str = ""
    epoch: int = -1
    transaction: str | None = None


@dataclass(slots=True, kw_only=True)
class FetchOffset(Operation):
    """OffsetFetch; -1: no committed offset."""

    group: str
    topic: str
    partition: int
    offset: int = -1
    requires_stable: bool = False


@dataclass(slots=True, kw_only=True)
class DeleteOffsets(Operation):
    """The group, or its offsets for a topic, deleted; an empty topic means the whole group."""

    group: str
    topic: str = ""


@dataclass(slots=True, kw_only=True)
class Joined(Operation):
    """A member learned its part of a generation. ``invoked_s``: when it heard. ``leader``: of a classic generation, as
    the join answer named it; a static one by its instance id."""

    group: str
    member: str
    epoch: int
    protocol: Literal["classic", "consumer"]
    assignment: tuple[tuple[str, int], ...] = ()
    leader: str = ""
    instance: str = ""
    """Of a static member: its group.instance.id, under which another member id may take its place."""


@dataclass(slots=True, kw_only=True)
class Ownership:
    """A member believed that it owns a partition, from one moment to another; None: to the end of the run."""

    group: str
    member: str
    topic: str
    partition: int
    from_s: float
    to_s: float | None = None
    instance: str = ""
    """Of a static member: its group.instance.id."""


@dataclass(slots=True, kw_only=True)
class EndTransaction(Operation):
    """The end of a transaction: committed or aborted. An aborted one that was never asked for has no operation."""

    transaction: str
    transactional_id: str
    is_commit: bool
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class Fenced(Operation):
    """InitProducerId: from its answer on, older epochs of this id are fenced."""

    transactional_id: str
    producer_id: int = -1
    producer_epoch: int = -1


AdminKind = Literal["create", "delete", "partitions", "config", "delete-records"]


@dataclass(slots=True, kw_only=True)
class AdminChange(Operation):
    kind: AdminKind
    topic: str
    topic_id: str = ""
    """Of a creation that was acknowledged."""
    partitions: int = 0
    configs: tuple[tuple[str, str], ...] = ()
    before_offset: int = -1
    """delete-records: of ``partition``."""
    partition: int = -1
    low_watermark: int = -1
    """delete-records: the log start as it was told."""


@dataclass(slots=True, kw_only=True)
class TopicsSeen(Operation):
    """A Metadata answer: name -> (topic id, number of partitions)."""

    topics: dict[str, tuple[str, int]] = field(default_factory=dict)


class Batch(NamedTuple):
    """A batch as it lies in a log at the end."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    control: Literal["", "commit", "abort"]
    records: tuple[Seen, ...]


@dataclass(slots=True, kw_only=True)
class FinalLog:
    """One partition at the end, when everything has healed: read by a client, and found on the disk."""

    place: Place
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    fetched: tuple[Batch, ...]
    """By a read_uncommitted fetch of everything, control batches included."""
    committed: tuple[Seen, ...]
    """By a read_committed fetch of everything."""
    on_disk: tuple[Batch, ...]
    """From the log files, found by walking them byte by byte, whatever the indexes say."""
    log_end_offset: int = -1
    configs: dict[str, str] = field(default_factory=dict)
    """The topic's own: cleanup.policy, retention.ms, ..."""


class IndexEntry(NamedTuple):
    """One entry of an index file on disk. ``key`` is an offset (.index) or a timestamp (.timeindex)."""

    place: Place
    kind: Literal["index", "timeindex"]
    segment_base_offset: int
    key: int
    position: int
    """.index: a position in the log file. .timeindex: an offset."""


class BatchPosition(NamedTuple):
    """Where a batch lies in its segment's file."""

    place: Place
    segment_base_offset: int
    position: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int


class OffsetsSeen(NamedTuple):
    """The four offsets of a partition, looked at together from inside the broker at some moment."""

    at_s: float
    place: Place
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    life: int = 0
    """Of the broker: grows with each start."""
    wall_ms: int = -1
    """The broker's own clock, by which retention counts."""


class ImageSeen(NamedTuple):
    """A broker's metadata image after a step: its revision and a digest of its rows; ``expected`` is the digest of the
    store's own history at that revision."""

    at_s: float
    host: str
    life: int
    revision: int
    digest: str
    expected: str


class Trouble(NamedTuple):
    """What must never happen: an exception that reached the loop or ended a task, a task that outlived its host's stop,
    an alarm in the log."""

    at_s: float
    host: str
    what: str


class GroupState(NamedTuple):
    """A group as its coordinator tells it at the end: before and after a restart."""

    group: str
    state: str
    members: tuple[str, ...]
    offsets: tuple[tuple[str, int, int], ...]  # topic, partition, offset


@dataclass(slots=True)
class History:
    """One run."""

    operations: list[Operation] = field(default_factory=list)
    """In the order in which they were invoked."""
    ownerships: list[Ownership] = field(default_factory=list)
    final_logs: dict[Place, FinalLog] = field(default_factory=dict)
    index_entries: list[IndexEntry] = field(default_factory=list)
    """What the index files have in the end, without entries that rotted and were not read since."""
    rotten_entries: set[tuple[str, bytes]] = field(default_factory=set)
    """Path and content of index entries in which a bit was flipped."""
    batch_positions: list[BatchPosition] = field(default_factory=list)
    offsets_seen: list[OffsetsSeen] = field(default_factory=list)
    images_seen: list[ImageSeen] = field(default_factory=list)
    groups_before_restart: dict[str, GroupState] = field(default_factory=dict)
    groups_after_restart: dict[str, GroupState] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    unconverged: list[str] = field(default_factory=list)
    """What had not come about when the time for healing was over, in words."""
    healed_s: float = 0.0
    """When the last fault ended: liveness is asked for from here on."""
    transactions_open_at_end: tuple[str, ...] = ()
    """Transactional ids that the coordinator lists as ongoing or ending when all should be over."""
