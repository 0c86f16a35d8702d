"""Many threads on one log, in a real folder."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headpond.log
from headpond.log import CompactionFailed, Log, LogClosed, LogInUse, OffsetOutOfRange
from support.waiting import DEADLINE_S, eventually

THREADS = 8


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return headpond.log.open(tmp_path / "orders", segment_bytes=20_000, index_interval_bytes=500)


def at_once(*calls: Callable[[], object]) -> list[object]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(DEADLINE_S) for future in [pool.submit(call) for call in calls]]


def test_each_append_of_each_thread_gets_an_offset_of_its_own_in_the_thread_s_order(log: Log) -> None:
    def append(thread: int) -> list[int]:
        return [log.append(b"%d %d" % (thread, number)) for number in range(100)]

    offsets = at_once(*(lambda thread=thread: append(thread) for thread in range(THREADS)))  # type: ignore[misc]
    records = {record.offset: record.value for record in log.read()}
    assert sorted(records) == list(range(THREADS * 100))
    for thread, own in enumerate(offsets):
        assert [records[offset] for offset in own] == [b"%d %d" % (thread, number) for number in range(100)]  # type: ignore
    assert len(list(log.read_batches())) < THREADS * 100, "some shared a batch"
    log.close()


def test_records_of_one_call_stay_in_order_among_those_of_others(log: Log) -> None:
    def append(thread: int) -> list[int]:
        return log.append_many(b"%d %d" % (thread, number) for number in range(3_000))

    offsets = at_once(*(lambda thread=thread: append(thread) for thread in range(4)))  # type: ignore[misc]
    records = {record.offset: record.value for record in log.read()}
    assert len(records) == 12_000
    for thread, own in enumerate(offsets):
        assert own == sorted(own)  # type: ignore
        assert [records[offset] for offset in own] == [b"%d %d" % (thread, number) for number in range(3_000)]  # type: ignore
    log.close()


def test_followers_see_every_record_while_it_is_appended_deleted_and_compacted(log: Log) -> None:
    count = 1_500
    followers = [log.follow(0) for _ in range(3)]

    def follow(records: object) -> list[int]:
        seen = []
        for record in records:  # type: ignore[attr-defined]
            seen.append(record.offset)
            if record.value == b"last":
                return seen
        raise AssertionError("the log was closed")

    def append() -> None:
        for number in range(count):
            log.append(bytes(50), key=b"%d" % number)
            if number % 500 == 499:
                log.compact()
        log.append(b"last", key=b"last")

    *seen, _ = at_once(*(lambda each=each: follow(each) for each in followers), append)  # type: ignore[misc]
    assert seen == [list(range(count + 1))] * 3
    log.close()


def test_readers_and_a_deletion_meet(log: Log) -> None:
    log.append_many([bytes(200)] * 2_000)
    stop = threading.Event()

    def read() -> int:
        rounds = 0
        while not stop.is_set() or not rounds:
            try:
                offsets = [record.offset for record in log.read()]
            except OffsetOutOfRange:
                continue  # it was deleted while it was read
            assert offsets == list(range(2_000 - len(offsets), 2_000))
            rounds += 1
        return rounds

    def delete() -> None:
        for offset in range(0, 2_001, 250):
            log.delete_before(offset)
        stop.set()

    at_once(read, read, delete)
    assert log.start_offset == 2_000
    log.close()


def test_a_close_writes_what_was_handed_over_and_refuses_the_rest(log: Log) -> None:
    written: list[int] = []

    def append() -> None:
        try:
            while True:
                written.append(log.append(b"a"))
        except LogClosed:
            pass

    def close() -> None:
        eventually(lambda: len(written) > 50)
        log.close()

    at_once(append, append, append, close)
    with headpond.log.open(log.path) as again:
        assert again.end_offset == len(written)
        assert sorted(written) == list(range(len(written)))


def test_two_threads_may_close_it(log: Log) -> None:
    log.append(b"a")
    at_once(log.close, log.close)
    headpond.log.open(log.path).close()


def test_a_log_that_is_open_is_not_opened_again(log: Log, tmp_path: Path) -> None:
    with pytest.raises(LogInUse, match="is open already, in this process or in another one"):
        headpond.log.open(tmp_path / "orders")
    log.append(b"a")
    log.close()
    headpond.log.open(tmp_path / "orders").close()


def test_one_compaction_at_a_time(log: Log) -> None:
    log.append(b"a", key=b"k")
    log._engine.is_compacting = True
    with pytest.raises(CompactionFailed, match="another compaction of the log is under way"):
        log.compact()
    log._engine.is_compacting = False
    log.close()


def test_a_log_works_inside_a_running_event_loop(log: Log) -> None:
    """As in a notebook."""

    async def cell() -> list[bytes | None]:
        log.append_many([bytes(300)] * 200)
        log.append(b"last")
        return [record.value for record in log.read(log.offset_at(0))][-1:]

    assert asyncio.run(cell()) == [b"last"]
    log.close()


def test_a_log_that_nobody_refers_to_is_closed_and_says_so(tmp_path: Path) -> None:
    log = headpond.log.open(tmp_path / "orders")
    log.append(b"a")
    with pytest.warns(ResourceWarning, match=r"orders was not closed"):
        del log
        gc.collect()

    def opened() -> Log:
        return headpond.log.open(tmp_path / "orders")

    again = eventually(opened, retry_on=(LogInUse,))
    assert again.end_offset == 1
    again.close()
    assert (tmp_path / "orders" / ".kafka_cleanshutdown").exists()


def test_an_append_that_is_interrupted_has_an_unknown_outcome_and_the_log_goes_on(log: Log) -> None:
    """Ctrl-C while it waits: the record may still get there."""
    log.append(b"first")
    never = threading.Event()
    log._thread.call_soon(never.wait, DEADLINE_S)  # busy
    timer = threading.Timer(0.05, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            log.append(b"interrupted")
    finally:
        timer.cancel()
        never.set()
        signal.signal(signal.SIGINT, before)
    assert log.append(b"next") in (1, 2)
    log.close()


def test_a_signal_handler_may_append_in_the_middle_of_an_append(log: Log) -> None:
    offsets: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: offsets.append(log.append(b"from the handler")))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while len(offsets) < 30:
            offsets.append(log.append(b"from the program"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert sorted(offsets) == list(range(log.end_offset))
    log.close()
