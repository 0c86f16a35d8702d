"""The metrics port over real sockets: answers, and guests who misbehave. Time passes when the test says so."""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import Awaitable, Callable, Iterator

import pytest

from headpond.runtime.network import PortInUse, TcpNetwork
from headpond.runtime.tasks import LoopTasks
from headpond.telemetry.endpoint import ANSWER_S_MAX, CONNECTIONS_MAX, REQUEST_S_MAX, STALL_S_MAX, MetricsEndpoint
from headpond.telemetry.exposition import LINES_PER_SLICE
from headpond.telemetry.families import Family, Registry
from headpond.telemetry.metrics import Gauge, Point
from simulation.harness.clock import ManualClock

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


class PausingClock(ManualClock):
    """Timers run when the test says so; pauses, which let the loop turn, end by themselves."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Rig:
    def __init__(self) -> None:
        self.clock = PausingClock()
        self.registry = Registry()
        self.gauge = Gauge()
        self.registry.add(Family("one", "gauge", "One."), self.gauge.points)
        self.unhealthy: str | None = None
        self.unready: str | None = None
        self.scrapes = 0
        self.tasks = LoopTasks()
        self.endpoint = MetricsEndpoint(
            network=TcpNetwork(),
            clock=self.clock,
            tasks=self.tasks,
            registry=self.registry,
            before_scrape=self.before_scrape,
            unhealthy=lambda: self.unhealthy,
            unready=lambda: self.unready,
        )
        self.port = 0

    async def before_scrape(self) -> None:
        self.scrapes += 1

    async def ask(self, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer

    async def get(self, path: str, method: str = "GET") -> tuple[int, str]:
        answer = await self.ask(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode()


def run(test: Callable[[Rig], Awaitable[None]]) -> None:
    async def main() -> None:
        rig = Rig()
        rig.port = await rig.endpoint.listen("127.0.0.1", 0)
        try:
            await asyncio.wait_for(test(rig), 30)
        finally:
            await rig.endpoint.close()
            await rig.tasks.cancel_all()

    asyncio.run(main())


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionResetError:
        return True


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def test_a_scrape_is_chunked_and_ends_its_connection() -> None:
    async def test(rig: Rig) -> None:
        rig.gauge.value = 7
        answer = await rig.ask(GET)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
        assert b"Transfer-Encoding: chunked" in head and b"Connection: close" in head
        size, _, rest = body.partition(b"\r\n")
        assert rest[: int(size, 16)] == b"# HELP one One.\n# TYPE one gauge\none 7\n"
        assert rest[int(size, 16) :] == b"\r\n0\r\n\r\n"
        assert rig.scrapes == 1

    run(test)


def test_a_client_that_half_closes_after_its_request_is_answered_and_let_go() -> None:
    async def test(rig: Rig) -> None:
        for path in (b"metrics", b"healthz"):
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            writer.write(b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % path)
            writer.write_eof()
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            await until(lambda: not rig.endpoint._guests)
            writer.close()

    run(test)


def test_an_old_client_gets_the_text_as_it_is() -> None:
    async def test(rig: Rig) -> None:
        answer = await rig.ask(b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert body.endswith(b"one 0\n# EOF\n")

    run(test)


def test_pythons_own_http_client_understands_it() -> None:
    async def test(rig: Rig) -> None:
        def ask(method: str) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", rig.port, timeout=20)
            connection.request(method, "/metrics")
            response = connection.getresponse()
            return response.status, response.read()

        assert await asyncio.to_thread(ask, "GET") == (200, b"# HELP one One.\n# TYPE one gauge\none 0\n")
        assert await asyncio.to_thread(ask, "HEAD") == (200, b"")

    run(test)


def test_health_and_readiness_say_why_not() -> None:
    async def test(rig: Rig) -> None:
        assert await rig.get("/healthz") == (200, "ok\n")
        assert await rig.get("/readyz") == (200, "ok\n")
        rig.unhealthy, rig.unready = "the disk failed", "starting"
        assert await rig.get("/healthz") == (503, "the disk failed\n")
        assert await rig.get("/readyz") == (503, "starting\n")
        assert await rig.get("/readyz", "HEAD") == (503, "")

    run(test)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/", "GET", 404), ("/metrics/", "GET", 404), ("/metrics", "POST", 405), ("/healthz", "DELETE", 405)],
)
def test_other_paths_and_methods_are_refused(path: str, method: str, status: int) -> None:
    async def test(rig: Rig) -> None:
        assert (await rig.get(path, method))[0] == status

    run(test)


def test_garbage_is_answered_once_and_closed() -> None:
    async def test(rig: Rig) -> None:
        for garbage in (b"\x00\x00\x00\x20garbage\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000):
            assert (await rig.ask(garbage))[:13] in (b"HTTP/1.1 400 ", b"HTTP/1.1 505 ", b"HTTP/1.1 431 ")
        assert (await rig.get("/healthz"))[0] == 200

    run(test)


def test_a_client_that_says_nothing_is_told_to_hurry_and_closed() -> None:
    async def test(rig: Rig) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"GET /metrics HT")
        await until(lambda: rig.clock.next_timer_s() is not None)
        rig.clock.advance(REQUEST_S_MAX)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()

    run(test)


def test_a_full_house_makes_place_for_one_who_may_have_something_to_ask() -> None:
    async def test(rig: Rig) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", rig.port) for _ in range(CONNECTIONS_MAX)]
        await until(lambda: len(rig.endpoint._guests) == CONNECTIONS_MAX)
        assert (await rig.get("/healthz"))[0] == 200
        assert await is_closed(silent[0][0]), "the one that was silent longest"
        silent[1][1].write(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await silent[1][0].read()).startswith(b"HTTP/1.1 200 ")
        for _, writer in silent:
            writer.close()

    run(test)


def test_one_who_keeps_sending_after_its_answer_is_dropped_in_time() -> None:
    async def test(rig: Rig) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"garbage\r\n\r\n" + b"more" * 50_000)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.write(b"and more" * 1_000)
        await turns()
        assert rig.clock.advance(STALL_S_MAX) == 1
        await until(lambda: not rig.endpoint._guests)
        writer.close()

    run(test)


def large_family(rig: Rig, count: int = 400_000) -> list[int]:
    """A family far larger than any socket buffer; tells how far the walk has come."""
    walked = [0]

    def walk() -> Iterator[Point]:
        for number in range(count):
            walked[0] = number + 1
            yield (str(number), "x" * 100), number

    rig.registry.add(Family("large", "gauge", "Large.", ("number", "filling")), walk)
    return walked


def test_a_client_that_never_reads_stops_the_collecting_and_is_dropped() -> None:
    async def test(rig: Rig) -> None:
        walked = large_family(rig)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1_024)
        writer.write(GET)
        await until(lambda: rig.clock.next_timer_s() == STALL_S_MAX)
        await turns()
        stopped_at = walked[0]
        await turns()
        assert walked[0] == stopped_at < 400_000, "nothing is collected for one who does not read"
        assert (await rig.get("/healthz"))[0] == 200, "nobody else notices"
        rig.clock.advance(STALL_S_MAX)
        await until(lambda: not rig.endpoint._guests and not len(rig.tasks))
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(200_000_000)
        writer.close()

    run(test)


def test_a_client_that_reads_a_little_now_and_then_is_dropped_in_time() -> None:
    async def test(rig: Rig) -> None:
        large_family(rig)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1_024)
        writer.write(GET)
        for _ in range(3):
            await reader.readexactly(5_000_000)  # more than what is under way: the broker has gone on
            assert rig.endpoint._guests
        rig.clock.advance(ANSWER_S_MAX)
        await until(lambda: not rig.endpoint._guests and not len(rig.tasks))
        writer.close()

    run(test)


def test_a_slow_client_gets_everything() -> None:
    async def test(rig: Rig) -> None:
        large_family(rig, 30_000)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1_024)
        writer.write(GET)
        answer = bytearray()
        while part := await reader.read(65_536):
            answer += part
            await asyncio.sleep(0)
        assert answer.endswith(b"29999\n\r\n0\r\n\r\n")
        assert answer.count(b"\nlarge{") == 30_000
        writer.close()

    run(test)


def test_a_client_that_leaves_in_the_middle_ends_its_scrape() -> None:
    async def test(rig: Rig) -> None:
        walked = large_family(rig)
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1_024)
        writer.write(GET)
        await reader.readexactly(100)
        writer.transport.abort()
        await until(lambda: not rig.endpoint._guests and not len(rig.tasks))
        assert walked[0] < 400_000

    run(test)


def test_a_scrape_lets_the_loop_turn_after_every_slice() -> None:
    async def test(rig: Rig) -> None:
        large_family(rig, 20_000)
        turns_seen, is_done = 0, False

        async def watch() -> None:
            nonlocal turns_seen
            while not is_done:
                turns_seen += 1
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await rig.ask(GET)
        is_done = True
        await watching
        assert turns_seen >= 20_000 // LINES_PER_SLICE

    run(test)


def test_a_bug_in_a_scrape_costs_that_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async def test(rig: Rig) -> None:
        async def broken() -> None:
            raise RuntimeError("a bug")

        rig.endpoint._before_scrape = broken
        with caplog.at_level(logging.ERROR):
            assert await rig.ask(GET) == b""
        assert "a scrape met a bug" in caplog.text
        assert (await rig.get("/healthz"))[0] == 200

    run(test)


def test_a_port_in_use_is_told() -> None:
    async def test(rig: Rig) -> None:
        with pytest.raises(PortInUse, match=f"{rig.port} is in use"):
            await Rig().endpoint.listen("127.0.0.1", rig.port)

    run(test)


def test_closing_drops_the_guests() -> None:
    async def test(rig: Rig) -> None:
        reader, _ = await asyncio.open_connection("127.0.0.1", rig.port)
        await until(lambda: len(rig.endpoint._guests) == 1)
        await rig.endpoint.close()
        assert await is_closed(reader)

    run(test)
