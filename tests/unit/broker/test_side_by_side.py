"""A request for many partitions is answered some at a time."""

from __future__ import annotations

import asyncio

from penstock.broker.side_by_side import AT_ONCE, side_by_side


def test_answers_come_in_order_and_no_more_than_so_many_are_under_way() -> None:
    async def run() -> None:
        under_way = most = turns = 0

        async def answer(number: int) -> int:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            return 2 * number

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count_turns())
        wanted = 10 * AT_ONCE + 1
        assert await side_by_side(answer, range(wanted)) == [2 * number for number in range(wanted)]
        counting.cancel()
        assert most == AT_ONCE
        assert turns > 10

    asyncio.run(run())


def test_nothing_wanted_is_nothing_answered() -> None:
    async def answer(_: int) -> int:
        raise AssertionError

    assert asyncio.run(side_by_side(answer, [])) == []
