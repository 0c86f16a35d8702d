"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then sends and gets only what changed.

A session (``session.py``) remembers, for each partition, what the client asked and what it was last told. Its
partitions have an order: one that returned data goes to the end, so that a full response never starves the rest. The
cache has a limited number of slots; when it is full, a session idle for ``eviction_ms`` makes place, or an older,
smaller one. It has limited memory, too: when that is used up, an idle session makes place, or the largest one for a
smaller. Otherwise the newcomer is served without a session, and a session that grows is forgotten. A crash forgets all
sessions; clients are told 70 and start again.

Which session makes place is found without a look at all of them. One that goes leaves the replicas that its partitions
stand at, and what a large one remembered is freed, in slices; if a fetch of it waits, not before that is answered.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterable

from headpond.broker.handlers.fetch.session import EPOCH_MAX, FEW_PARTITIONS, FetchPartition, FetchSession, Key
from headpond.broker.requests.letting_go import DROPPED_AT_ONCE
from headpond.coordination.slices import Work, finish_now
from headpond.model import ErrorCode
from headpond.ports import Random

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SESSIONS_BYTES_MAX = 67_108_864
"""What all sessions together may remember: 170,000 partitions or so."""
PARTITION_BYTES = 384
"""What a session's memory of one partition takes, about, besides the topic's name; its places among what has changed
and at its replica included."""


def remembered_bytes(partitions: Iterable[Key]) -> int:
    """What a session of these takes. Of very many: for a worker."""
    return sum(PARTITION_BYTES + len(name) for name, _ in partitions)


