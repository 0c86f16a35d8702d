"""A disk that is full, fails to sync or to read: what the log says, and what it is good for afterwards."""

from __future__ import annotations

import random

import pytest

from headpond.log import CompactionFailed, Log, LogError, LogFailed, LogUnusable, NotAppended, ReadFailed
from headpond.model import StorageFailed
from unit.log.log_rig import PATH, SEGMENT, LogRig


def test_a_full_disk_refuses_a_record_and_the_log_goes_on_when_there_is_room(rig: LogRig) -> None:
    rig.log.append(b"before")
    rig.disk.faults.space_bytes = 20
    for _ in range(3):
        with pytest.raises(NotAppended) as caught:
            rig.log.append(bytes(200))
        assert isinstance(caught.value, StorageFailed), "whoever catches the broker's error gets it, too"
    assert [record.value for record in rig.log.read()] == [b"before"]
    rig.disk.faults.heal()
    assert rig.log.append(b"after") == 1
    rig.die()
    assert [record.value for record in rig.open().read()] == [b"before", b"after"]


def test_of_many_records_on_a_full_disk_the_first_may_be_there_and_no_part_of_one(rig: LogRig) -> None:
    rig.disk.faults.space_bytes = 3_000
    with pytest.raises(NotAppended):
        rig.log.append_many([bytes(300)] * 20)
    rig.disk.faults.heal()
    count = rig.log.end_offset
    assert 0 < count < 20
    assert rig.log.append(b"next") == count
    assert [record.offset for record in rig.log.read()] == list(range(count + 1))


def test_after_a_failed_sync_the_outcome_is_unknown_and_nothing_more_is_appended(rig: LogRig) -> None:
    log = rig.log
    log.append(b"durable")
    rig.disk.faults.fail_next_syncs()
    for _ in range(2):
        with pytest.raises(LogFailed, match=r"a sync of the log has failed .*open it again to find out"):
            log.append(b"who knows")
    for call in (lambda: log.append_many([b"a"]), log.flush, lambda: log.delete_before(1), log.compact):
        with pytest.raises(LogFailed):
            call()
    assert [record.value for record in log.read()] == [b"durable"], "what is durable can still be read"
    log.close()
    with rig.open() as log:
        assert [record.value for record in log.read()] == [b"durable"], "memory had more; the disk is asked"
        assert log.append(b"again") == 1


def test_a_sync_that_fails_for_a_new_segment_fails_the_log(rig: LogRig) -> None:
    rig.disk.faults.fail_syncs()
    with pytest.raises(LogFailed):
        rig.log.append(b"a")
    rig.log.close()


def test_a_log_whose_syncs_fail_is_not_opened(rig: LogRig) -> None:
    rig.log.append(b"a")
    rig.die()
    rig.disk.faults.fail_syncs()
    with pytest.raises(LogUnusable, match="can't be opened"):
        rig.open()
    rig.disk.faults.heal()
    assert [record.value for record in rig.open().read()] == [b"a"]


def test_a_disk_that_can_t_be_read_is_told(rig: LogRig) -> None:
    rig.log.append(b"a")
    rig.disk.faults.make_cold(SEGMENT)
    rig.disk.faults.fail_reads(SEGMENT)
    with pytest.raises(ReadFailed, match="offset 0 could not be read"):
        list(rig.log.read())
    rig.disk.faults.heal()
    assert [record.value for record in rig.log.read()] == [b"a"]


def test_what_is_not_in_memory_is_read_from_the_disk(rig: LogRig) -> None:
    rig.log.append_many([bytes(300)] * 12)
    rig.disk.faults.make_cold(PATH)
    assert len(list(rig.log.read())) == 12


def fill_for_compaction(log: Log) -> None:
    for number in range(20):
        log.append(bytes(100), key=b"%d" % (number % 2))


def test_a_compaction_that_fails_loses_nothing_and_can_be_repeated(rig: LogRig) -> None:
    fill_for_compaction(rig.log)
    rig.disk.faults.space_bytes = 500
    with pytest.raises(LogError) as caught:
        rig.log.compact()
    assert isinstance(caught.value, CompactionFailed)
    assert [record.offset for record in rig.log.read()][-2:] == [18, 19]
    rig.disk.faults.heal()
    rig.log.compact()
    assert [record.offset for record in rig.log.read()] == [18, 19]


def test_a_compaction_that_can_t_even_begin_can_be_repeated(rig: LogRig) -> None:
    fill_for_compaction(rig.log)
    rig.disk.faults.space_bytes = 0
    with pytest.raises(LogError):
        rig.log.compact()
    rig.disk.faults.heal()
    rig.log.compact()
    assert [record.offset for record in rig.log.read()] == [18, 19]


def test_a_compaction_whose_process_dies_is_told(log: Log) -> None:
    fill_for_compaction(log)
    processes = log._engine._world.ports.processes
    processes.steps_until_death = 1  # type: ignore[union-attr]
    with pytest.raises(CompactionFailed):
        log.compact()
    log.compact()
    assert [record.offset for record in log.read()] == [18, 19]


@pytest.mark.parametrize("flush", ["interval", "os"])
def test_without_a_sync_of_its_own_an_append_can_be_read_and_a_flush_makes_it_durable(flush: str) -> None:
    rig = LogRig(flush=flush)
    log = rig.open()
    log.append_many([b"a", b"b"])
    assert (log.end_offset, len(list(log.read()))) == (2, 2)
    assert log._engine.log.flushed_end_offset == 0
    log.flush()
    log.append(b"not flushed")
    rig.die(lambda disk: disk.power_cut(random.Random(3)))
    assert [record.value for record in rig.open().read()][:2] == [b"a", b"b"]
    rig.die()


@pytest.mark.parametrize("flush", ["interval", "os"])
def test_a_kill_loses_nothing_that_was_written(flush: str) -> None:
    rig = LogRig(flush=flush)
    rig.open().append_many([bytes(300)] * 12)
    rig.die()
    assert len(list(rig.open().read())) == 12
    rig.die()
