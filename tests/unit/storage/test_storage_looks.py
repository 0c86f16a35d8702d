"""Looks into records: fair between clients, bounded, and never in the way of syncs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headpond.model import ErrorCode, StorageFailed
from headpond.ports import FileSystem
from headpond.runtime.tasks import LoopTasks
from headpond.storage.looks.looks import JOBS_AT_ONCE, LOOK_S_MAX, TURNS_AT_ONCE, WATCH_S, LookGivenUp, Looks
from headpond.storage.looks.queue import CLIENTS_S
from simulation.harness.clock import ManualClock
from simulation.harness.disk import SimulatedDisk
from simulation.harness.processes import SimulatedProcesses
from simulation.harness.turns import settle


class Client:
    def __init__(self) -> None:
        self.closed = False


class StuckWorkers:
    """Threads that do nothing until the test says so, one job after the other."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.jobs.append((lambda: function(*arguments), future))
        return future

    def submit(self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        raise NotImplementedError

    async def finish_one(self) -> None:
        function, future = self.jobs.pop(0)
        result = function()
        if not future.cancelled():
            future.set_result(result)
        await settle()


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.disk = SimulatedDisk(now_ms=self.clock.now_ms)
        self.threads = StuckWorkers()
        self.tasks = LoopTasks()
        self.processes = SimulatedProcesses(self.disk, self.clock)
        self.done: list[str] = []
        self.looks = Looks(
            lookers=self.threads, processes=self.processes, fs=self.disk, clock=self.clock, tasks=self.tasks
        )

    def turn(self, client: Client | None, name: str) -> asyncio.Task[None]:
        look = self.looks.begin(client)

        async def ask() -> None:
            self.done.append(await look.turn(str, name))

        return asyncio.ensure_future(ask())


def double(fs: FileSystem, number: int) -> int:
    return 2 * number


def refuse(fs: FileSystem, why: str) -> None:
    raise ValueError(why)


def test_clients_take_turns_however_much_one_of_them_asks_for() -> None:
    async def run() -> None:
        world = World()
        greedy, modest = Client(), Client()
        for number in range(10):
            world.turn(greedy, f"greedy {number}")
        await settle()
        world.turn(modest, "modest")
        world.turn(None, "nobody's")
        await settle()
        assert len(world.threads.jobs) == TURNS_AT_ONCE  # one of them the modest one's, at once
        await world.threads.finish_one()
        await world.threads.finish_one()
        await world.threads.finish_one()
        assert world.done == ["greedy 0", "modest", "nobody's"]
        while world.threads.jobs:
            assert len(world.threads.jobs) == 1
            await world.threads.finish_one()
        assert world.done[3:] == [f"greedy {number}" for number in range(1, 10)]
        assert world.looks.turns.waiting == 0

    asyncio.run(run())


def test_who_stops_waiting_gives_its_turn_to_the_next() -> None:
    async def run() -> None:
        world = World()
        clients = [Client() for _ in range(TURNS_AT_ONCE + 2)]
        asking = [world.turn(client, str(number)) for number, client in enumerate(clients)]
        await settle()
        asking[TURNS_AT_ONCE].cancel()
        asking[0].cancel()  # its thread works on; its place is free
        await settle()
        assert [task.done() for task in asking] == [True, False, True, False]
        await world.threads.finish_one()
        while world.threads.jobs:
            await world.threads.finish_one()
        assert sorted(world.done) == ["1", "3"]
        assert world.looks.turns.waiting == 0

    asyncio.run(run())


def test_a_turn_of_a_client_that_left_or_waited_too_long_does_not_begin() -> None:
    async def run() -> None:
        world = World()
        gone = Client()
        gone.closed = True
        with pytest.raises(LookGivenUp) as caught:
            await world.looks.begin(gone).turn(str, "x")
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        look = world.looks.begin(Client())
        world.clock.advance(LOOK_S_MAX)
        with pytest.raises(LookGivenUp):
            await look.turn(str, "x")
        assert not world.threads.jobs and not world.looks.turns.waiting

    asyncio.run(run())


@pytest.mark.parametrize("leaves", [True, False])
def test_a_look_that_waits_for_its_turn_gives_up_when_its_client_leaves_or_its_time_is_up(leaves: bool) -> None:
    async def run() -> None:
        world = World()
        busy = [world.turn(Client(), f"busy {number}") for number in range(TURNS_AT_ONCE)]
        client = Client()
        asking = [world.turn(client, "first"), world.turn(client, "second")]
        await settle()
        client.closed = leaves
        world.clock.advance(CLIENTS_S if leaves else LOOK_S_MAX)
        await settle()
        for task in asking:
            with pytest.raises(LookGivenUp):
                task.result()
        assert len(world.threads.jobs) == TURNS_AT_ONCE and not any(task.done() for task in busy)
        assert world.looks.turns.waiting == 0
        patient = world.turn(Client(), "patient")
        while world.threads.jobs:
            await world.threads.finish_one()
        await patient
        assert world.done == ["busy 0", "busy 1", "patient"]
        world.clock.advance(CLIENTS_S)
        assert world.clock.next_timer_s() is None, "there is no one to look after"

    asyncio.run(run())


def test_a_look_that_was_called_as_its_time_was_up_leaves_its_place_to_the_next() -> None:
    async def run() -> None:
        world = World()
        for number in range(TURNS_AT_ONCE):
            world.turn(Client(), f"busy {number}")
        late = world.turn(Client(), "late")
        await settle()
        world.clock.advance(LOOK_S_MAX - 1)
        patient = world.turn(Client(), "patient")
        await settle()
        function, future = world.threads.jobs.pop(0)
        future.set_result(function())
        await asyncio.sleep(0)  # it is called, and has not heard of it yet
        world.clock.advance(1)
        await settle()
        with pytest.raises(LookGivenUp):
            late.result()
        while world.threads.jobs:
            await world.threads.finish_one()
        await patient
        assert world.looks.turns.waiting == 0

    asyncio.run(run())


def test_a_job_at_length_that_waits_for_a_process_gives_up_as_well() -> None:
    async def run() -> None:
        world = World()
        begun: list[int] = []

        async def endless(_step: Any, _function: Any, number: int) -> Any:
            begun.append(number)
            await asyncio.Event().wait()
            yield None

        world.processes.steps = endless  # type: ignore[method-assign]
        clients = [Client() for _ in range(JOBS_AT_ONCE + 1)]
        asking = [
            asyncio.ensure_future(world.looks.begin(each).at_length(double, number))
            for number, each in enumerate(clients)
        ]
        await settle()
        clients[-1].closed = True
        world.clock.advance(CLIENTS_S)
        await settle()
        with pytest.raises(LookGivenUp):
            asking[-1].result()
        assert begun == list(range(JOBS_AT_ONCE)) and world.looks.jobs.waiting == 0
        for task in asking:
            task.cancel()
        await settle()

    asyncio.run(run())


def test_what_takes_long_runs_in_a_process_and_its_errors_come_back() -> None:
    async def run() -> None:
        world = World()
        look = world.looks.begin(Client())
        assert await look.at_length(double, 21) == 42
        with pytest.raises(ValueError, match="because"):
            await look.at_length(refuse, "because")
        world.processes.steps_until_death = 0
        with pytest.raises(StorageFailed):
            await look.at_length(double, 21)
        assert await look.at_length(double, 4) == 8
        assert not world.threads.jobs

    asyncio.run(run())


@pytest.mark.parametrize("leaves", [True, False])
def test_a_long_job_is_given_up_when_its_client_leaves_or_its_time_is_up(leaves: bool) -> None:
    async def run() -> None:
        world = World()
        ended: list[str] = []

        async def endless(*_: Any) -> Any:
            try:
                await asyncio.Event().wait()
                yield None
            finally:
                ended.append("ended")

        world.processes.steps = endless  # type: ignore[method-assign]
        client = Client()
        asking = asyncio.ensure_future(world.looks.begin(client).at_length(double, 1))
        await settle()
        world.clock.advance(WATCH_S)
        await settle()
        assert not asking.done()
        client.closed = leaves
        world.clock.advance(WATCH_S if leaves else LOOK_S_MAX)
        await settle()
        with pytest.raises(LookGivenUp):
            await asking
        await settle()
        assert ended == ["ended"]

    asyncio.run(run())


def test_a_client_has_one_long_job_at_a_time_and_others_need_not_wait_for_its_next() -> None:
    async def run() -> None:
        world = World()
        begun: list[int] = []
        gate = asyncio.Event()

        async def slow(_step: Any, _function: Any, number: int) -> Any:
            begun.append(number)
            await gate.wait()
            yield number

        world.processes.steps = slow  # type: ignore[method-assign]
        greedy, modest = Client(), Client()
        asking = [asyncio.ensure_future(world.looks.begin(greedy).at_length(double, n)) for n in range(3)]
        await settle()
        asking.append(asyncio.ensure_future(world.looks.begin(modest).at_length(double, 99)))
        await settle()
        assert begun == [0, 99]
        gate.set()
        assert await asyncio.gather(*asking) == [0, 1, 2, 99]
        assert begun == [0, 99, 1, 2]

    asyncio.run(run())