class FetchSessions:
    def __init__(
        self, random: Random, *, slots: int, eviction_ms: int, free: Callable[[Work[None]], object] = finish_now
    ) -> None:
        """``free`` does its work in slices."""
        self._random = random
        self._slots = slots
        self._eviction_s = eviction_ms / 1000
        self._free = free
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the longest unused first
        self._by_bytes = _BySize()
        self._young: OrderedDict[int, FetchSession] = OrderedDict()  # the oldest first
        self._old_by_size = _BySize()  # by partitions; those that have been there for longer than ``eviction_ms``
        self._dropped: list[FetchSession] = []  # what they remember is to be freed
        self.size_bytes = 0  # what they remember

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def is_overfull(self) -> bool:
        """A session has grown beyond the memory that there is: it must be asked whether it ``fits``."""
        return self.size_bytes > SESSIONS_BYTES_MAX

    def has(self, session: FetchSession) -> bool:
        """False: it was evicted, and is empty unless a fetch of it waits. To be asked again after each pause."""
        return self._sessions.get(session.id) is session

    def find(self, session_id: int, epoch: int, *, by_topic_id: bool, now_s: float) -> FetchSession | ErrorCode:
        """The session of an incremental request."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.by_topic_id != by_topic_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        self._touch(session, now_s)
        return session

    def open(
        self, partitions: dict[Key, FetchPartition], size_bytes: int, *, by_topic_id: bool, now_s: float
    ) -> FetchSession | None:
        """A new session for a full request, or None when there is no place for it. ``size_bytes``: see
        ``remembered_bytes``."""
        if not self._make_room(size_bytes, None, now_s) or not self._make_place(len(partitions), now_s):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._random.random_int(EPOCH_MAX)
        session = FetchSession(session_id, partitions, by_topic_id=by_topic_id, now_s=now_s)
        self._sessions[session_id] = self._young[session_id] = session
        self._by_bytes.add(0, session_id)
        self._grow(session, size_bytes)
        return session

    def add(self, session: FetchSession, asked: Iterable[FetchPartition]) -> None:
        """What a later request says of some partitions; see ``is_overfull``."""
        grown_bytes = 0
        for partition in asked:
            if session.add(partition):
                grown_bytes += PARTITION_BYTES + len(partition.key[0])
        if grown_bytes:
            self._grow(session, grown_bytes)

    def forget(self, session: FetchSession, keys: Iterable[Key]) -> None:
        freed_bytes = 0
        for key in keys:
            if session.forget(key):
                freed_bytes += PARTITION_BYTES + len(key[0])
        if freed_bytes:
            self._grow(session, -freed_bytes)

    def fits(self, session: FetchSession, *, now_s: float) -> bool:
        """Whether there is memory for what the session has grown to. If not, it is gone."""
        self._touch(session, now_s)
        if self._make_room(0, session, now_s):
            return True
        self.drop(session.id)
        return False

    def drop(self, session_id: int) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            self._drop(session, is_one_of_many=False)

    def _drop(self, session: FetchSession, *, is_one_of_many: bool) -> None:
        del self._sessions[session.id]
        self.size_bytes -= session.size_bytes
        self._by_bytes.remove(session.size_bytes, session.id)
        if session.is_old:
            self._old_by_size.remove(session.size, session.id)
        else:
            del self._young[session.id]
        session.is_gone, session.on_unused = True, self._free_in_slices
        if session.waiting:
            return
        if is_one_of_many or session.size > FEW_PARTITIONS:
            self._free_in_slices(session)
        else:
            _free(session, len(session.partitions))

    def _free_in_slices(self, session: FetchSession) -> None:
        self._dropped.append(session)
        if len(self._dropped) == 1:
            self._free(_freed(self._dropped))

    def _touch(self, session: FetchSession, now_s: float) -> None:
        session.used_s = now_s
        self._sessions.move_to_end(session.id)

    def _grow(self, session: FetchSession, size_bytes: int) -> None:
        if not self.has(session):
            return
        self._by_bytes.remove(session.size_bytes, session.id)
        if session.is_old:
            self._old_by_size.remove(session.size, session.id)
        session.size = len(session.partitions)
        session.size_bytes += size_bytes
        self.size_bytes += size_bytes
        self._by_bytes.add(session.size_bytes, session.id)
        if session.is_old:
            self._old_by_size.add(session.size, session.id)

    def _make_room(self, size_bytes: int, growing: FetchSession | None, now_s: float) -> bool:
        """Memory for ``size_bytes`` more, of a new session or of one that has grown, and was just used."""
        needed_bytes = growing.size_bytes if growing is not None else size_bytes
        while self.size_bytes + size_bytes > SESSIONS_BYTES_MAX:
            if not self._sessions:
                return False
            victim = next(iter(self._sessions.values()))
            if now_s - victim.used_s <= self._eviction_s:
                victim = self._sessions[self._by_bytes.largest_id]
                if victim.size_bytes <= needed_bytes:  # the one that has grown is not larger than itself, either
                    return False
            self._drop(victim, is_one_of_many=True)
        return True

    def _make_place(self, size: int, now_s: float) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_s - victim.used_s <= self._eviction_s:
            self._grow_old(now_s)
            if not len(self._old_by_size):
                return False
            victim = self._sessions[self._old_by_size.smallest_id]
            if victim.size >= size:
                return False
        self.drop(victim.id)
        return True

    def _grow_old(self, now_s: float) -> None:
        while self._young:
            session = next(iter(self._young.values()))
            if now_s - session.created_s <= self._eviction_s:
                return
            del self._young[session.id]
            session.is_old = True
            self._old_by_size.add(session.size, session.id)


def _freed(sessions: list[FetchSession]) -> Work[None]:
    """More may come while it pauses."""
    left = DROPPED_AT_ONCE // 2  # two objects each, and more
    while sessions:
        left -= 1 + _free(sessions[-1], left)
        if not sessions[-1].partitions:
            sessions.pop()
        if left <= 0:
            left = DROPPED_AT_ONCE // 2
            yield None


def _free(session: FetchSession, count: int) -> int:
    """Let go of so many of its partitions, or of all; returns how many went."""
    partitions, changed = session.partitions, session.changed
    count = min(count, len(partitions))
    for _ in range(count):
        _, partition = partitions.popitem()
        changed.pop(partition, None)
        partition.leave()
    return count


class _BySize:
    """Sessions in the order of their sizes."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []  # a thousand or so

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def smallest_id(self) -> int:
        return self._rows[0][1]

    @property
    def largest_id(self) -> int:
        return self._rows[-1][1]

    def add(self, size: int, session_id: int) -> None:
        insort(self._rows, (size, session_id))

    def remove(self, size: int, session_id: int) -> None:
        del self._rows[bisect_left(self._rows, (size, session_id))]
