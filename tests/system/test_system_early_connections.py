"""Clients that call while the broker starts: after a crash of the broker, that is all of them.

They are accepted before it can serve, and wait; whoever comes in the very turn of the loop in which it opens, or in
which its addresses are bound, is not forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headpond.protocol.schema.list_groups import ListGroupsRequest
from support.async_wire import AsyncWire
from support.broker import BrokerProcess
from support.variants import kinds

CLIENTS = 60
RESTARTS = 5
KNOCK_S = 0.002
"""So often that somebody comes in every turn of the starting broker's loop."""


async def call_until_answered(bootstrap: str) -> int:
    while True:
        wire = AsyncWire(bootstrap)
        try:
            return int((await wire.call(ListGroupsRequest(), 4)).error_code)
        except ConnectionError:
            await asyncio.sleep(KNOCK_S)
        finally:
            wire.close()


@pytest.mark.parametrize("host", kinds(["127.0.0.1", ""], ordinary={""}), ids=["one address", "all addresses"])
def test_everybody_who_calls_while_the_broker_starts_is_answered(
    make_broker: Callable[..., BrokerProcess], host: str
) -> None:
    broker = make_broker().start()
    bootstrap = broker.bootstrap_servers
    broker.host = host

    async def call_while_it_starts() -> list[int]:
        calls = [asyncio.create_task(call_until_answered(bootstrap)) for _ in range(CLIENTS)]
        await asyncio.to_thread(broker.start)
        return await asyncio.gather(*calls)

    for _ in range(RESTARTS):
        broker.kill()
        assert asyncio.run(call_while_it_starts()) == [0] * CLIENTS
