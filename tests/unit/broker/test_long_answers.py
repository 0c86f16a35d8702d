"""Long answers, through the dispatcher: put together, counted and let go in slices, a few at a time."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from headpond.broker.handlers.groups import describe_groups
from headpond.broker.requests import dispatch as dispatching
from headpond.broker.requests import long_answers
from headpond.broker.requests.context import Context
from headpond.broker.requests.letting_go import DROPPED_AT_ONCE, let_go
from headpond.broker.requests.pacing import (
    LONG_AT_ONCE,
)
from headpond.coordination.slices import finish_now
from headpond.protocol.schema.describe_groups import DescribeGroupsResponse
from headpond.telemetry.requests import RequestMeters
from unit.broker.connection_rig import receive
from unit.broker.served_rig import Served, answers, describing, served


def test_an_answer_that_nobody_could_receive_closes_the_connection_with_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(long_answers, "ANSWER_BYTES_MAX", 200_000)
    monkeypatch.setattr(long_answers, "PIECE_BYTES", 10_000)

    async def scenario(world: Served) -> None:
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))  # 110 KB
        receive(connection, describing(20_000))
        await world.until(lambda: transport.closing)
        assert len(answers(transport)) == 1

    served(scenario)
    assert "the answer to its DescribeGroups request has more than 200000 bytes" in caplog.text


def test_errors_of_a_long_answer_are_counted_in_slices() -> None:
    row = DescribeGroupsResponse.DescribedGroup
    response = DescribeGroupsResponse(groups=[row(error_code=number % 2 * 16) for number in range(50_000)])
    counting = long_answers.counted(response)
    pauses = 0
    while True:
        try:
            next(counting)
            pauses += 1
        except StopIteration as finished:
            assert finished.value == {16: 25_000}
            break
    assert pauses >= 50_000 // long_answers.CODES_AT_ONCE

    async def scenario(world: Served) -> None:
        world.broker.groups.runtime.resign(0)
        connection, transport = world.connect()
        receive(connection, describing(6_000))
        await world.until(lambda: bool(transport.written))
        await world.until(lambda: any(times > 10 for _, times in world.meters.errors.points()))

    served(scenario)


class Kept:
    """What can be seen to go away."""


def test_a_message_is_let_go_a_part_at_a_time_and_what_others_hold_stays() -> None:
    members = DescribeGroupsResponse.DescribedGroupMember
    shared = [members(member_id="m")]
    witness = Kept()
    is_there = weakref.ref(witness)
    groups: list[Any] = [
        DescribeGroupsResponse.DescribedGroup(members=[members() for _ in range(1_000)]) for _ in range(50)
    ]
    groups += [DescribeGroupsResponse.DescribedGroup(members=shared), DescribeGroupsResponse.DescribedGroup()]
    groups[-1].group_id = witness
    del witness
    last_reference: list[Any] = [DescribeGroupsResponse(groups=groups)]
    del groups
    work = let_go(last_reference)
    pauses = sum(1 for _ in work)
    assert pauses >= 50_000 // DROPPED_AT_ONCE
    gc.collect()
    assert is_there() is None
    assert not last_reference
    assert shared == [members(member_id="m")]


def test_long_answers_are_put_together_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    async def scenario(world: Served) -> None:
        nonlocal most
        contexts: list[Context] = []
        handle = describe_groups.handle

        async def watched(ctx: Context, request: Any) -> Any:
            nonlocal most
            contexts.append(ctx)
            response = await handle(ctx, request)
            most = max(most, sum(each.is_long for each in contexts))
            return response

        monkeypatch.setattr(describe_groups, "handle", watched)
        connections = [world.connect() for _ in range(LONG_AT_ONCE + 8)]
        for connection, _ in connections:
            receive(connection, describing(1_200, name="g"))
        await world.until(lambda: all(transport.written for _, transport in connections))
        assert len(contexts) == len(connections)

    served(scenario)
    assert 1 < most <= LONG_AT_ONCE


def test_the_slices_of_an_answer_that_nothing_is_wrong_with_can_be_finished_at_once() -> None:
    route = dispatching.Route(15, 0, RequestMeters().of("DescribeGroups"))
    response = DescribeGroupsResponse(groups=[DescribeGroupsResponse.DescribedGroup(group_id="g")] * 3_000)
    parts = finish_now(long_answers.encoded(route, 7, response))
    assert b"".join(bytes(part) for part in parts) == route.frame(7, response)
