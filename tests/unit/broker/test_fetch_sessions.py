"""Fetch sessions (KIP-227): what is remembered, what is told, and who makes place when the cache is full."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import pytest

from headpond.broker.handlers.fetch import sessions as fetch_sessions
from headpond.broker.handlers.fetch.session import EPOCH_MAX, FetchPartition, FetchSession, Key
from headpond.broker.handlers.fetch.sessions import PARTITION_BYTES, FetchSessions, remembered_bytes
from headpond.broker.handlers.fetch.wire import PartitionData
from headpond.broker.requests.letting_go import DROPPED_AT_ONCE
from headpond.coordination.slices import Work
from headpond.model import ErrorCode


class Counting:
    """Ids in order instead of by chance; 0 first, which is no id."""

    def __init__(self) -> None:
        self.next = 0

    def random_bytes(self, count: int) -> bytes:
        raise AssertionError("not needed")

    def random_int(self, below: int) -> int:
        self.next += 1
        return self.next - 1


def wanted(*indexes: int) -> dict[Key, FetchPartition]:
    return {("t", i): FetchPartition(("t", i), 0, 1_000, -1, -1) for i in indexes}


def sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(Counting(), slots=slots, eviction_ms=120_000)


def ask(cache: FetchSessions, partitions: dict[Key, FetchPartition], now_s: float) -> FetchSession | None:
    return cache.open(partitions, remembered_bytes(partitions), by_topic_id=False, now_s=now_s)


def opened(cache: FetchSessions, indexes: Iterable[int] = (0, 1, 2), now_s: float = 0.0) -> FetchSession:
    session = ask(cache, wanted(*indexes), now_s)
    assert session is not None
    return session


def answer(session: FetchSession, index: int, *, records: bytes = b"", error: int = 0, hw: int = 0) -> PartitionData:
    data = PartitionData(session.partitions["t", index], error)
    data.records, data.high_watermark, data.log_start_offset = records, hw, 0
    return data


def order(session: FetchSession) -> list[int]:
    return [index for _, index in session.partitions]


def test_a_new_session_has_an_id_that_is_not_zero_and_expects_epoch_one() -> None:
    session = opened(sessions())
    assert session.id == 1
    assert session.epoch == 1


def test_a_request_without_partitions_gets_a_session_too_for_those_to_come() -> None:
    assert ask(sessions(), {}, 0.0) is not None


def test_wrong_ids_epochs_and_ways_of_naming_topics_are_told_apart() -> None:
    cache = sessions()
    session = opened(cache)
    assert cache.find(99, 1, by_topic_id=False, now_s=0.0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.find(session.id, 2, by_topic_id=False, now_s=0.0) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.find(session.id, 1, by_topic_id=True, now_s=0.0) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert cache.find(session.id, 1, by_topic_id=False, now_s=0.0) is session


def test_epochs_wrap_around_to_one_and_never_meet_the_full_fetch_values() -> None:
    session = opened(sessions())
    session.epoch = EPOCH_MAX
    session.bump_epoch()
    assert session.epoch == 1


def test_only_what_changed_is_told() -> None:
    session = opened(sessions())
    assert len(session.select([answer(session, i, hw=5) for i in (0, 1, 2)])) == 3
    assert session.select([answer(session, i, hw=5) for i in (0, 1, 2)]) == []
    (news,) = session.select([answer(session, 0, hw=5), answer(session, 1, hw=6), answer(session, 2, hw=5)])
    assert news.wanted.key == ("t", 1)


def test_a_partition_that_returned_data_goes_to_the_end_of_the_order() -> None:
    session = opened(sessions())
    session.select([answer(session, 0, records=b"data"), answer(session, 1), answer(session, 2)])
    assert order(session) == [1, 2, 0]


def test_an_error_is_told_again_and_so_is_its_end() -> None:
    session = opened(sessions(), indexes=[0])
    session.select([answer(session, 0, hw=5)])
    for _ in range(2):
        assert len(session.select([answer(session, 0, error=3, hw=-1)])) == 1
    assert len(session.select([answer(session, 0, hw=5)])) == 1
    assert session.select([answer(session, 0, hw=5)]) == []


def test_a_full_cache_serves_a_newcomer_without_a_session() -> None:
    cache = sessions(slots=1)
    opened(cache)
    assert ask(cache, wanted(0, 1, 2, 3), 60.0) is None


def test_an_idle_session_makes_place() -> None:
    cache = sessions(slots=1)
    idle = opened(cache)
    fresh = opened(cache, indexes=[0], now_s=121.0)
    assert cache.find(idle.id, 1, by_topic_id=False, now_s=121.0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.find(fresh.id, 1, by_topic_id=False, now_s=121.0) is fresh


def test_an_old_session_that_is_smaller_makes_place_for_a_larger_one() -> None:
    cache = sessions(slots=2)
    small = opened(cache, indexes=[0])
    large = opened(cache, indexes=range(5))
    for session in (small, large):
        cache.find(session.id, 1, by_topic_id=False, now_s=100.0)
    assert ask(cache, wanted(0), 150.0) is None
    assert ask(cache, wanted(0, 1), 150.0) is not None
    assert cache.find(small.id, 1, by_topic_id=False, now_s=150.0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.find(large.id, 1, by_topic_id=False, now_s=150.0) is large


def test_no_slots_means_no_sessions() -> None:
    assert ask(sessions(slots=0), wanted(0), 0.0) is None


def memory_for(monkeypatch: pytest.MonkeyPatch, partitions: int) -> None:
    """As many partitions as that, of a topic called t, and not one more."""
    monkeypatch.setattr(fetch_sessions, "SESSIONS_BYTES_MAX", partitions * (PARTITION_BYTES + 1))


def test_sessions_remember_no_more_partitions_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(monkeypatch, 10)
    cache = sessions()
    opened(cache, range(6))
    assert ask(cache, wanted(*range(5)), 0.0) is not None, "a larger one made place"
    opened(cache, range(5))
    assert ask(cache, wanted(*range(5)), 0.0) is None
    assert len(cache) == 2 and cache.size_bytes == 10 * (PARTITION_BYTES + 1)


def test_a_long_name_counts_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(monkeypatch, 10)
    name = "n" * 10 * (PARTITION_BYTES + 1)
    partition = FetchPartition((name, 0), 0, 1_000, -1, -1)
    assert ask(sessions(), {partition.key: partition}, 0.0) is None


def test_an_idle_session_makes_room_for_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(monkeypatch, 10)
    cache = sessions()
    opened(cache, range(3))
    assert ask(cache, wanted(*range(8)), 120.0) is None
    assert ask(cache, wanted(*range(8)), 121.0) is not None
    assert len(cache) == 1


def test_a_session_that_outgrows_the_memory_is_gone_unless_a_larger_one_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory_for(monkeypatch, 10)
    cache = sessions()
    large, small = opened(cache, range(6)), opened(cache, range(4))
    cache.add(small, wanted(4).values())
    assert cache.fits(small, now_s=0.0)
    assert cache.find(large.id, 1, by_topic_id=False, now_s=0.0) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    cache.add(small, wanted(*range(11)).values())
    assert not cache.fits(small, now_s=0.0)
    assert len(cache) == 0 and cache.size_bytes == 0


def test_what_a_session_forgets_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(monkeypatch, 10)
    cache = sessions()
    session = opened(cache, range(10))
    cache.forget(session, [("t", index) for index in range(20)])
    assert cache.size_bytes == 0
    cache.drop(session.id)
    cache.add(session, wanted(1, 2).values())
    cache.forget(session, [("t", 1)])
    assert cache.size_bytes == 0, "one that is gone counts no more"


def test_a_session_that_is_too_young_to_make_place_does_not_keep_an_older_one_from_it() -> None:
    cache = sessions(slots=2)
    old = opened(cache, range(2))
    young = opened(cache, range(1), now_s=100.0)
    cache.find(old.id, 1, by_topic_id=False, now_s=100.0)
    assert ask(cache, wanted(*range(3)), 150.0) is not None
    assert cache.has(young) and not cache.has(old)


class Unwalked(dict[Key, FetchPartition]):
    """Partitions that are too many to be looked at one by one."""

    def __iter__(self) -> Iterator[Key]:
        raise AssertionError("each of them was looked at")


def test_a_session_is_opened_without_a_look_at_each_of_its_partitions() -> None:
    cache = sessions()
    session = cache.open(Unwalked(wanted(0, 1)), 1_000, by_topic_id=False, now_s=0.0)
    assert session is not None and cache.size_bytes == 1_000


def test_a_large_session_that_is_dropped_is_freed_in_slices() -> None:
    work: list[Work[None]] = []
    cache = FetchSessions(Counting(), slots=10, eviction_ms=120_000, free=work.append)
    session = opened(cache, range(3 * DROPPED_AT_ONCE))
    remembered = session.partitions
    cache.drop(session.id)
    assert not cache.has(session) and cache.size_bytes == 0
    assert freed_in_slices(work, [remembered]) >= 6


def test_many_sessions_that_make_room_at_once_are_freed_in_slices_together(monkeypatch: pytest.MonkeyPatch) -> None:
    memory_for(monkeypatch, 40_000)
    work: list[Work[None]] = []
    cache = FetchSessions(Counting(), slots=200, eviction_ms=120_000, free=work.append)
    remembered = [opened(cache, range(400)).partitions for _ in range(100)]
    opened(cache, range(30_000), now_s=121.0)
    assert 6 <= freed_in_slices(work, remembered) <= 7


def freed_in_slices(work: list[Work[None]], remembered: list[dict[Key, FetchPartition]]) -> int:
    """In how many."""
    (freeing,) = work
    slices, left = 1, sum(map(len, remembered))
    for _ in freeing:
        slices += 1
        before, left = left, sum(map(len, remembered))
        assert 0 < before - left <= DROPPED_AT_ONCE // 2  # two objects each, and more
    return slices


@pytest.mark.parametrize("are_idle", [True, False])
def test_sessions_make_room_with_work_in_proportion_to_their_number(
    are_idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def instructions_for(count: int) -> int:
        memory_for(monkeypatch, 2 * count)
        cache = sessions(slots=1_000)
        for _ in range(count):
            opened(cache, range(2))
        size_bytes = 2 * count * (PARTITION_BYTES + 1) if are_idle else 1
        if not are_idle:
            monkeypatch.setattr(fetch_sessions, "SESSIONS_BYTES_MAX", 1)  # as if all had grown
        now_s = 121.0 if are_idle else 0.0
        instructions = counted_instructions(lambda: cache.open({}, size_bytes, by_topic_id=False, now_s=now_s))
        assert len(cache) == 1
        return instructions

    assert instructions_for(200) < 3 * instructions_for(100)


def counted_instructions(call: Any) -> int:
    instructions = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal instructions
        frame.f_trace_opcodes = True
        instructions += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return instructions
