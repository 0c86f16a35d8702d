"""What connections may hold: answers that can't leave, and requests that are partly received."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headpond.broker.net.answering import WAITING_BYTES_MAX
from headpond.broker.net.connection import Connection
from headpond.broker.net.response_memory import GRACE_S, HELD_S_MAX
from headpond.broker.net.server import MEMORY_WATCH_SECONDS, SWEEP_SECONDS
from headpond.protocol import frame_memory
from headpond.protocol.frame_memory import SMALL_BYTES
from simulation.harness.turns import settle
from unit.broker.connection_rig import Transport, World, in_loop, receive, request

MIB = 1 << 20
FETCH, PRODUCE = 1, 0


class Lent:
    """Bytes of a file."""

    def __init__(self, size_bytes: int) -> None:
        self.view = memoryview(bytes(size_bytes))

    def __len__(self) -> int:
        return len(self.view)


class Handlers:
    """Fetches that answer ``answer`` at once, produces that are parked."""

    def __init__(self, world: World, answer: Any = b"fetched") -> None:
        self.fetched = 0
        self.answer = answer
        self.produced: list[Any] = []
        world.server.add_hot_handler(FETCH, range(1), self.fetch, answers_are_small=False)
        world.server.add_hot_handler(PRODUCE, range(1), self.produce, answers_are_small=True)

    def fetch(self, connection: Connection, *frame: Any) -> None:
        self.fetched += 1
        connection.respond(self.answer)

    def produce(self, connection: Connection, *frame: Any) -> None:
        self.produced.append(connection.park())


def of_api(key: int, data: bytes) -> bytes:
    return data[:4] + key.to_bytes(2, "big") + data[6:]


def a_fetch() -> bytes:
    return of_api(FETCH, request("e", b"fetch"))


def a_produce(size_bytes: int = 100) -> bytes:
    return of_api(PRODUCE, request("e", bytes(size_bytes)))


def stops_reading(connection: Connection, transport: Transport, unsent_bytes: int) -> None:
    transport.unsent_bytes = unsent_bytes
    connection.pause_writing()


def test_a_fetch_is_not_read_before_every_request_ahead_of_it_is_answered() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        connection, transport = world.connect()
        receive(connection, request("p", b"poll") + a_fetch() + a_fetch())
        assert handlers.fetched == 0
        assert not transport.reading
        connection.answer_parked(world.script.parked[b"poll"], b"polled")
        await asyncio.sleep(0)
        assert transport.written == b"polledfetchedfetched"
        assert transport.reading

    in_loop(check)


def test_a_produce_does_not_wait_for_a_long_poll() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        connection, _ = world.connect()
        receive(connection, request("p", b"poll") + a_produce())
        assert len(handlers.produced) == 1

    in_loop(check)


def test_a_connection_whose_answers_wait_is_not_served_beyond_a_number_of_bytes() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        large = b"l" * (WAITING_BYTES_MAX // 2)
        receive(connection, request("p", b"first") + request("e", large) * 4)
        waiting = 3  # the last of them was served while there was not more than the limit
        assert len(world.script.served) == 1 + waiting
        assert not transport.reading
        assert world.server.response_memory.held_bytes == waiting * len(large)
        world.script.parked[b"first"].complete([b"1"])
        await asyncio.sleep(0)
        assert transport.written == b"1" + large * 4
        assert transport.reading
        assert world.server.response_memory.held_bytes == 0

    in_loop(check)


def test_answers_that_become_ready_out_of_turn_are_counted_until_they_leave_or_their_client_does() -> None:
    async def check(world: World) -> None:
        clients = [world.connect() for _ in range(2)]
        slots = []
        for number, (connection, _) in enumerate(clients):
            receive(connection, request("p", b"%d" % number) + request("p", b"l%d" % number))
            slots.append(world.script.parked[b"%d" % number])
            world.script.parked[b"l%d" % number].complete([bytes(1_000), Lent(70_000)])
        assert world.server.response_memory.held_bytes == 2 * 71_000
        clients[0][0].connection_lost(None)
        assert world.server.response_memory.held_bytes == 71_000
        slots[1].complete([b"1"])
        assert world.server.response_memory.held_bytes == 0
        await asyncio.sleep(0)
        assert len(clients[1][1].written) == 71_001

    in_loop(check)


def test_a_large_answer_is_handed_over_when_it_is_ready_so_that_it_counts_before_others_are_made() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("h", b"large"))
        transport.write = lambda data: stops_reading(connection, transport, len(data))  # type: ignore[method-assign]
        world.script.parked[b"large"].complete([bytes(MIB)])
        assert world.server.response_memory.held_bytes == MIB

    in_loop(check)


def test_what_a_file_has_lent_is_not_counted_once_it_is_with_the_transport() -> None:
    async def check(world: World) -> None:
        connection, transport = world.connect()
        receive(connection, request("p", b"1") + request("p", b"2"))
        transport.write = lambda data: stops_reading(connection, transport, 10 * MIB)  # type: ignore[method-assign]
        world.script.parked[b"1"].complete([bytes(5_000), Lent(10 * MIB)])
        unlent_bytes = 5_000 + 1_000  # what was in the transport before counts as our own
        assert world.server.response_memory.held_bytes == unlent_bytes
        transport.write = lambda data: None  # type: ignore[method-assign]
        world.script.parked[b"2"].complete([bytes(100_000)])
        await asyncio.sleep(0)
        assert world.server.response_memory.held_bytes == unlent_bytes + 100_000
        connection.resume_writing()
        assert world.server.response_memory.held_bytes == 0

    in_loop(check)


def test_above_half_of_the_budget_fetches_are_cut_and_above_it_large_answers_wait_but_produces_do_not() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        slow, slow_transport = world.connect()
        stops_reading(slow, slow_transport, 600)
        assert world.server.responses_are_piling_up
        others = [world.connect() for _ in range(3)]
        for connection, transport in others:
            receive(connection, a_fetch())
            await asyncio.sleep(0)
            assert transport.written == b"fetched"
        slower, slower_transport = world.connect()
        stops_reading(slower, slower_transport, 600)
        receive(others[0][0], a_fetch())
        receive(others[1][0], request("e", b"metadata"))
        receive(others[2][0], a_produce())
        assert handlers.fetched == 3
        assert world.script.served == []
        assert len(handlers.produced) == 1
        assert [transport.reading for _, transport in others] == [False, False, True]
        slower.connection_lost(None)
        await asyncio.sleep(0)
        assert handlers.fetched == 4
        assert world.script.served == [b"metadata"]
        assert [transport.reading for _, transport in others] == [True, True, True]

    in_loop(check, response_memory_bytes_max=1_000)


def test_those_who_wait_for_room_go_on_one_by_one_until_there_is_none() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        slow, slow_transport = world.connect()
        stops_reading(slow, slow_transport, 2_000)
        waiting = [world.connect() for _ in range(4)]
        for connection, transport in waiting:
            # none of them reads its answer
            def hold(data: bytes, connection: Connection = connection, transport: Transport = transport) -> None:
                stops_reading(connection, transport, 700)

            transport.write = hold  # type: ignore[method-assign]
            receive(connection, a_fetch())
        waiting[1][0].connection_lost(None)
        slow.connection_lost(None)
        await asyncio.sleep(0)
        assert handlers.fetched == 2, "after two answers there is no room any more"
        assert world.server.response_memory.held_bytes == 1_400

    in_loop(check, response_memory_bytes_max=1_000)


def test_a_request_that_was_dispatched_with_many_others_waits_for_room() -> None:
    async def check(world: World) -> None:
        slow, slow_transport = world.connect()
        stops_reading(slow, slow_transport, 2_000)
        waiting, _ = world.connect()
        task = asyncio.ensure_future(world.server.room_for_an_answer(waiting.park()))
        await settle(3)
        assert not task.done()
        slow.connection_lost(None)
        assert await task

    in_loop(check, response_memory_bytes_max=1_000)


def test_a_request_whose_client_has_gone_does_not_go_on_waiting_for_room() -> None:
    async def check(world: World) -> None:
        slow, slow_transport = world.connect()
        stops_reading(slow, slow_transport, 2_000)
        waiting, _ = world.connect()
        task = asyncio.ensure_future(world.server.room_for_an_answer(waiting.park()))
        await asyncio.sleep(0)
        waiting.connection_lost(None)
        assert not await task
        assert not await world.server.room_for_an_answer(waiting.park()), "nor does it begin to"
        assert not world.server.response_memory.has_waiters

    in_loop(check, response_memory_bytes_max=1_000)


@pytest.mark.parametrize("taken", [0, 1], ids=["reads nothing", "reads a byte at a time"])
def test_a_peer_that_does_not_read_while_others_wait_is_put_out(taken: int) -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        slow, slow_transport = world.connect()
        stops_reading(slow, slow_transport, 10_000)
        steady, steady_transport = world.connect()
        stops_reading(steady, steady_transport, 10_000)
        seconds = 0
        while not slow_transport.aborted and seconds < 10:
            if seconds == 0:
                for _ in range(10):  # nobody waits, nothing is asked of them
                    world.clock.advance(MEMORY_WATCH_SECONDS)
                waiting, _ = world.connect()
                receive(waiting, a_fetch())
            seconds += 1
            world.clock.stall(MEMORY_WATCH_SECONDS)
            slow_transport.unsent_bytes -= taken
            steady_transport.unsent_bytes -= int(10_000 / HELD_S_MAX)
            world.clock.advance(0)
        assert seconds <= 2 + GRACE_S / MEMORY_WATCH_SECONDS
        assert not steady_transport.aborted
        assert world.server.dropped_counts["memory"] == 1
        assert handlers.fetched == 0
        steady.connection_lost(None)
        await asyncio.sleep(0)
        assert handlers.fetched == 1

    in_loop(check, response_memory_bytes_max=5_000)


def test_what_a_peer_held_when_others_waited_long_ago_is_not_held_against_it() -> None:
    async def check(world: World) -> None:
        Handlers(world)
        steady, steady_transport = world.connect()
        stops_reading(steady, steady_transport, 10_000)
        first, _ = world.connect()
        receive(first, a_fetch())
        world.clock.advance(MEMORY_WATCH_SECONDS)
        first.connection_lost(None)
        world.clock.stall(600)
        steady_transport.unsent_bytes = 9_000  # of later answers, not of those from then
        world.clock.advance(0)
        second, _ = world.connect()
        receive(second, a_fetch())
        for _ in range(2):
            world.clock.advance(MEMORY_WATCH_SECONDS)
        assert not steady_transport.aborted, "it has its time of grace"
        for _ in range(5):
            world.clock.advance(MEMORY_WATCH_SECONDS)
        assert steady_transport.aborted

    in_loop(check, response_memory_bytes_max=5_000)


def test_answers_that_wait_behind_an_endless_poll_while_others_wait_cost_the_connection() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        squatter, squatting = world.connect()
        receive(squatter, request("p", b"for ever") + request("e", b"x" * 6_000))
        waiting, _ = world.connect()
        receive(waiting, a_fetch())
        for _ in range(5):
            world.clock.advance(1)
        assert squatting.aborted
        await asyncio.sleep(0)
        assert handlers.fetched == 1, "without waiting for the end of the connection"

    in_loop(check, response_memory_bytes_max=5_000)


# --- requests


def receive_while_read(connection: Connection, transport: Transport, data: bytes) -> bytes:
    """Returns what is left in the socket."""
    while data and transport.reading:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        connection.buffer_updated(count)
    return data


def half(size_bytes: int, sent_bytes: int) -> bytes:
    return a_produce(size_bytes)[:sent_bytes]


def test_a_producer_gets_through_between_squatters_who_send_a_byte_now_and_then() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        squatters = []
        for _ in range(27):
            connection, transport = world.connect()
            receive(connection, half(2_000_000, 70_000))
            squatters.append((connection, transport))
        producer, transport = world.connect()
        data = a_produce(1_000_000)
        receive(producer, data[: MIB // 4])
        assert not transport.reading, "there is no memory for it: this test shows something"
        seconds = 0
        while not transport.reading:
            seconds += 1
            assert seconds <= 10
            world.clock.stall(1)
            for connection, squatting in squatters:
                if squatting.reading and not squatting.aborted:
                    receive(connection, b"x")
            world.clock.advance(0)
            await asyncio.sleep(0)
        receive(producer, data[MIB // 4 :])
        assert len(handlers.produced) == 1
        assert all(transport.aborted for _, transport in squatters[:5])
        assert not transport.aborted

    in_loop(check, request_memory_bytes_max=32 * MIB, request_bytes_max=20 * MIB)


def test_ten_requests_of_which_two_fit_at_once_are_all_served() -> None:
    async def check(world: World) -> None:
        handlers = Handlers(world)
        size_bytes, count = 10_000_000, 10
        data = a_produce(size_bytes)
        clients = [world.connect() for _ in range(count)]
        left = dict.fromkeys(range(count), data)
        while left:
            for number in list(left):  # each sends what the broker reads, a megabyte at a time
                now, later = left[number][:MIB], left[number][MIB:]
                left[number] = receive_while_read(*clients[number], now) + later
                if not left[number]:
                    del left[number]
            world.clock.advance(0.1)
            await asyncio.sleep(0)
            assert world.server.frame_memory.in_use_bytes <= 32 * MIB
        assert len(handlers.produced) == count
        assert not any(transport.aborted for _, transport in clients)
        assert world.server.frame_memory.in_use_bytes == 0

    in_loop(check, request_memory_bytes_max=32 * MIB, request_bytes_max=11 * MIB)


def test_however_many_connections_begin_large_requests_what_is_kept_of_each_is_small() -> None:
    async def check(world: World) -> None:
        Handlers(world)
        budget_bytes = 32 * MIB
        count = 500
        for _ in range(count):
            connection, transport = world.connect()
            receive_while_read(connection, transport, half(10 * MIB, 2 * MIB))
        assert world.server.frame_memory.in_use_bytes <= budget_bytes + count * SMALL_BYTES

    in_loop(check, request_memory_bytes_max=32 * MIB, request_bytes_max=20 * MIB)


def test_a_whole_request_that_only_its_own_client_keeps_from_being_served_holds_nothing_against_others() -> None:
    """A large fetch behind an endless long poll."""

    async def check(world: World) -> None:
        Handlers(world)
        squatters = [world.connect() for _ in range(2)]
        for connection, _ in squatters:
            receive(connection, request("p", b"for ever"))
            receive(connection, of_api(FETCH, request("e", bytes(11 * MIB))))
        producer, transport = world.connect()
        receive(producer, half(10 * MIB, 100_000))
        assert not transport.reading
        for _ in range(int(frame_memory.GRACE_S + frame_memory.FRAME_S_MAX) + 1):
            assert not transport.reading
            world.clock.advance(1)
            await asyncio.sleep(0)
        assert transport.reading
        assert [transport.aborted for _, transport in squatters].count(True) == 1, "no more than are needed"

    in_loop(check, request_memory_bytes_max=32 * MIB, request_bytes_max=20 * MIB)


def test_a_whole_request_that_the_broker_is_at_work_for_keeps_its_memory() -> None:
    async def check(world: World) -> None:
        Handlers(world)
        held = [world.connect() for _ in range(2)]
        for connection, _ in held:
            receive(connection, request("h", b"work"))
            receive_anyway(connection, a_produce(11 * MIB))
        producer, transport = world.connect()
        receive(producer, half(10 * MIB, 100_000))
        for _ in range(100):
            world.clock.advance(1)
        assert not any(transport.aborted for _, transport in held)
        for connection, _ in held:
            connection.unhold()
        await asyncio.sleep(0)
        assert transport.reading

    def receive_anyway(connection: Connection, data: bytes) -> None:
        """As if it had come before the connection was held."""
        connection._held -= 1
        receive(connection, data[:-1])
        connection._held += 1
        receive(connection, data[-1:])

    in_loop(check, request_memory_bytes_max=32 * MIB, request_bytes_max=20 * MIB)


def test_who_waits_for_memory_is_not_idle() -> None:
    async def check(world: World) -> None:
        Handlers(world)
        holder, holding = world.connect()
        receive(holder, half(20 * MIB - 100, 100_000))
        waiting, transport = world.connect()
        receive(waiting, half(20 * MIB - 100, 100_000))
        assert not transport.reading
        _, idle = world.connect()
        while not idle.closing:
            receive_while_read(holder, holding, bytes(MIB))  # or it is put out, for the one that waits
            world.clock.advance(1)
        assert not transport.reading and not transport.closing

    in_loop(
        check, request_memory_bytes_max=24 * MIB, request_bytes_max=20 * MIB, idle_ms_max=int(SWEEP_SECONDS * 2_000)
    )
