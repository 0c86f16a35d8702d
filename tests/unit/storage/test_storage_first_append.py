"""Many producers meet at the first append of a topic: one of them has the files made, and nobody is held up after that."""

from __future__ import annotations

import asyncio

from unit.storage.storage_rig import NOW_MS, Rig

WAITING = 10
TURNS_MAX = 10_000


def test_once_the_files_are_there_those_who_waited_for_them_do_not_close_the_log_again() -> None:
    async def run() -> None:
        rig = Rig()
        log = await rig.open()
        waiting = [asyncio.ensure_future(log.make_room(100, NOW_MS, NOW_MS)) for _ in range(WAITING)]
        was_open = False
        for _ in range(TURNS_MAX):
            if all(waiter.done() for waiter in waiting):
                break
            is_open = log.can_append(100, NOW_MS, NOW_MS)
            assert is_open or not was_open, "open, and then closed again by somebody who had nothing to do"
            was_open = is_open
            rig.clock.advance(0.001)
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        assert log.can_append(100, NOW_MS, NOW_MS)

    asyncio.run(run())
