"""D1, D3, D4 on every disk that a power cut may leave: what was flushed is there, in order, whole, and nothing else."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from crash.crash_play import Player, Promise, check, play, some
from headpond.model import StorageFailed, TopicId
from headpond.storage.commit import checkpoint_of_a_log as log_checkpoint
from headpond.storage.commit import checkpoint_rounds
from headpond.storage.recovery import index_files
from simulation.harness.disk import SimulatedDisk
from simulation.harness.trace import DirectorySynced, Op
from unit.storage.storage_rig import CONFIG, TOPIC_ID, TP, Rig, make_batch, read_all


def test_appends_with_and_without_flush() -> None:
    async def scenario(player: Player) -> None:
        for number in range(4):
            await player.append(count=1 + number % 2, flush=number % 2 == 1)

    play(scenario)


def test_appends_of_producers_with_checkpoints_in_between() -> None:
    async def scenario(player: Player) -> None:
        for number in range(3):
            await player.append(producer_id=7, base_sequence=number, flush=number == 1)
            await player.append(producer_id=8, base_sequence=number, flush=False)
            if number:
                log_checkpoint.take_snapshot(player.log)
            await player.rig.checkpoint()
            await player.flush()

    play(scenario)


def test_rolls() -> None:
    async def scenario(player: Player) -> None:
        for number in range(7):
            await player.append(flush=number in (1, 5), epoch=number // 3)

    play(scenario, config=msgspec.structs.replace(CONFIG, segment_bytes=200))


def test_rolls_with_checkpoints() -> None:
    async def scenario(player: Player) -> None:
        for number in range(6):
            await player.append(flush=False)
            if number % 2:
                await player.rig.checkpoint()
                player.flushed = len(player.batches)
                player.promise()

    play(scenario, config=msgspec.structs.replace(CONFIG, segment_bytes=200))


@pytest.fixture(params=["one by one", "all at once"])
def small_bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real ones recovery would read a log of some hundred bytes from its start, and believe nothing."""
    monkeypatch.setattr(index_files, "INDEX_LAG_BYTES", 350)
    monkeypatch.setattr(log_checkpoint, "SNAPSHOT_BYTES", 1)
    if request.param == "all at once":
        monkeypatch.setattr(checkpoint_rounds, "SYNC_ALL_FROM_LOGS", 1)


@pytest.mark.usefixtures("small_bounds")
def test_a_segment_that_grows_from_checkpoint_to_checkpoint_while_timestamps_go_back() -> None:
    async def scenario(player: Player) -> None:
        for number in range(10):
            # Neither peak is that of the batch that an index entry leads to.
            await player.append(flush=False, later_ms={0: 50, 5: 100}.get(number, 0))
            await player.rig.checkpoint()
            player.flushed = len(player.batches)
            player.promise()

    play(scenario, states_per_moment_max=16)


@pytest.mark.usefixtures("small_bounds")
def test_a_roll_soon_after_the_segments_last_checkpoint() -> None:
    async def scenario(player: Player) -> None:
        for number in range(7):
            await player.append(later_ms={0: 50, 5: 100}.get(number, 0))
            if number in (4, 6):
                await player.rig.checkpoint()  # the second one has little to add to the indexes, and leaves that
        await player.log.roll()
        await player.append()
        await player.rig.checkpoint()
        await player.append()
        again = await start_again(player)
        await again.rig.checkpoint()
        await again.append()

    play(scenario, states_per_moment_max=24)


@pytest.mark.usefixtures("small_bounds")
def test_a_truncation_and_a_kill_leave_index_files_that_the_next_checkpoint_puts_right() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(5):
            await player.append(later_ms=200)
        await player.rig.checkpoint()
        player.flushed = 3
        player.promise()
        await player.log.truncate_to(3)
        del player.batches[3:]
        player.promise()
        for _ in range(3):
            await player.append(epoch=1)
        again = await start_again(player)
        await again.rig.checkpoint()
        await again.append(epoch=1)
        await again.rig.checkpoint()

    play(scenario, states_per_moment_max=24)


def test_truncation_is_never_undone_and_what_follows_it_is_kept() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(5):
            await player.append()
        await player.rig.checkpoint()
        player.flushed = 2
        player.promise()  # while it runs the log may end anywhere from the cut on
        await player.log.truncate_to(2)
        del player.batches[2:]
        player.promise()
        for _ in range(2):
            await player.append(epoch=1, value_bytes=24)
        await player.rig.checkpoint()

    play(scenario, config=msgspec.structs.replace(CONFIG, segment_bytes=200))


def test_truncation_inside_one_segment_with_its_index_on_disk() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(6):
            await player.append()
        await player.rig.checkpoint()
        player.flushed = 3
        player.promise()
        await player.log.truncate_to(3)
        del player.batches[3:]
        player.promise()
        await player.append(epoch=1, value_bytes=60)
        await player.append(epoch=1, value_bytes=8)

    play(scenario)


