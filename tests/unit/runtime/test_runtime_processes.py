"""Worker processes: they come with the first job, die without harm, and never outlive whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import headpond
from headpond.ports import FileSystem, ProcessLost
from headpond.runtime.processes import WorkerProcesses
from support.broker import headpond_environment
from support.waiting import eventually


def count_to(fs: FileSystem, end: int) -> Iterator[int]:
    yield from range(end)


def read_names(fs: FileSystem, path: str) -> Iterator[list[str]]:
    yield fs.list_dir(path)


def fail_after(fs: FileSystem, steps: int) -> Iterator[int]:
    yield from range(steps)
    raise FileNotFoundError(2, "not there", "x")


def say_pid_and_print(fs: FileSystem) -> Iterator[int]:
    print("this must not garble the talk")
    yield os.getpid()


def say_path(fs: FileSystem) -> Iterator[list[str]]:
    yield sys.path


def run_for_ever(fs: FileSystem) -> Iterator[int]:
    yield os.getpid()
    while True:
        pass


@pytest.fixture(autouse=True)
def importable_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has to find this module by its name."""
    tests = Path(__file__).parents[2]  # by either of its names: pytest imports it as a part of ``tests``
    environment = headpond_environment()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tests), str(tests.parent), environment["PYTHONPATH"]]))


def run(test: Callable[[WorkerProcesses], Awaitable[None]], *, idle_s: float = 30.0) -> None:
    async def with_processes() -> None:
        processes = WorkerProcesses(idle_s=idle_s)
        try:
            await test(processes)
        finally:
            await processes.close()
            assert processes.pids == []

    asyncio.run(with_processes())


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return True


def test_a_job_s_steps_come_in_order_and_the_process_serves_the_next_job() -> None:
    async def test(processes: WorkerProcesses) -> None:
        assert processes.pids == [], "no process before the first job"
        assert [step async for step in processes.steps(count_to, 3)] == [0, 1, 2]
        pids = processes.pids
        assert [step async for step in processes.steps(count_to, 0)] == []
        assert [step async for step in processes.steps(say_pid_and_print)] == pids == processes.pids

    run(test)


def test_a_job_has_the_machine_s_file_system(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    async def test(processes: WorkerProcesses) -> None:
        assert [step async for step in processes.steps(read_names, str(tmp_path))] == [["a"]]

    run(test)


def test_what_a_job_raises_comes_out_and_the_process_lives_on() -> None:
    async def test(processes: WorkerProcesses) -> None:
        seen = []
        with pytest.raises(FileNotFoundError) as raised:
            async for step in processes.steps(fail_after, 2):
                seen.append(step)
        assert seen == [0, 1] and raised.value.errno == 2
        pids = processes.pids
        assert [step async for step in processes.steps(count_to, 1)] == [0]
        assert processes.pids == pids

    run(test)


def test_a_process_that_dies_is_noticed_and_replaced() -> None:
    async def test(processes: WorkerProcesses) -> None:
        with pytest.raises(ProcessLost, match="signal 9"):
            async for pid in processes.steps(run_for_ever):
                os.kill(pid, signal.SIGKILL)
        assert [step async for step in processes.steps(count_to, 1)] == [0]
        (idle,) = processes.pids
        os.kill(idle, signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: is_gone(idle))
        assert [step async for step in processes.steps(count_to, 2)] == [0, 1]

    run(test)


def test_closing_the_steps_ends_a_job_that_would_never_end() -> None:
    async def test(processes: WorkerProcesses) -> None:
        async with aclosing(processes.steps(run_for_ever)) as steps:
            pid = await anext(steps)
        await asyncio.to_thread(eventually, lambda: is_gone(pid))
        assert processes.pids == []

    run(test)


def test_a_process_without_work_ends_by_itself() -> None:
    async def test(processes: WorkerProcesses) -> None:
        (pid,) = [step async for step in processes.steps(say_pid_and_print)]
        await asyncio.to_thread(eventually, lambda: is_gone(pid))
        assert processes.pids == []

    run(test, idle_s=0.05)


def test_the_folder_in_which_the_broker_runs_is_not_searched_for_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("struct", "pickle", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of somebody else')")
    (tmp_path / "headpond").mkdir()
    (tmp_path / "headpond" / "__init__.py").write_text("raise SystemExit('code of somebody else')")
    monkeypatch.chdir(tmp_path)

    async def test(processes: WorkerProcesses) -> None:
        ((*path,),) = [step async for step in processes.steps(say_path)]
        assert not {"", ".", str(tmp_path)} & set(path)

    run(test)


def test_a_broker_that_knows_its_package_from_the_current_folder_only_has_processes_too(
    tmp_path: Path,
) -> None:
    """``python -m headpond`` inside a checkout: the package is not installed, and PYTHONPATH is empty."""
    program = """
import asyncio, operator, os
from headpond.runtime.processes import WorkerProcesses

async def main():
    os.chdir("/")
    async for step in WorkerProcesses().steps(operator.attrgetter("__class__.__mro__")):
        print(step.__name__)

asyncio.run(main())
"""
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "headpond").symlink_to(Path(headpond.__file__).parent)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ""}
    command = [sys._base_executable, "-m", "program"]  # type: ignore[attr-defined]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["DiskFileSystem", "object"], done.stderr


def test_a_process_does_not_outlive_one_that_is_killed(tmp_path: Path) -> None:
    program = """
import asyncio
from headpond.runtime.processes import WorkerProcesses
from unit.runtime.test_runtime_processes import run_for_ever

async def main():
    async for pid in WorkerProcesses().steps(run_for_ever):
        print(pid, flush=True)

asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
    finally:
        parent.kill()
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()
    eventually(lambda: is_gone(pid), what="the end of the worker process")


def test_who_stops_waiting_for_an_idle_process_to_answer_leaves_none_behind() -> None:
    async def test(processes: WorkerProcesses) -> None:
        async for _ in processes.steps(count_to, 1):
            pass
        (pid,) = processes.pids
        os.kill(pid, signal.SIGSTOP)  # it is there, and does not say so
        waiting = asyncio.ensure_future(anext(processes.steps(count_to, 1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert processes.pids == []

    run(test)
