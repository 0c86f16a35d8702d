"""Large requests, through the dispatcher: in slices and in order, while others are answered."""

from __future__ import annotations

import asyncio

from headpond.broker.requests.pacing import (
    LARGE_AT_ONCE,
    MIDDLING_BYTES_MAX,
)
from headpond.protocol.codec import decoder
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse
from unit.broker.connection_rig import receive
from unit.broker.coordinator_cases import GROUP
from unit.broker.served_rig import Served, answers, describing, served


def test_a_large_request_is_answered_as_a_small_one_is_and_the_loop_turns_meanwhile() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        request = describing(20_000)
        assert len(request) > MIDDLING_BYTES_MAX
        before_s = world.clock.monotonic()
        receive(connection, request)
        await world.until(lambda: bool(transport.written))
        [(correlation_id, body)] = answers(transport)
        response, _ = decoder(DescribeGroupsResponse, 0)(body, 0)
        assert correlation_id == 1
        assert [row.group_id for row in response.groups] == [f"{GROUP}{number}" for number in range(20_000)]
        pauses = (world.clock.monotonic() - before_s) / 0.002
        assert pauses >= 20_000 * 16 // 8_192  # by the handler alone
        assert world.meters.of("DescribeGroups").total == 1

    served(scenario)


def test_what_comes_after_a_large_request_is_answered_after_it() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(6_000, 1) + describing(1, 2) + describing(3_000, 3) + describing(1, 4))
        await world.until(lambda: transport.written.count(b"\0\0\0\4") > 0 and len(answers(transport)) == 4)
        assert [correlation_id for correlation_id, _ in answers(transport)] == [1, 2, 3, 4]

    served(scenario)


def test_others_are_answered_between_the_slices_of_a_large_request() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        other, other_transport = world.connect()
        receive(connection, describing(20_000))
        for number in range(10):
            receive(other, describing(1, number))
            await world.until(lambda: len(answers(other_transport)) == number + 1)  # noqa: B023
        assert not transport.written

    served(scenario)


def test_a_large_request_that_is_malformed_closes_its_connection_and_frees_its_place() -> None:
    async def scenario(world: Served) -> None:
        for _ in range(LARGE_AT_ONCE + 1):
            connection, transport = world.connect()
            whole = describing(10_000)
            broken = whole[:-5]
            receive(connection, (len(broken) - 4).to_bytes(4, "big") + broken[4:])
            await world.until(lambda: transport.closing)  # noqa: B023
            assert not transport.written
        assert world.server.dropped_counts["malformed"] == LARGE_AT_ONCE + 1
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))

    served(scenario)


def test_a_client_that_has_gone_is_not_worked_for() -> None:
    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(50_000))
        await asyncio.sleep(0)
        connection.connection_lost(None)
        other, other_transport = world.connect()
        before_s = world.clock.monotonic()
        receive(other, describing(6_000))
        await world.until(lambda: bool(other_transport.written))
        assert world.clock.monotonic() - before_s < 0.5
        assert not transport.written

    served(scenario)
