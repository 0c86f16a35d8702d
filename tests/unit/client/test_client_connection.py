"""Connections of the internal client: who answers whom, what ends them, and what those who waited are told."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from headpond.client import BrokerUnreachable, Client, ClientError, ConnectionLost, RequestTimedOut
from headpond.client import connection as connection_module
from headpond.model import ErrorCode
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from simulation.harness.turns import settle
from unit.client.memory_cluster import DROP_AFTER, SWALLOW, MemoryCluster

API_VERSIONS, METADATA = 18, 3


def ask(*topics: str) -> MetadataRequest:
    wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def names(response: Any) -> list[str]:
    return [topic.name for topic in response.topics]


def test_requests_are_pipelined_and_answers_find_their_askers_in_any_order() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> list[list[str]]:
        connection = await client.connection()
        (server,) = cluster.connections
        server.hold()
        answers = [connection.send(ask(name), timeout_s=5) for name in "abc"]
        await settle()
        assert server.held is not None
        for data in reversed(server.held):
            server.deliver(data)
        return [names(await answer) for answer in answers]

    assert cluster.run(scenario) == [["a"], ["b"], ["c"]]


def test_an_answer_may_come_byte_by_byte() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> list[str]:
        connection = await client.connection()
        (server,) = cluster.connections
        server.hold()
        answer = connection.send(ask("a"), timeout_s=5)
        await settle()
        assert server.held is not None
        for byte in server.held[0]:
            server.deliver(bytes([byte]))
        return names(await answer)

    assert cluster.run(scenario) == ["a"]


def test_beyond_the_limit_requests_wait_and_leave_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "IN_FLIGHT_MAX", 2)
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        (server,) = cluster.connections
        server.hold()
        answers = [connection.send(ask(name), timeout_s=5) for name in "abcd"]
        await settle()
        assert server.held is not None and len(server.held) == 2, "two are with the broker"
        server.deliver(server.held[0])
        await settle()
        assert len(server.held) == 3, "an answer makes room for one"
        for data in server.held[1:]:
            server.deliver(data)
        await settle()
        server.deliver(server.held[3])
        assert [names(await answer) for answer in answers] == [["a"], ["b"], ["c"], ["d"]]

    cluster.run(scenario)


def test_nothing_is_written_while_the_transport_is_full() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        before = len(cluster.requests)
        connection.pause_writing()
        answer = connection.send(ask("a"), timeout_s=5)
        await settle()
        assert len(cluster.requests) == before
        connection.resume_writing()
        assert names(await answer) == ["a"]

    cluster.run(scenario)


def test_a_silent_broker_is_a_time_out_whose_outcome_is_unknown_and_the_connection_ends() -> None:
    cluster = MemoryCluster()
    cluster.faults = lambda node, request: SWALLOW

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        with pytest.raises(RequestTimedOut) as caught:
            await connection.send(ask("a"), timeout_s=5)
        assert caught.value.is_outcome_unknown
        assert not connection.is_open

    cluster.run(scenario)


def test_a_late_answer_is_dropped_and_the_connection_lives_on_where_others_were_answered() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        (server,) = cluster.connections
        server.hold()
        slow = connection.send(ask("slow"), timeout_s=1)
        other = connection.send(ask("other"), timeout_s=5)
        await client.clock.sleep(0.5)
        assert server.held is not None
        server.deliver(server.held[1])
        assert names(await other) == ["other"]
        with pytest.raises(RequestTimedOut):
            await slow
        assert connection.is_open
        server.deliver(server.held[0])
        assert connection.is_open
        server.held = None
        assert names(await connection.send(ask("next"), timeout_s=1)) == ["next"]

    cluster.run(scenario)


def test_a_lost_connection_tells_all_who_wait_and_the_next_request_makes_a_new_one() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        cluster.faults = lambda node, request: DROP_AFTER
        answers = [connection.send(ask(name), timeout_s=5) for name in "ab"]
        for answer in answers:
            with pytest.raises(ConnectionLost) as caught:
                await answer
            assert caught.value.is_outcome_unknown
        cluster.faults = lambda node, request: None
        assert names(await client.request(ask("c"))) == ["c"]
        assert len(cluster.connections) == 2

    cluster.run(scenario)


def test_closing_the_client_fails_what_is_in_flight_and_refuses_what_comes_later() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        connection = await client.connection()
        cluster.faults = lambda node, request: SWALLOW
        answer = connection.send(ask("a"), timeout_s=5)
        await client.close()
        with pytest.raises(ConnectionLost):
            await answer
        with pytest.raises(ClientError, match="closed"):
            await client.request(ask("b"))

    cluster.run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">ii", 4, 77_777),  # to a request that nobody sent
        struct.pack(">ih", 2, 1),
        struct.pack(">i", -1),
        struct.pack(">iihi", 10, 1, 0, 1_000_000),  # a list that is longer than the answer
    ],
)
def test_bytes_that_are_no_answer_make_the_broker_unreachable(answer: bytes) -> None:
    cluster = MemoryCluster()
    cluster.raw_answer = answer

    async def scenario(client: Client) -> None:
        with pytest.raises(BrokerUnreachable, match=r"could not reach a broker at b:1: .*protocol"):
            await client.metadata()

    cluster.run(scenario)


def test_a_broker_with_an_old_api_versions_says_which_it_knows_and_is_asked_again() -> None:
    cluster = MemoryCluster(versions={API_VERSIONS: (0, 2), METADATA: (4, 9)})

    async def scenario(client: Client) -> None:
        await client.metadata([])

    cluster.run(scenario)
    asked = [(type(message).__name__, version) for _, message, version in cluster.requests]
    assert asked == [("ApiVersionsRequest", 4), ("ApiVersionsRequest", 2), ("MetadataRequest", 9)]


def test_an_api_that_the_broker_lacks_is_said_by_name_and_nothing_is_sent() -> None:
    cluster = MemoryCluster(versions={8: (0, -1)})

    async def scenario(client: Client) -> None:
        with pytest.raises(ClientError, match="b:1 can't do OffsetCommit: it speaks nothing of it") as caught:
            await client.request(OffsetCommitRequest())
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION

    cluster.run(scenario)
    assert not cluster.asked("OffsetCommit")


def test_a_broker_that_is_not_there_is_reported_at_once_with_its_address() -> None:
    cluster = MemoryCluster(nodes=2)
    cluster.down = {1, 2}

    async def scenario(client: Client) -> float:
        with pytest.raises(BrokerUnreachable) as caught:
            await client.metadata()
        assert "could not reach a broker at b:1: connection refused" in str(caught.value)
        assert "could not reach a broker at b:2: connection refused" in str(caught.value)
        return client.clock.monotonic()

    assert cluster.run(scenario) == 0.0


def test_the_next_bootstrap_address_serves_when_the_first_does_not() -> None:
    cluster = MemoryCluster(nodes=2)
    cluster.down = {1}
    view = cluster.run(lambda client: client.metadata())
    assert sorted(view.brokers) == [1, 2]


def test_many_who_need_a_connection_at_once_share_one() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> None:
        await asyncio.gather(*(client.request(ask("a")) for _ in range(10)))

    cluster.run(scenario)
    assert len(cluster.connections) == 1
