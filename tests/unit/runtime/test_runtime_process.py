"""Tasks, sockets, clocks, chance and the process's own limits."""

from __future__ import annotations

import asyncio
import inspect
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from headpond.runtime import posix, process
from headpond.runtime.clock import SystemClock
from headpond.runtime.network import PortInUse, TcpNetwork
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    factory = asyncio.new_event_loop if request.param == "asyncio" else process.loop_factory()

    def go(main: Any) -> Any:
        async def limited() -> Any:
            async with asyncio.timeout(20):
                return await main

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(limited())

    return go


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:  # uvloop's is no subclass of asyncio.Transport
        self.transport = transport
        self.received = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())


class Caller(Echo):
    def data_received(self, data: bytes) -> None:
        self.received.set_result(data)


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_a_task_that_fails_is_reported_with_its_name(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        failures: list[tuple[str, str]] = []
        tasks = LoopTasks(lambda name, error: failures.append((name, str(error))))

        async def fail() -> None:
            raise ValueError("oh")

        task = tasks.spawn("doomed", fail())
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert failures == [("doomed", "oh")]
        assert len(tasks) == 0

    run(main())


def test_cancelling_all_waits_until_they_have_cleaned_up_and_starts_nothing_new(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        tasks = LoopTasks()
        ended: list[str] = []

        async def work(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)
                with pytest.raises(RuntimeError, match="shutting down"):
                    tasks.spawn("late", work("late"))

        for name in ("first", "second"):
            tasks.spawn(name, work(name))
        await asyncio.sleep(0)
        await tasks.cancel_all()
        assert ended == ["second", "first"]
        assert len(tasks) == 0

    run(main())


def test_a_task_may_end_all_the_others(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        tasks = LoopTasks()
        ended: list[str] = []

        async def leader() -> None:
            await tasks.cancel_all()
            ended.append("leader")

        tasks.spawn("sleeper", asyncio.sleep(1_000))
        await tasks.spawn("leader", leader())
        assert ended == ["leader"]

    run(main())


# --- network ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_listener_on_port_zero_tells_its_port_and_serves(run: Callable[[Any], Any], host: str) -> None:
    async def main() -> None:
        network = TcpNetwork()
        listener = await network.listen(host, 0, Echo)
        assert listener.port > 0
        transport, protocol = await network.connect(host, listener.port, Caller)
        assert isinstance(protocol, Caller)
        no_delay = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert no_delay
        transport.write(b"hello")
        assert await protocol.received == b"HELLO"
        await listener.close()
        transport.write(b"")  # an open connection outlives the listener
        assert not transport.is_closing()
        with pytest.raises(OSError):
            await network.connect(host, listener.port, Caller)
        transport.close()

    run(main())


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_addresses_of_ipv6_work_with_and_without_brackets(run: Callable[[Any], Any], host: str) -> None:
    async def main() -> None:
        network = TcpNetwork()
        try:
            listener = await network.listen(host, 0, Echo)
        except OSError:
            pytest.skip("no IPv6 here")
        transport, _ = await network.connect(host, listener.port, Caller)
        transport.close()
        await listener.close()

    run(main())


def test_no_host_means_every_address_on_one_port(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        network = TcpNetwork()
        listener = await network.listen("", 0, Echo)
        ports = {server.sockets[0].getsockname()[1] for server in listener._servers}
        assert ports == {listener.port}
        await listener.close()

    run(main())


def test_a_port_in_use_is_named(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        network = TcpNetwork()
        listener = await network.listen("127.0.0.1", 0, Echo)
        with pytest.raises(PortInUse, match=rf"127\.0\.0\.1:{listener.port} is in use"):
            await network.listen("127.0.0.1", listener.port, Echo)
        await listener.close()
        again = await network.listen("127.0.0.1", listener.port, Echo)
        await again.close()

    run(main())


def test_an_address_that_is_not_ours_is_refused(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        with pytest.raises(OSError):
            await TcpNetwork().listen("192.0.2.1", 0, Echo)

    run(main())


# --- clock, chance, process -------------------------------------------------------------------------------------------


def test_the_clock_reads_and_calls_back(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        clock = SystemClock()
        assert clock.now_ms() > 1_600_000_000_000
        before = clock.monotonic()
        called = asyncio.Event()
        clock.call_later(0.001, called.set)
        never = clock.call_later(0.001, lambda: pytest.fail("cancelled"))
        never.cancel()
        await called.wait()
        await clock.sleep(0)
        assert clock.monotonic() > before

    run(main())


def test_chance_covers_its_range_and_nothing_else() -> None:
    chance = SystemRandom()
    assert {chance.random_int(3) for _ in range(200)} == {0, 1, 2}
    assert chance.random_int(1) == 0
    assert len(chance.random_bytes(16)) == 16
    assert chance.random_bytes(16) != chance.random_bytes(16)


def test_stop_signals_call_back_with_their_names(run: Callable[[Any], Any]) -> None:
    async def main() -> None:
        names: list[str] = []
        both = asyncio.Event()

        def stop(name: str) -> None:
            names.append(name)
            if len(names) == 2:
                both.set()

        process.on_stop_signals(stop)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            await both.wait()
            assert sorted(names) == ["SIGINT", "SIGTERM"]
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().remove_signal_handler(number)

    run(main())


def test_the_open_file_limit_is_raised_to_what_is_allowed(tmp_path: pathlib.Path) -> None:
    program = (
        "import resource; from headpond.runtime import process\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)); process.prepare_process()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=30).stdout
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert int(output) == hard or (hard == resource.RLIM_INFINITY and int(output) >= 10_240)


def test_the_allocator_is_told_to_keep_large_buffers_or_left_alone() -> None:
    assert posix.keep_large_buffers() in (True, False)


def test_the_loop_is_uvloop_where_it_can_be_had() -> None:
    async def main() -> str:
        return type(asyncio.get_running_loop()).__module__

    pytest.importorskip("uvloop")
    assert process.run(main()).startswith("uvloop")


def test_the_loop_is_asyncio_where_uvloop_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert process.loop_factory() is asyncio.new_event_loop


def test_a_writer_is_told_once_that_the_last_reader_of_its_pipe_has_gone(run: Callable[[Any], Any]) -> None:
    reader, writer = os.pipe()
    told: list[bool] = []

    async def story(stream: Any) -> None:
        gone = asyncio.Event()

        def tell() -> None:
            told.append(True)
            gone.set()

        with process.told_when_nobody_reads(stream, tell):
            stream.write(b"not read")
            await asyncio.sleep(0)
            assert told == []
            os.close(reader)
            await gone.wait()
            await asyncio.sleep(0)
        assert told == [True]
        assert not asyncio.get_running_loop().remove_reader(stream.fileno()), "nothing stays behind"

    with open(writer, "wb", buffering=0) as stream:
        run(story(stream))


@pytest.mark.parametrize(("name", "flags"), [("fifo", os.O_RDWR), ("file", os.O_WRONLY | os.O_CREAT)])
def test_what_is_no_pipe_or_could_be_read_by_its_writer_is_not_watched(
    run: Callable[[Any], Any], tmp_path: pathlib.Path, name: str, flags: int
) -> None:
    os.mkfifo(tmp_path / "fifo")

    async def story(stream: Any) -> None:
        with process.told_when_nobody_reads(stream, lambda: pytest.fail("somebody may still read it")):
            stream.write(b"to be read")
            assert not asyncio.get_running_loop().remove_reader(stream.fileno())

    with open(os.open(tmp_path / name, flags), "wb", buffering=0) as stream:
        run(story(stream))


def test_ctrl_c_before_the_loop_is_there_leaves_nothing_to_complain_about(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never_begun() -> None: ...

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "loop_factory", interrupted)
    main = never_begun()
    with pytest.raises(KeyboardInterrupt):
        process.run(main)
    assert inspect.getcoroutinestate(main) == inspect.CORO_CLOSED, "Python warns of one that nobody awaited"