def test_a_log_that_is_cut_before_its_files_were_synced_gets_nothing_back() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(4):
            await player.append()
        player.flushed = 2
        player.promise()
        await player.log.truncate_to(2)
        del player.batches[2:]
        player.promise()
        await player.append(epoch=1, value_bytes=24)

    play(scenario)


def test_a_log_that_begins_anew_before_its_files_were_synced_gets_nothing_back() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(3):
            await player.append()
        player.flushed = 0
        player.removable = 3
        player.promise()
        await player.log.restart_at(1)
        player.batches.clear()
        player.removable = 0
        player.promise()
        await player.append(epoch=1, value_bytes=24)

    play(scenario)


def test_retention_removes_the_oldest_segments_without_a_hole() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(10):
            await player.append()
        await player.rig.checkpoint()
        player.rig.reconfigure(retention_bytes=250)
        player.removable = 10
        player.promise()
        assert await player.log.delete_old_segments(player.rig.clock.now_ms()) == 3
        player.batches = player.batches[player.log.log_start_offset :]
        player.flushed = len(player.batches)
        player.removable = 0
        player.rig.disk.mark(Promise(tuple(player.batches), player.flushed))
        player.rig.clock.advance(2)  # the files are removed for good
        await player.append()

    play(scenario, config=msgspec.structs.replace(CONFIG, segment_bytes=200))


def test_clean_shutdown_and_restart() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(3):
            await player.append(producer_id=3, base_sequence=len(player.batches))
        await player.rig.close()
        log = await player.rig.open()
        again = Player(player.rig, log)
        again.batches, again.flushed = player.batches, player.flushed
        await again.append()

    play(scenario)


async def start_again(player: Player) -> Player:
    """kill -9 and a restart: what the page cache had is found again, and counts as flushed from then on."""
    await player.rig.die()
    again = Player(player.rig, await player.rig.open())
    again.batches = [batch.data for batch in await read_all(again.log)]
    assert again.log.flushed_end_offset == again.log.log_end_offset
    again.flushed = len(again.batches)
    again.promise()
    return again


def test_what_a_killed_broker_had_not_flushed_is_durable_once_the_next_one_serves_it() -> None:
    async def scenario(player: Player) -> None:
        await player.append()
        await player.append(flush=False)
        await player.append(flush=False)
        again = await start_again(player)
        assert len(again.batches) == 3
        await again.append()

    play(scenario)


def test_a_broker_killed_while_it_made_a_segment_leaves_one_that_can_be_used() -> None:
    async def scenario(player: Player) -> None:
        await player.append(count=2)

        def die_before_the_folder_is_synced(operation: Op) -> None:
            if isinstance(operation, DirectorySynced):
                raise OSError("killed")

        player.rig.disk.before_operation = die_before_the_folder_is_synced
        with pytest.raises(StorageFailed):
            await player.log.roll()
        player.rig.disk.before_operation = None
        again = await start_again(player)
        assert again.log.segments.base_offsets == [0, 2]
        await again.append()

    play(scenario, least_states=50)


def test_a_deleted_topics_records_never_come_back_under_the_same_name() -> None:
    new_id = TopicId(bytes(16 * [7]))

    async def scenario(player: Player) -> None:
        await player.append()
        await player.rig.checkpoint()
        player.flushed = 0
        player.removable = len(player.batches)
        player.promise()
        await player.rig.manager.delete(TP)
        player.rig.disk.mark("deleted")
        log = player.rig.manager.create(TP, new_id, player.rig.config)
        await player.rig.append(log, make_batch(mark=77), flush=True)
        player.rig.disk.mark("acknowledged")
        player.rig.clock.advance(2)

    async def run() -> None:
        rig = Rig()
        player = Player(rig, await rig.open())
        player.promise()
        start = len(rig.disk.trace)
        await scenario(player)
        await asyncio.sleep(0)
        await rig.tasks.cancel_all()
        old = player.batches[0]
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(100), first_operation=start):
            is_deleted = "deleted" in state.marks
            again = Rig(rig.disk.after(state), known={TP: new_id if is_deleted else TOPIC_ID})
            found = [batch.data for batch in await read_all(await again.open())]
            if is_deleted:
                assert old not in found, state.story
                assert len(found) == 1 or "acknowledged" not in state.marks, state.story
            await again.tasks.cancel_all()
            count += 1
        assert count > some(50)

    asyncio.run(run())


def test_a_power_cut_while_the_next_start_recovers_from_one() -> None:
    async def run() -> None:
        rig = Rig()
        player = Player(rig, await rig.open())
        for number in range(4):
            await player.append(producer_id=7, base_sequence=number)
        await rig.tasks.cancel_all()
        second = Rig(SimulatedDisk(rig.disk.durable_image()))
        second.disk.mark(Promise(tuple(player.batches), len(player.batches)))
        start = len(second.disk.trace)
        await second.open()
        await second.tasks.cancel_all()
        count = 0
        for state in second.disk.crash_states(states_per_moment_max=some(60), first_operation=start):
            await check(second.disk.after(state), state, CONFIG)
            count += 1
        assert count > (5 if Rig.has_journal else 0)

    asyncio.run(run())
