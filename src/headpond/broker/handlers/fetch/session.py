"""One fetch session: what was asked of its partitions, what was told of them, and which may have something to tell.

A request of a session costs what has changed since the last one, not what the session holds. Each partition is either
*changed*, and is read by the next request, or *stands* at its replica and has nothing to tell until that has news:

      added, named, told of            a fetch has read it: there is nothing to tell
     -----------------------> changed --------------------------------------------> stands at its replica
                                 ^                                                          |
                                 '------------------------- news ---------------------------'

News take a partition away from its replica, unless a fetch waits for more of them: a session that nobody fetches for
hears of each partition once. So appends cost no more than the fetches that have read what was there before.

What there is to tell depends on who asks (``View``). Until all partitions have been read with the same eyes, all of
them are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypeVar

from headpond.broker.replicas.replicas import Replica

if TYPE_CHECKING:
    from headpond.broker.requests.context import Principal

EPOCH_MAX = 0x7FFFFFFF
FEW_PARTITIONS = 500
"""So many are put in order, or let go, at once."""

Key = tuple[str | bytes, int]
"""A topic's name, or from v13 on its id, and the partition's index."""
View = tuple[bool, "Principal", str, int]
"""Whether the reader sees decided transactions only, who and where it is, and what is allowed (a generation)."""
NOT_HELD = -1

_place_of = attrgetter("place")


class FetchPartition:
    """What a client wants of one partition, and what it was last told about it. Of a session, it hears of the
    partition's news."""

    __slots__ = (
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "leader_epoch",
        "max_bytes",
        "place",
        "replica",
        "session",
        "told_high_watermark",
        "told_log_start",
        "was_found",
    )

    def __init__(self, key: Key, fetch_offset: int, max_bytes: int, leader_epoch: int, last_fetched_epoch: int) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.told_high_watermark = -1
        self.told_log_start = -1
        self.was_found = False  # its topic has been there
        self.place = 0  # in the session's order
        self.replica: Replica | None = None  # where it stands
        self.session: FetchSession | None = None  # of one that stands

    def update(self, asked: FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.max_bytes
        self.leader_epoch = asked.leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def stand_at(self, replica: Replica, session: FetchSession) -> None:
        if self.replica is not replica:
            self.leave()
            self.replica, self.session = replica, session
            replica.watchers[self] = None
            replica.partition.hurry()  # what comes later is hurried as it is appended

    def leave(self) -> None:
        replica = self.replica
        if replica is not None:
            self.replica = self.session = None
            replica.watchers.pop(self, None)

    # --- called by the replica, perhaps when it has left already

    def note(self, replica: Replica) -> None:
        if self.replica is replica and self.session is not None:
            self.session.note(self)

    def news(self, replica: Replica) -> None:
        if self.replica is replica and self.session is not None:
            self.session.hear(self, replica)


class Outcome(Protocol):
    """What sessions need to know of a partition's result."""

    wanted: FetchPartition
    error_code: int
    high_watermark: int
    log_start_offset: int

    @property
    def has_news(self) -> bool:
        """Records, or a diverging epoch, or an error: to be sent whatever the client was told before."""


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


class Waiting(Protocol):
    """A fetch of the session that wants to hear of news: it is parked, or reads many partitions in slices."""

    def hear(self, wanted: FetchPartition, replica: Replica) -> None: ...


def _nothing_to_let_go(session: FetchSession) -> None:
    pass


class FetchSession:
    __slots__ = (
        "by_topic_id",
        "changed",
        "created_s",
        "epoch",
        "id",
        "is_gone",
        "is_old",
        "next_place",
        "on_unused",
        "partitions",
        "size",
        "size_bytes",
        "used_s",
        "view",
        "waiting",
    )

    def __init__(self, id: int, partitions: dict[Key, FetchPartition], *, by_topic_id: bool, now_s: float) -> None:
        self.id = id
        self.by_topic_id = by_topic_id
        self.partitions = partitions  # in order: one that returned data goes to the end
        self.next_place = len(partitions)
        self.changed: dict[FetchPartition, None] = {}
        self.view: View | None = None  # whose eyes ``changed`` is for; None: all partitions have to be read
        self.waiting: list[Waiting] = []  # one, unless the client sends a request before the last one is answered
        self.size = self.size_bytes = 0  # counted by ``FetchSessions``
        self.is_old = False
        self.is_gone = False
        self.on_unused: Callable[[FetchSession], None] = _nothing_to_let_go  # it is gone, and no fetch waits any more
        self.epoch = 1
        self.created_s = self.used_s = now_s

    def bump_epoch(self) -> None:
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    # --- which partitions there are

    def add(self, asked: FetchPartition) -> bool:
        """What a request says of a partition. Whether it is a new one."""
        known = self.partitions.get(asked.key)
        if known is not None:
            known.update(asked)
            self.changed[known] = None
            return False
        self._put_last(asked)
        self.changed[asked] = None
        return True

    def forget(self, key: Key) -> bool:
        """Whether it was there."""
        partition = self.partitions.pop(key, None)
        if partition is None:
            return False
        partition.place = NOT_HELD
        partition.leave()
        self.changed.pop(partition, None)
        return True

    def _put_last(self, partition: FetchPartition) -> None:
        self.partitions[partition.key] = partition
        partition.place = self.next_place
        self.next_place += 1

    # --- what is to be read

    def due_count(self, view: View) -> int:
        return len(self.changed) if self.view == view else len(self.partitions)

    def due(self, view: View) -> list[FetchPartition]:
        """What is to be read, in the session's order. The reader says ``look_again`` or ``settle`` of each, and sets
        ``view`` when it has read them all."""
        if self.view != view:
            self.view = None
            return list(self.partitions.values())
        changed = self.changed
        if len(changed) <= FEW_PARTITIONS:
            return sorted(changed, key=_place_of)
        return [partition for partition in self.partitions.values() if partition in changed]

    def look_again(self, wanted: FetchPartition) -> None:
        """The next request reads it."""
        if wanted.place != NOT_HELD:
            self.changed[wanted] = None

    def settle(self, outcome: Outcome, replica: Replica) -> None:
        """It was read to its end: if that is what its client knows, it has nothing to tell before the replica has."""
        wanted = outcome.wanted
        if (
            outcome.high_watermark == wanted.told_high_watermark
            and outcome.log_start_offset == wanted.told_log_start
            and wanted.place != NOT_HELD
        ):
            changed = self.changed
            if wanted in changed:
                del changed[wanted]
                if not changed:
                    changed.clear()  # lets go of the room that it had for more
            wanted.stand_at(replica, self)

    # --- news of its partitions

    def note(self, partition: FetchPartition) -> None:
        """The next request reads it."""
        self.changed[partition] = None
        if not self.waiting:
            partition.leave()

    def hear(self, partition: FetchPartition, replica: Replica) -> None:
        """The same, and a fetch that waits may be answered with it."""
        self.note(partition)
        for waiting in list(self.waiting):
            waiting.hear(partition, replica)

    def enter(self, waiting: Waiting) -> None:
        self.waiting.append(waiting)

    def leave(self, waiting: Waiting) -> None:
        if waiting in self.waiting:
            self.waiting.remove(waiting)
            if self.is_gone and not self.waiting:
                self.on_unused(self)

    # --- what is told

    def select(self, outcomes: Iterable[AnyOutcome]) -> list[AnyOutcome]:
        """The outcomes that the client has not been told yet; remembers what it is told now."""
        news = []
        for outcome in outcomes:
            wanted = outcome.wanted
            tells = (
                outcome.has_news
                or outcome.high_watermark != wanted.told_high_watermark
                or outcome.log_start_offset != wanted.told_log_start
            )
            if not tells:
                continue
            news.append(outcome)
            self.remember(outcome)
            if outcome.has_news and not outcome.error_code and self.partitions.get(wanted.key) is wanted:
                del self.partitions[wanted.key]
                self._put_last(wanted)
        return news

    def remember(self, outcome: Outcome) -> None:
        wanted = outcome.wanted
        # An error must be sent again as long as it lasts, and its end too: what was told counts as nothing.
        wanted.told_high_watermark = -1 if outcome.error_code else outcome.high_watermark
        wanted.told_log_start = outcome.log_start_offset
        self.look_again(wanted)
