"""The process that syncs: it comes when there is much to sync, says what the kernel says, and its end is a failure."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import platform
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from headpond.runtime import sync_child
from headpond.runtime.disk_file import DiskFile
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.sync_process import SyncProcess
from headpond.runtime.workers import ThreadWorkers

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has it")

FREQUENT = 5


class World:
    def __init__(self, folder: str, fs: DiskFileSystem, workers: ThreadWorkers, frequent_per_s: int) -> None:
        self.folder = folder
        self.syncer = SyncProcess(fs, workers, frequent_per_s=frequent_per_s)
        self._fs = fs
        self._workers = workers

    async def open(self, name: str = "log") -> DiskFile:
        file: DiskFile = await self._workers.run(lambda: self._fs.open(f"{self.folder}/{name}", create=True))
        return file

    async def start(self, file: DiskFile) -> int:
        for _ in range(FREQUENT):
            assert not self.syncer.offer([file], None, _never), "the workers do it until the process is there"
        async with asyncio.timeout(30):
            while self.syncer.pid is None:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        return self.syncer.pid

    async def sync(self, *files: DiskFile, folder: str | None = None) -> float:
        """How long it took; raises what it raises."""
        done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

        def told(took_s: float | None, error: BaseException | None) -> None:
            if error is not None:
                done.set_exception(error)
            else:
                assert took_s is not None
                done.set_result(took_s)

        assert self.syncer.offer(files, folder, told)
        async with asyncio.timeout(30):
            return await done


def _never(took_s: float | None, error: BaseException | None) -> None:
    raise AssertionError("told about what it did not take")


def run(folder: Path, test: Callable[[World], Awaitable[None]], *, frequent_per_s: int = FREQUENT) -> None:
    async def with_process() -> None:
        workers, fs = ThreadWorkers(), DiskFileSystem()
        lock = await workers.run(fs.lock, f"{folder}/.lock")
        assert lock is not None
        world = World(str(folder), fs, workers, frequent_per_s)
        try:
            await test(world)
        finally:
            await world.syncer.close()
            lock.close()
            await workers.close()

    asyncio.run(with_process())


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


class Scheduling(NamedTuple):
    policy: int
    nice: int
    runtime_ns: int


def scheduling(thread: int) -> Scheduling:
    """What the kernel has for it."""
    attributes = ctypes.create_string_buffer(sync_child.SCHED_ATTRIBUTES.size)
    _, get_attributes = sync_child.SCHED_CALLS[platform.machine()]
    assert ctypes.CDLL(None).syscall(get_attributes, thread, attributes, len(attributes), 0) == 0
    _, policy, _, nice, _, runtime_ns, _, _ = sync_child.SCHED_ATTRIBUTES.unpack(attributes)
    return Scheduling(policy, nice, runtime_ns)


def kernel_version() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


def test_a_broker_that_syncs_now_and_then_has_no_such_process(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        for _ in range(20):
            assert not world.syncer.offer([file], None, _never)
        await asyncio.sleep(0)
        assert world.syncer.pid is None

    run(tmp_path, test, frequent_per_s=1_000)


def test_files_and_whole_file_systems_are_synced_many_at_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        files = [await world.open(str(number)) for number in range(10)]
        await world.start(files[0])
        for file in files:
            file.write(b"x" * 1_000)
        took = await asyncio.gather(
            *(world.sync(file) for file in files), world.sync(*files), world.sync(folder=world.folder)
        )
        assert all(each >= 0 for each in took)

    run(tmp_path, test)


def test_who_looks_learns_of_a_sync_before_the_loop_does(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        world.syncer.look()  # without a process there is nothing to see
        await world.start(file)
        world.syncer.look()
        told: list[BaseException | None] = []
        for _ in range(3):
            assert world.syncer.offer([file], None, lambda took_s, error: told.append(error))
        for _ in range(30_000):  # no turn of the loop in between
            world.syncer.look()
            if len(told) == 3:
                break
            select.select([], [], [], 0.001)
        assert told == [None] * 3

    run(tmp_path, test)


def test_a_look_takes_every_answer_that_is_there() -> None:
    answers = [sync_child.ANSWER.pack(number, 0, 0.001) for number in (1, 2, 3)]
    told: list[int] = []

    class Talk:
        def recv(self, size: int) -> bytes:
            if not answers:
                raise BlockingIOError
            return answers.pop(0)

    syncer = SyncProcess(DiskFileSystem(), ThreadWorkers())
    syncer._talk = Talk()  # type: ignore[assignment]
    syncer._is_ready = True
    syncer._jobs = {number: ((), None, lambda _, __, number=number: told.append(number)) for number in (1, 2, 3)}
    syncer.look()
    assert told == [1, 2, 3]


def test_it_keeps_no_file_open(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        pid = await world.start(file)
        before = len(os.listdir(f"/proc/{pid}/fd"))
        for _ in range(20):
            await world.sync(file)
        assert len(os.listdir(f"/proc/{pid}/fd")) == before

    run(tmp_path, test)


def test_what_the_kernel_says_about_a_file_is_what_we_hear(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        await world.start(file)
        reading, writing = os.pipe()
        try:
            unsyncable = DiskFile(writing, "a pipe", writable=True)
            with pytest.raises(OSError) as failed:
                await world.sync(file, unsyncable)
            assert failed.value.errno == errno.EINVAL
        finally:
            os.close(reading)
            os.close(writing)
        await world.sync(file)

    run(tmp_path, test)


def test_a_closed_file_an_unknown_folder_and_too_many_files_are_left_to_the_workers(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file, closed = await world.open("a"), await world.open("b")
        closed.close()
        await world.start(file)
        for files in ([closed], [file, closed], [file] * 65, []):
            assert not world.syncer.offer(files, None, _never)
        assert not world.syncer.offer([file], f"{world.folder}/elsewhere", _never)

    run(tmp_path, test)


def test_a_sync_whose_process_dies_has_failed_and_the_next_ones_are_the_workers(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        pid = await world.start(file)
        os.kill(pid, signal.SIGSTOP)  # it has the job and does not do it
        sync = asyncio.create_task(world.sync(file))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(OSError, match="has died") as failed:
            await sync
        assert failed.value.errno == errno.EIO
        assert not world.syncer.offer([file], None, _never)
        assert world.syncer.pid is None

    run(tmp_path, test)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_is_meant_for_the_broker_does_not_end_it(tmp_path: Path, ending: signal.Signals) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        pid = await world.start(file)
        os.kill(pid, ending)
        await world.sync(file)
        assert world.syncer.pid == pid

    run(tmp_path, test)


has_slices = pytest.mark.skipif(
    platform.machine() not in sync_child.SCHED_CALLS or kernel_version() < (6, 12),
    reason="slices are the same for all before Linux 6.12",
)


@has_slices
def test_its_threads_ask_for_short_slices_and_keep_the_brokers_priority(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        pid = await world.start(await world.open())
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]
        assert len(threads) == sync_child.THREADS
        ours = scheduling(0)
        for thread in threads:
            assert scheduling(thread) == ours._replace(runtime_ns=sync_child.SLICE_NS)

    run(tmp_path, test)


@has_slices
def test_a_broker_that_was_told_to_stay_in_the_background_stays_there_with_its_syncs() -> None:
    script = (
        "import os, runpy, sys; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); os.nice(3); "
        "runpy.run_path(sys.argv[1])['ask_for_short_slices'](); print(flush=True); input()"
    )
    command = [sys.executable, "-c", script, sync_child.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen = scheduling(process.pid)
        process.communicate(b"\n")
    assert seen == Scheduling(os.SCHED_BATCH, min(os.nice(0) + 3, 19), sync_child.SLICE_NS)


@pytest.mark.parametrize(
    "lacking",
    [
        "sys.modules['ctypes'] = None",
        "import ctypes; ctypes.CDLL = lambda *a, **k: type('L', (), {'syscall': lambda *a: -1})",
        "import os; os.uname = lambda: os.uname_result(('Linux', 'h', '6', '1', 'riscv64'))",
    ],
    ids=["no ctypes", "a refusing kernel", "an unknown machine"],
)
def test_it_comes_where_slices_cannot_be_asked_for(lacking: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = f"import runpy, sys; {lacking}; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", script, sync_child.__file__, str(theirs.fileno())]
    with ours, subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as process:
        theirs.close()
        ours.settimeout(30)
        number, failure, _ = sync_child.ANSWER.unpack(ours.recv(sync_child.ANSWER.size))
        assert (number, failure) == (sync_child.READY, 0)
        ours.close()
        assert process.wait(30) == 0


def test_one_that_is_being_started_when_it_is_closed_is_ended_too(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        file = await world.open()
        for _ in range(FREQUENT):
            assert not world.syncer.offer([file], None, _never)

    run(tmp_path, test)
    assert not _sync_children()


def _sync_children() -> list[int]:
    """Of this very process: brokers that other tests share may have one each."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"sync_child" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def test_it_ends_when_it_is_closed(tmp_path: Path) -> None:
    pids = []

    async def test(world: World) -> None:
        pids.append(await world.start(await world.open()))

    run(tmp_path, test)
    assert is_gone(pids[0])


def test_it_ends_without_a_word_when_the_broker_is_gone_with_answers_unread() -> None:
    for _ in range(5):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", sync_child.__file__, str(theirs.fileno())]
        with subprocess.Popen(command, pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE) as process:
            theirs.close()
            assert select.select([ours], [], [], 30)[0], "it has said that it is there"
            ours.close()
            assert process.communicate(timeout=30)[1] == b""
        assert process.returncode == 0
