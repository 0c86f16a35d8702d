"""D1, D3, D4 on every disk that a power cut may leave: what was flushed is there, in order, whole, and nothing else."""

from __future__ import annotations

import msgspec

from crash.crash_play import Player, Promise, play
from unit.storage.storage_rig import CONFIG


def test_appends_with_and_without_flush() -> None:
    async def scenario(player: Player) -> None:
        for number in range(4):
            await player.append(count=1 + number % 2, flush=number % 2 == 1)

    play(scenario)


def test_appends_of_producers_with_checkpoints_in_between() -> None:
    async def scenario(player: Player) -> None:
        for number in range(3):
            await player.append(producer_id=7, base_sequence=number)
            await player.rig.checkpoint()

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


def test_retention_removes_the_oldest_segments_without_a_hole() -> None:
    async def scenario(player: Player) -> None:
        for _ in range(6):
            await player.append()
        await player.rig.checkpoint()
        player.rig.reconfigure(retention_bytes=250)
        player.removable = 6
        player.promise()
        assert await player.log.delete_old_segments(player.rig.clock.now_ms())
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
