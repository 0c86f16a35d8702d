"""Clients that are broken, lost, slow or greedy. Each harms itself only."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headpond.protocol.schema.metadata import MetadataRequest
from support.batches import build
from support.broker import BrokerProcess
from support.verbs import append, create_topic, end_offset, fetch, fetch_partition, fetch_request, produce_request
from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

MIB = 1 << 20
LINGERING_BYTES_MAX = 150 * MIB
"""More than what the settings bound for these few connections, far less than what the greedy ask for."""

TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(64))
GARBAGE = {
    "a size beyond the limit": struct.pack(">i", 2_000_000_000) + b"x" * 100,
    "a size just beyond the limit": struct.pack(">i", 104_857_601),
    "a negative size": struct.pack(">i", -1) + b"x" * 100,
    "the smallest size": struct.pack(">i", -(2**31)),
    "an empty frame": struct.pack(">i", 0),
    "a frame shorter than a header": struct.pack(">i", 5) + b"\0\3\0\1\0",
    "a header whose client id runs over": struct.pack(">ihhih", 12, 3, 12, 1, 30_000) + b"ab",
    "zeros": bytes(1_000),
    "ones": b"\xff" * 1_000,
    "TLS": TLS_HELLO,
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.fixture
def servers(broker: BrokerProcess) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def others_are_served(broker: BrokerProcess, topic_name: str) -> Iterator[Callable[[], None]]:
    """A well-behaved client beside the bad one: it produces and reads, and must not notice anything."""
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, topic_name)

        def check() -> None:
            offset = append(wire, topic, build([b"still here"]))
            assert fetch(wire, topic, offset).error_code == 0

        yield check
        check()


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_closes_the_connection_and_harms_nobody(
    servers: str, others_are_served: Callable[[], None], what: str
) -> None:
    with Wire(servers) as wire:
        wire.send_raw(GARBAGE[what])
        wire.assert_closed()
    others_are_served()


def test_random_bytes_in_well_formed_frames_harm_nobody(servers: str, others_are_served: Callable[[], None]) -> None:
    for seed in range(60):
        with Wire(servers) as wire:
            body = struct.pack(">hhih", seed, seed % 5, 1, -1) + random.Random(seed).randbytes(200)
            wire.send_raw(struct.pack(">i", len(body)) + body)
            wire.socket.shutdown(socket.SHUT_WR)
            try:
                while wire.socket.recv(65_536):
                    pass
            except ConnectionResetError:
                pass
    others_are_served()


@pytest.mark.parametrize(("sent", "hint"), [(TLS_HELLO, "TLS"), (b"GET / HTTP/1.1\r\n\r\n", "HTTP")])
def test_the_wrong_protocol_leaves_a_hint_in_the_log(broker: BrokerProcess, sent: bytes, hint: str) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.send_raw(sent)
        wire.assert_closed()
    eventually(lambda: hint in broker.logs())


def test_a_connection_that_ends_inside_a_frame_is_forgotten(
    servers: str, others_are_served: Callable[[], None]
) -> None:
    for sent in (b"\0", b"\0\0\1\0", struct.pack(">i", 1_000) + b"half"):
        with Wire(servers) as wire:
            wire.send_raw(sent)
    others_are_served()


def test_a_slow_sender_is_waited_for_and_blocks_nobody(servers: str, others_are_served: Callable[[], None]) -> None:
    with Wire(servers) as slow:
        sent, frame = slow.frame(MetadataRequest(topics=[]), 12)
        for position in range(len(frame)):
            others_are_served()
            slow.send_raw(frame[position : position + 1])
        assert slow.receive()[0] == sent


def test_announcing_much_and_sending_little_costs_little(
    broker: BrokerProcess, others_are_served: Callable[[], None]
) -> None:
    before = broker.rss_bytes()
    wires = [Wire(broker.bootstrap_servers) for _ in range(200)]
    try:
        for wire in wires:
            wire.send_raw(struct.pack(">i", 100 * MIB) + b"\0\0\0\x09" + bytes(1_000))
        others_are_served()
        assert broker.rss_bytes() - before < LINGERING_BYTES_MAX
    finally:
        for wire in wires:
            wire.close()


def test_a_client_that_never_reads_costs_bounded_memory_and_blocks_nobody(
    broker: BrokerProcess, others_are_served: Callable[[], None], topic_name: str
) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, topic_name + "-large")
        for _ in range(8):
            append(wire, topic, build([os.urandom(MIB - 1_000)]))
    before = broker.rss_bytes()
    greedy = [Wire(broker.bootstrap_servers) for _ in range(8)]
    try:
        most = 0
        for wire in greedy:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            request = fetch_request({topic: [fetch_partition(bytes_max=8 * MIB)]}, version=12)
            for _ in range(100):  # 800 MiB asked for by each
                wire.send(request, 12)
            others_are_served()
            most = max(most, broker.rss_bytes())
        for _ in range(50):
            others_are_served()
            most = max(most, broker.rss_bytes())
        assert most - before < LINGERING_BYTES_MAX
    finally:
        for wire in greedy:
            wire.close()


def test_fetches_behind_a_long_poll_do_not_pile_their_answers_up(
    broker: BrokerProcess, others_are_served: Callable[[], None], topic_name: str
) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, topic_name + "-large", configs={"max.message.bytes": str(16 * MIB)})
        empty = create_topic(wire, topic_name + "-empty")
        for _ in range(3):
            append(wire, topic, build([os.urandom(10 * MIB)]))
        before = broker.rss_bytes()
        wire.send(fetch_request({empty: [fetch_partition()]}, version=12, max_wait_ms=2_147_483_647), 12)
        for _ in range(100):
            wire.send(fetch_request({topic: [fetch_partition(bytes_max=50 * MIB)]}, version=12), 12)
        for _ in range(20):
            others_are_served()
        assert broker.rss_bytes() - before < LINGERING_BYTES_MAX


def test_half_sent_requests_of_many_connections_cost_no_more_than_their_budget_and_keep_nobody_waiting(
    broker: BrokerProcess, others_are_served: Callable[[], None], topic_name: str
) -> None:
    before = broker.rss_bytes()
    squatters = [Wire(broker.bootstrap_servers) for _ in range(60)]
    try:
        for wire in squatters:
            wire.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):  # as much as is taken at once
                wire.socket.send(struct.pack(">i", 100 * MIB) + b"\0\0\0\x09" + bytes(4 * MIB))
        others_are_served()
        with Wire(broker.bootstrap_servers) as wire:
            append(wire, create_topic(wire, topic_name + "-beside"), build([os.urandom(MIB - 1_000)]))
        assert broker.rss_bytes() - before < LINGERING_BYTES_MAX
    finally:
        for wire in squatters:
            wire.close()


def test_requests_of_100_mb_at_once_are_all_served(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"message.max.bytes": 100 * MIB, "headpond.flush": "os"}).start()
    count = 4
    batch = build([bytes(98_000_000)])
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap_servers)) for _ in range(count)]
        topic = create_topic(wires[0], "large", partitions=count, configs={"max.message.bytes": str(100 * MIB)})
        with ThreadPoolExecutor(count) as pool:
            sent = [
                pool.submit(wire.call, produce_request(topic, batch, version=9, partition=number, acks=1), 9)
                for number, wire in enumerate(wires)
            ]
            answers = [one.result() for one in sent]
    assert [answer.responses[0].partition_responses[0].error_code for answer in answers] == [0] * count
    assert "held memory" not in broker.logs()


def test_a_client_that_half_closes_after_its_last_request_is_answered(
    servers: str, others_are_served: Callable[[], None], topic_name: str
) -> None:
    with Wire(servers) as wire:
        topic = create_topic(wire, topic_name + "-last")
    requests: list[tuple[Any, int]] = [
        (MetadataRequest(topics=[]), 12),
        (produce_request(topic, build([b"last"]), version=9), 9),
        (fetch_request({topic: [fetch_partition(offset=1)]}, version=12, max_wait_ms=300), 12),
    ]
    for request, version in requests:
        with Wire(servers) as wire:
            sent = wire.send(request, version)
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.receive()[0] == sent
            wire.assert_closed()
    others_are_served()


def test_too_many_connections_are_refused_until_one_is_free(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"max.connections": 10}).start()

    def is_served(wire: Wire) -> bool:
        try:
            return bool(wire.call(MetadataRequest(topics=[]), 12).brokers)
        except (ConnectionClosed, BrokenPipeError, ConnectionResetError):
            return False

    wires = [Wire(broker.bootstrap_servers) for _ in range(10)]
    assert all(is_served(wire) for wire in wires)
    with Wire(broker.bootstrap_servers) as one_more:
        assert not is_served(one_more)
    assert all(is_served(wire) for wire in wires), "those who were there first stay"
    wires.pop().close()

    def there_is_room() -> bool:
        wire = Wire(broker.bootstrap_servers)
        wires.append(wire)
        return is_served(wire)

    eventually(there_is_room)
    for wire in wires:
        wire.close()
    assert "max.connections" in broker.logs()


def test_connections_from_one_address_have_a_limit_of_their_own(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"max.connections.per.ip": 2}).start()
    with Wire(broker.bootstrap_servers), Wire(broker.bootstrap_servers) as second:
        second.call(MetadataRequest(topics=[]), 12)
        with Wire(broker.bootstrap_servers) as third:
            third.assert_closed()


def test_an_idle_connection_is_closed_after_a_while(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"connections.max.idle.ms": 1_000}).start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(MetadataRequest(topics=[]), 12)
        wire.assert_closed()


def test_a_smaller_frame_limit_is_kept(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"socket.request.max.bytes": 100_000}).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        append(wire, topic, build([b"x" * 90_000]))
        with Wire(broker.bootstrap_servers) as other:
            other.send_raw(struct.pack(">i", 100_001))
            other.assert_closed()
        assert end_offset(wire, topic) == 1
    assert "socket.request.max.bytes" in broker.logs()
