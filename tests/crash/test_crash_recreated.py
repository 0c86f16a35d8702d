"""A power cut at any moment of deleting a topic and making it anew: the new one keeps its records, and only its own."""

from __future__ import annotations

import asyncio

from crash.crash_play import some
from headpond.model import TopicId
from simulation.harness.crashes import CrashState
from simulation.harness.disk import SimulatedDisk
from unit.storage.storage_rig import CONFIG, TP, Rig, make_batch, read_all, writable

OTHER_ID = TopicId(bytes(16 * [9]))
OLD, NEW = 1, 2


def test_a_topic_made_anew_keeps_what_was_flushed_and_never_shows_its_predecessors_records() -> None:
    async def run() -> None:
        rig = Rig()
        old = await rig.open()
        for _ in range(12):
            await rig.append(old, make_batch(mark=OLD), flush=True)
        await old.advance_log_start(7)
        await rig.checkpoint()
        start = len(rig.disk.trace)
        await rig.manager.delete(TP)
        log = rig.manager.create(TP, OTHER_ID, CONFIG)
        for number in range(3):
            await rig.append(log, make_batch(mark=NEW), flush=True)
            rig.disk.mark(number + 1)
        data, header = writable(make_batch(mark=NEW))
        log.append(data, header, leader_epoch=0, now_ms=rig.clock.now_ms())
        await rig.checkpoint()
        await rig.tasks.cancel_all()
        count = 0
        for state in rig.disk.crash_states(states_per_moment_max=some(40), first_operation=start):
            await check(rig.disk.after(state), state)
            count += 1
        assert count > some(100), count

    asyncio.run(run())


async def check(disk: SimulatedDisk, state: CrashState) -> None:
    flushed = max((mark for mark in state.marks if isinstance(mark, int)), default=0)
    rig = Rig(disk, known={TP: OTHER_ID})
    log = await rig.open()
    found = await read_all(log)
    expected = make_batch(mark=NEW)[61:]
    assert all(batch.data[61:] == expected for batch in found), state.story
    assert log.log_start_offset == 0 and flushed <= log.log_end_offset == len(found) <= 4, (flushed, log, state.story)
    await rig.tasks.cancel_all()
