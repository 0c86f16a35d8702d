"""Compaction of one log: what stays, what goes, and what readers see meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from headpond.protocol.records.control import build_end_txn_marker
from headpond.protocol.records.header import HEADER, crc_of, read_header
from headpond.protocol.records.reader import read_records
from simulation.harness.trace import Op, Renamed
from support.batches import CODECS, Rec, build
from unit.storage.compaction_rig import COMPACTED, batches_of, compact, compacted_log, compactor_of, kept, keyed, table
from unit.storage.storage_rig import NOW_MS, read_all, writable


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_the_latest_value_of_each_key_stays_at_its_offset() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("b", "1"), ("a", "2")))
        await rig.append(log, keyed(("c", "1"), ("b", "2")))
        await rig.append(log, keyed(("a", "3")))
        assert await compact(rig, log)
        found = [(r.offset, r.key, r.value) for r in await kept(log)]
        assert found == [(3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
        assert (log.log_start_offset, log.log_end_offset) == (0, 6)
        await rig.tasks.cancel_all()

    run(test)


def test_the_active_segment_is_never_cleaned() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("a", "2")))
        assert not await compact(rig, log, roll=False)
        assert len(await kept(log)) == 2
        await rig.tasks.cancel_all()

    run(test)


def test_small_segments_become_one_and_the_size_is_counted_anew() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for number in range(6):
            await rig.append(log, keyed(("k", str(number)), (f"own-{number}", "x")))
            await log.roll()
        assert len(log.segments) == 7
        before = log.size_bytes
        await compact(rig, log)
        assert log.segments.base_offsets == [0, 8, 12]  # of up to 400 bytes each, and the active one
        assert before > log.size_bytes == sum(segment.size_bytes for segment in log.segments)
        names = await rig.files(log.path)
        assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
        rig.clock.advance(2)
        await asyncio.sleep(0)
        assert not [name for name in await rig.files(log.path) if name.endswith(".deleted")]
        await rig.tasks.cancel_all()

    run(test)


def test_a_segment_that_loses_nothing_is_left_as_it_is() -> None:
    async def test() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, segment_bytes=150))
        await rig.append(log, keyed(("a", "1" * 20)))
        await log.roll()
        await rig.append(log, keyed(("b", "1" * 20)))
        await log.roll()
        first = log.segments[0]
        await compact(rig, log)
        assert log.segments[0] is first
        await rig.append(log, keyed(("b", "2" * 20)))
        await compact(rig, log)
        assert log.segments[0] is first
        assert [r.offset for r in await kept(log)] == [0, 2]
        await rig.tasks.cancel_all()

    run(test)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_keep_their_codec_and_their_timestamps(codec: str) -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        rows = [Rec(b"v%d" % n, b"k%d" % (n % 4), [("h", b"x")], timestamp_delta_ms=5 - n) for n in range(6)]
        await rig.append(log, build(rows, codec=codec, timestamp_ms=NOW_MS))
        await rig.append(log, keyed(("other", "1")))
        await compact(rig, log)
        batch = (await read_all(log))[0]
        assert batch.codec == CODECS[codec] and batch.crc_is_right
        assert (batch.base_offset, batch.last_offset, batch.count) == (0, 5, 4)
        records = list(read_records(batch.data))
        assert [(r.offset, r.key, r.value, r.timestamp) for r in records] == [
            (n, b"k%d" % (n % 4), b"v%d" % n, NOW_MS + 5 - n) for n in range(2, 6)
        ]
        assert all(r.headers == (("h", b"x"),) for r in records)
        assert batch.max_timestamp == NOW_MS + 3
        await rig.tasks.cancel_all()

    run(test)


def test_segments_of_which_nothing_stays_hold_no_batch_and_are_read_over() -> None:
    async def test() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, segment_bytes=150))
        await rig.append(log, keyed(("first", "1")))
        for number in range(20):
            await log.roll()
            await rig.append(log, keyed(("again", f"{number}" + "x" * 60)))
        await log.roll()
        await rig.append(log, keyed(("other", "1")))
        await compact(rig, log)
        assert sum(1 for segment in log.segments if not segment.size_bytes) > 10
        expected = [(0, b"first"), (20, b"again"), (21, b"other")]
        batches = await batches_of(log)
        assert [(r.offset, r.key) for r in await kept(log)] == expected
        assert [batch.count for batch in batches] == [1, 1, 1]
        found = await log.offset_for_timestamp(NOW_MS, up_to_end_offset=log.log_end_offset)
        assert found is not None and found.offset == 0
        await rig.die()
        log = await rig.open()
        assert [(r.offset, r.key) for r in await kept(log)] == expected
        await rig.append(log, keyed(("other", "2")))
        await compact(rig, log)
        assert all(segment.size_bytes for segment in list(log.segments)[:-1]), "the next round merges them"
        assert [(r.offset, r.key) for r in await kept(log)] == [(0, b"first"), (20, b"again"), (22, b"other")]
        await rig.tasks.cancel_all()

    run(test)


def test_a_tombstone_stays_for_its_time_and_then_goes() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("b", "1")))
        await rig.append(log, keyed(("a", None), timestamp_ms=NOW_MS + 7))
        await compact(rig, log)
        assert [(r.key, r.value, r.timestamp) for r in await kept(log)] == [
            (b"b", b"1", NOW_MS),
            (b"a", None, NOW_MS + 7),
        ]
        tombstones = (await read_all(log))[-1]
        assert tombstones.attributes & 0x40 and tombstones.base_timestamp == rig.clock.now_ms() + 10_000
        rig.clock.advance(9)
        await rig.append(log, keyed(("c", "1")))
        await compact(rig, log)
        assert b"a" in [r.key for r in await kept(log)]
        assert tombstones.data in [batch.data for batch in await read_all(log)]  # the horizon does not move
        rig.clock.advance(2)
        await rig.append(log, keyed(("d", "1")))
        await compact(rig, log)
        assert table(await kept(log)) == {b"b": b"1", b"c": b"1", b"d": b"1"}
        assert b"a" not in [r.key for r in await kept(log)]
        await rig.tasks.cancel_all()

    run(test)


def test_a_producers_last_batch_stays_as_a_header_so_that_its_sequence_is_known_after_a_restart() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for sequence in range(3):
            batch = keyed(("a", str(sequence)), producer_id=7, producer_epoch=0, base_sequence=sequence)
            await rig.append(log, batch)
        await rig.append(log, keyed(("a", "last")))
        await compact(rig, log)
        batches = await read_all(log)
        assert [(b.base_offset, b.count, b.base_sequence) for b in batches] == [(2, 0, 2), (3, 1, -1)]
        for name in await rig.files(log.path):
            if name.endswith(".snapshot"):
                await rig.in_worker(rig.disk.remove, f"{log.path}/{name}")
        await rig.die()
        log = await rig.open()
        state = log.producers.get(7)
        assert state is not None and state.last_sequence == 2
        await rig.tasks.cancel_all()

    run(test)


def test_records_without_a_key_from_before_the_topic_was_compacted_go() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, build([Rec(b"x"), Rec(b"y", b"k"), Rec(b"z")], timestamp_ms=NOW_MS))
        await rig.append(log, keyed(("a", "1")))
        await compact(rig, log)
        assert [r.key for r in await kept(log)] == [b"k", b"a"]
        await rig.tasks.cancel_all()

    run(test)


def test_long_keys_are_told_apart() -> None:
    async def test() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, segment_bytes=100_000))
        keys = ["k" * 49, "k" * 50, "k" * 5_000, "k" * 4_999 + "l", "k" * 48]
        for turn in range(2):
            await rig.append(log, keyed(*((key, str(turn)) for key in keys)))
        await compact(rig, log)
        assert [(r.key, r.value) for r in await kept(log)] == [(key.encode(), b"1") for key in keys]
        await rig.tasks.cancel_all()

    run(test)


def test_with_little_memory_it_takes_several_rounds_to_the_same_end() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        compactor = compactor_of(rig)
        compactor.configure(msgspec.structs.replace(compactor._settings, dedupe_buffer_bytes=600))
        for number in range(30):
            await rig.append(log, keyed((f"k{number % 7}", str(number)), (f"j{number % 3}", str(number))))
        await compact(rig, log)
        assert rig.processes.jobs > 3
        assert table(await kept(log)) == {
            **{b"k%d" % (n % 7): b"%d" % n for n in range(30)},
            **{b"j%d" % (n % 3): b"%d" % n for n in range(30)},
        }
        finished = [r for r in await kept(log) if r.offset < log.segments[-1].base_offset]
        assert len(finished) == 10, "one record per key is left"
        await rig.tasks.cancel_all()

    run(test)


def test_a_reader_that_holds_an_old_segment_reads_on_and_others_see_the_new_one() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for number in range(8):
            await rig.append(log, keyed(("k", str(number)), (f"own-{number}", "x" * 30)))
        await log.flush()
        limits = {"up_to_end_offset": log.log_end_offset, "size_bytes_max": 300, "at_least_one_batch": True}
        await log.read_cold(0, **limits)  # type: ignore[arg-type]
        planned = log.plan(0, **limits)  # type: ignore[arg-type]
        assert planned is not None and planned.size_bytes
        planned.segment.pin()
        before = planned.read_nowait()
        await compact(rig, log)
        assert planned.segment.is_gone and planned.read_nowait() == before
        planned.segment.unpin()
        assert planned.segment.file is None
        for offset in range(log.log_end_offset):
            read = await log.read_cold(offset, **limits)  # type: ignore[arg-type]
            assert read.data and read.next_offset > offset
        await rig.tasks.cancel_all()

    run(test)


def test_appends_go_on_while_segments_are_swapped() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for number in range(6):
            await rig.append(log, keyed(("k", str(number))))
        await log.roll()
        await rig.append(log, keyed(("first", "x")))
        appended: list[int] = []

        def append_in_the_middle(operation: Op) -> None:
            if isinstance(operation, Renamed) and not appended:
                data, header = writable(keyed(("meanwhile", "x")))
                assert log.can_append(len(data), header.max_timestamp, rig.clock.now_ms())
                appended.append(log.append(data, header, leader_epoch=0, now_ms=rig.clock.now_ms()).base_offset)
                rig.manager.commits.mark_dirty(log)

        await log.flush()
        await rig.checkpoint()
        rig.disk.before_operation = append_in_the_middle
        while await compactor_of(rig).clean_dirtiest():
            pass
        rig.disk.before_operation = None
        await log.flush()
        assert appended == [7]
        assert [(r.offset, r.key) for r in await kept(log)] == [(5, b"k"), (6, b"first"), (7, b"meanwhile")]
        await rig.close()
        log = await rig.open()
        assert [r.offset for r in await kept(log)] == [5, 6, 7]
        await rig.tasks.cancel_all()

    run(test)


def test_seek_by_timestamp_and_leader_epochs_stay_right() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for number in range(12):
            batch = keyed((f"k{number % 5}", str(number)), timestamp_ms=NOW_MS + 10 * number)
            await rig.append(log, batch, epoch=number // 4)
        await compact(rig, log)
        records = await kept(log)
        for wanted in range(NOW_MS - 5, NOW_MS + 130, 5):
            found = await log.offset_for_timestamp(wanted, up_to_end_offset=log.log_end_offset)
            expected = next((r.offset for r in records if r.timestamp >= wanted), None)
            assert (None if found is None else found.offset) == expected
        assert log.epochs.epoch_for(11) == 2
        await rig.tasks.cancel_all()

    run(test)


def test_compact_and_delete_together_keep_the_latest_values_that_are_young_enough() -> None:
    async def test() -> None:
        rig, log = await compacted_log(msgspec.structs.replace(COMPACTED, deletes=True, retention_ms=50_000))
        await rig.append(log, keyed(("old", "1"), ("both", "1")))
        await log.roll()
        rig.clock.advance(60)
        await rig.append(log, keyed(("both", "2"), ("new", "1"), ("new", "2"), timestamp_ms=rig.clock.now_ms()))
        await log.roll()
        await log.flush()
        await log.delete_old_segments(rig.clock.now_ms())
        await compact(rig, log)
        assert table(await kept(log)) == {b"both": b"2", b"new": b"2"}
        assert log.log_start_offset == 2
        await rig.tasks.cancel_all()

    run(test)


def test_what_replaces_a_truncated_end_is_dirty_again_so_that_a_tombstone_never_goes_before_what_it_deletes() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("b", "1")))
        await rig.append(log, keyed(("c", "1")))
        await rig.append(log, keyed(("d", "1")))
        await compact(rig, log)
        await log.truncate_to(2)
        await rig.append(log, keyed(("a", None)), epoch=1)
        await log.roll()
        await rig.append(log, keyed(("e", "1")), epoch=1)
        await rig.die()  # the checkpoint on disk has to know it, too
        rig.clock.advance(1)
        log = await rig.open()
        for _ in range(3):
            await rig.append(log, keyed(("x", "1")), epoch=2)
            await compact(rig, log)
            rig.clock.advance(11)
        assert b"a" not in table(await kept(log))
        assert b"a" not in [each.key for each in await kept(log)]
        await rig.tasks.cancel_all()

    run(test)


def test_only_what_recovery_will_not_look_for_holes_in_is_compacted() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        for number in range(4):
            await rig.append(log, keyed(("a", str(number))))
        await log.roll()
        await log.flush()
        assert not await compactor_of(rig).clean_dirtiest(), "no checkpoint was written yet"
        await rig.checkpoint()
        assert await compactor_of(rig).clean_dirtiest()
        await rig.tasks.cancel_all()

    run(test)


def test_nothing_at_or_above_the_last_stable_offset_is_compacted() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("a", "2")))
        await log.roll()
        await rig.append(log, keyed(("a", "3"), attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0))
        await log.roll()
        await rig.append(log, keyed(("a", "4")))
        await compact(rig, log)
        assert [each.value for each in await kept(log)] == [b"2", b"3", b"4"]
        await rig.tasks.cancel_all()

    run(test)


def test_an_aborted_transaction_hides_nobody_elses_records_and_its_own_go() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "committed"), ("b", "old")))
        transactional = {"attributes": 0x10, "producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
        await rig.append(log, keyed(("a", "aborted"), **transactional))
        marker = build_end_txn_marker(
            producer_id=5, producer_epoch=0, is_abort=True, coordinator_epoch=1, timestamp=NOW_MS
        )
        await rig.append(log, bytes(marker))
        await rig.append(log, keyed(("b", "new")))
        log.producers.on_high_watermark(10)
        await compact(rig, log)
        batches = await read_all(log)
        assert [(b.base_offset, b.count, bool(b.attributes & 0x20)) for b in batches] == [
            (0, 1, False),
            (2, 0, False),  # the producer's last data batch
            (3, 1, True),  # the marker
            (4, 1, False),
        ]
        records = [record for batch in batches if not batch.attributes & 0x20 for record in read_records(batch.data)]
        assert [(record.key, record.value) for record in records] == [(b"a", b"committed"), (b"b", b"new")]
        await rig.tasks.cancel_all()

    run(test)


def test_a_cleaned_segment_can_be_read_while_many_others_wait_for_their_checkpoint() -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        await rig.append(log, keyed(("a", "1"), ("a", "2")))
        await compact(rig, log)
        for number in range(12):  # each stays loaded until its index is written
            await rig.append(log, keyed((f"k{number}", "x")))
            await log.roll()
        assert [each.offset for each in await kept(log)] == list(range(1, 14))
        await rig.tasks.cancel_all()

    run(test)


@pytest.mark.parametrize("has_tombstone", [True, False])
def test_records_whose_time_wraps_around_are_compacted_like_others(has_tombstone: bool) -> None:
    async def test() -> None:
        rig, log = await compacted_log()
        rows = [
            Rec(b"old", b"a"),
            Rec(b"far", b"b", timestamp_delta_ms=2**63 - 1),
            Rec(None if has_tombstone else b"c", b"c", timestamp_delta_ms=5),
        ]
        batch = bytearray(build(rows, timestamp_ms=0))
        HEADER.pack_into(batch, 0, *read_header(batch)._replace(base_timestamp=NOW_MS, max_timestamp=NOW_MS + 5))
        HEADER.pack_into(batch, 0, *read_header(batch)._replace(crc=crc_of(batch)))
        await rig.append(log, bytes(batch))
        await rig.append(log, keyed(("a", "new"), timestamp_ms=NOW_MS + 9))
        assert await compact(rig, log)
        assert [(each.offset, each.timestamp) for each in await kept(log)] == [
            (1, NOW_MS + 2**63 - 1 - 2**64),
            (2, NOW_MS + 5),
            (3, NOW_MS + 9),
        ]
        assert (await batches_of(log))[0].max_timestamp == NOW_MS + 5

    run(test)
