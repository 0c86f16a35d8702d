"""Recovery of many logs: several at a time, in workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headpond.ports import FileSystem, Tasks, Workers
from headpond.storage.recovery.recovery import FoundFolder, Recovered, recover

FOLDERS_PER_JOB_MAX = 16
"""A folder takes a fraction of a millisecond when it is clean: several of them make one job."""


async def recover_all(
    found: list[FoundFolder],
    load: Callable[[FoundFolder, Recovered], None],
    *,
    fs: FileSystem,
    workers: Workers,
    tasks: Tasks,
    threads: int,
) -> None:
    """``load`` is called with each log, on the loop. The first failure is raised when everything has ended."""
    threads = max(1, threads)
    share = max(1, min(FOLDERS_PER_JOB_MAX, len(found) // threads))
    jobs = [found[start : start + share] for start in range(0, len(found), share)]

    failures: list[Exception] = []

    async def recover_some(ended: asyncio.Future[None]) -> None:
        try:
            while jobs:
                some = jobs.pop()
                for each, recovered in zip(some, await workers.run(_recover, fs, some), strict=True):
                    load(each, recovered)
        except Exception as error:
            failures.append(error)
        finally:
            if not ended.done():
                ended.set_result(None)

    endings: list[asyncio.Future[None]] = []
    for _ in range(min(threads, len(jobs))):
        endings.append(asyncio.get_running_loop().create_future())
        tasks.spawn("recover logs", recover_some(endings[-1]))
    for ended in endings:
        await ended
    if failures:
        raise failures[0]


def _recover(fs: FileSystem, some: list[FoundFolder]) -> list[Recovered]:
    """Blocking."""
    return [recover(fs, each) for each in some]
