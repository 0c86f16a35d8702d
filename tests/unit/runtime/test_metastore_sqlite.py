"""The embedded store's own business: its file, its failures, other processes. What all stores promise: contract/."""

from __future__ import annotations

import asyncio
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from headpond.model import OutcomeUnknown, StorageFailed
from headpond.ports import Committed, HistoryLost, Put
from headpond.runtime import metastore_database
from headpond.runtime.clock import SystemClock
from headpond.runtime.metastore_database import SCHEMA_VERSION, Database, StoreUnusable
from headpond.runtime.metastore_rules import prefix_end
from headpond.runtime.metastore_sqlite import SqliteMetadataStore
from headpond.runtime.metastore_watch import QUEUED_REVISIONS_MAX, Watcher
from simulation.harness.clock import ManualClock


def database(folder: pathlib.Path, **options: Any) -> Database:
    return Database(f"{folder}/m.sqlite", **{"history_revisions_max": 1_000, **options})


def test_a_file_that_is_no_database_is_refused_with_its_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.sqlite"
    path.write_bytes(b"this is not SQLite at all, " * 100)
    with pytest.raises(StoreUnusable, match=r"m\.sqlite: file is not a database"):
        database(tmp_path)
    assert path.read_bytes().startswith(b"this is not")


def test_a_file_of_a_newer_release_is_refused(tmp_path: pathlib.Path) -> None:
    database(tmp_path).close()
    with sqlite3.connect(tmp_path / "m.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreUnusable, match="newer release"):
        database(tmp_path)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: pathlib.Path) -> None:
    with sqlite3.connect(tmp_path / "m.sqlite") as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(StoreUnusable, match="another program"):
        database(tmp_path)


def test_a_missing_folder_is_refused_clearly(tmp_path: pathlib.Path) -> None:
    with pytest.raises(StoreUnusable, match="unable to open"):
        Database(f"{tmp_path}/no/m.sqlite", history_revisions_max=1)


def test_every_commit_is_fsynced(tmp_path: pathlib.Path) -> None:
    opened = database(tmp_path)
    assert opened._pragma("synchronous") == 2
    assert opened._one("PRAGMA journal_mode") == ("wal",)
    opened.close()


def test_a_lease_from_before_a_reboot_gets_one_more_term(tmp_path: pathlib.Path) -> None:
    before = database(tmp_path)
    lease = before.grant_lease(1_000, now_ms=900_000_000)
    before.transact([], [Put("a", b"", lease)], now_ms=900_000_000)
    before.close()
    after = database(tmp_path)
    after.expire(now_ms=5_000)
    assert after.get("a") is not None
    assert after.state().next_expiry_ms == 6_000
    after.expire(now_ms=6_000)
    assert after.get("a") is None
    after.close()


def test_long_history_is_trimmed_in_steps(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore_database, "HISTORY_TRIM_EVERY", 8)
    opened = database(tmp_path, history_revisions_max=10)
    for _ in range(8 * 3 + 5):  # trimmed at 24 for the last time
        opened.transact([], [Put("a", b"")], now_ms=0)
    with pytest.raises(HistoryLost):
        opened.changes_after(13)
    assert [changes.revision for changes in opened.changes_after(14)] == list(range(15, 30))
    opened.close()


class FailingConnection:
    """A connection whose COMMIT fails as SQLite's does."""

    def __init__(self, real: sqlite3.Connection, code: int) -> None:
        self._real = real
        self._code = code

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement == "COMMIT":
            error = sqlite3.OperationalError("the disk said no")
            error.sqlite_errorcode = self._code
            raise error
        return self._real.execute(statement, *arguments)


def test_a_commit_whose_fsync_failed_is_unknown_and_the_store_is_never_trusted_again(tmp_path: pathlib.Path) -> None:
    opened = database(tmp_path)
    healthy = opened._connection
    opened._connection = FailingConnection(healthy, sqlite3.SQLITE_IOERR_FSYNC)  # type: ignore[assignment]
    with pytest.raises(OutcomeUnknown):
        opened.transact([], [Put("a", b"")], now_ms=0)
    opened._connection = healthy
    with pytest.raises(StorageFailed, match="commit failed"):
        opened.transact([], [Put("a", b"")], now_ms=0)
    opened.close()


def test_a_full_disk_is_a_plain_failure_that_passes(tmp_path: pathlib.Path) -> None:
    opened = database(tmp_path)
    healthy = opened._connection
    opened._connection = FailingConnection(healthy, sqlite3.SQLITE_FULL)  # type: ignore[assignment]
    with pytest.raises(StorageFailed):
        opened.transact([], [Put("a", b"")], now_ms=0)
    opened._connection = healthy
    assert opened.get("a") is None
    assert opened.transact([], [Put("a", b"")], now_ms=0) == Committed(1)
    opened.close()


def test_pages_damaged_later_are_reported_not_served(tmp_path: pathlib.Path) -> None:
    opened = database(tmp_path)
    for number in range(50):
        opened.transact([], [Put(f"k{number}", bytes(2_000))], now_ms=0)
    opened.close()
    path = tmp_path / "m.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises((StorageFailed, StoreUnusable)):
        database(tmp_path).list("")


_CHILD = """
import asyncio, sys
from headpond.ports import Put
from headpond.runtime.clock import SystemClock
from headpond.runtime.metastore_sqlite import SqliteMetadataStore

async def main():
    store = await SqliteMetadataStore.open(sys.argv[1], SystemClock())
    number = 0
    while True:
        number += 1
        outcome = await store.transact([], [Put("n", b"%d" % number), Put(f"k{number % 7}", b"x" * 500)])
        print(outcome.revision, flush=True)

asyncio.run(main())
"""


def test_a_killed_process_loses_nothing_that_was_answered_and_others_see_it(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        path = f"{tmp_path}/m.sqlite"
        store = await SqliteMetadataStore.open(path, SystemClock())
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _CHILD, path, stdout=asyncio.subprocess.PIPE, env={**os.environ}
        )
        assert child.stdout is not None
        answered = 0
        async with asyncio.timeout(20):
            while answered < 50:
                answered = int(await child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            rest = await child.stdout.read()
            await child.wait()
            answered = max([answered, *(int(line) for line in rest.split(b"\n")[:-1] if line)])
            seen = 0
            async for changes in store.watch("n", after_revision=0):  # the other process's commits, without a gap
                assert changes.revision == seen + 1
                seen = changes.revision
                if seen >= answered:
                    break
        entry = await store.get("n")
        assert entry is not None
        assert entry.mod_revision in (answered, answered + 1)
        assert entry.value == b"%d" % entry.mod_revision
        await store.close()

    asyncio.run(scenario())


def test_many_processes_number_their_commits_without_a_gap_or_a_double(tmp_path: pathlib.Path) -> None:
    path = f"{tmp_path}/m.sqlite"
    program = _CHILD.replace("while True", "for _ in range(20)")
    children = [subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) for _ in range(3)]
    revisions: list[int] = []
    for child in children:
        output, _ = child.communicate(timeout=30)
        revisions += map(int, output.split())
    assert sorted(revisions) == list(range(1, 61))


def test_a_watcher_too_far_behind_has_to_list_again(tmp_path: pathlib.Path) -> None:
    from headpond.ports import Change, Changes

    async def scenario() -> None:
        watcher = Watcher("", after_revision=0)
        for revision in range(1, QUEUED_REVISIONS_MAX + 2):
            watcher.offer(Changes(revision, (Change("a", b"", revision),)))
        with pytest.raises(HistoryLost):
            await watcher.next()

    asyncio.run(scenario())


def test_a_foreign_commit_at_the_start_of_a_watch_is_neither_lost_nor_doubled(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = database(tmp_path)
    foreign.transact([], [Put("n", b"1")], now_ms=0)

    async def scenario() -> None:
        ours = await SqliteMetadataStore.open(f"{tmp_path}/m.sqlite", ManualClock())
        foreign.transact([], [Put("n", b"2")], now_ms=0)  # the watch finds it in the past, the look as news
        real = Database.changes_after

        def and_then_another(self: Database, revision: int) -> Any:
            found = real(self, revision)
            monkeypatch.undo()
            foreign.transact([], [Put("n", b"3")], now_ms=0)  # between the past and the look
            return found

        monkeypatch.setattr(Database, "changes_after", and_then_another)
        watch = ours.watch("", after_revision=0)
        async with asyncio.timeout(10):
            first = [await anext(watch) for _ in range(3)]
        await ours.transact([], [Put("n", b"4")])
        assert [changes.revision for changes in [*first, await anext(watch)]] == [1, 2, 3, 4]
        await ours.close()

    asyncio.run(scenario())
    foreign.close()


def test_an_idle_store_finds_foreign_commits_even_if_the_file_looks_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        ours = await SqliteMetadataStore.open(f"{tmp_path}/m.sqlite", clock)
        theirs = await SqliteMetadataStore.open(f"{tmp_path}/m.sqlite", ManualClock())
        monkeypatch.setattr("headpond.runtime.metastore_sqlite._facts", lambda path: (1, 1))
        first = asyncio.ensure_future(anext(ours.watch("", after_revision=0)))
        await ours.get("a")
        await theirs.transact([], [Put("a", b"")])
        looks = 0
        while not first.done():
            looks += 1
            assert looks < 25
            clock.advance(0.1)
            await ours._workers.run(int)  # a round trip through the thread
            await asyncio.sleep(0)
        await ours.close()
        await theirs.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("a", "b"), ("t/", "t0"), ("a\U0010ffff", "b"), ("\U0010ffff", None), ("", None), ("x\ud7ff", "x\ue000")],
)
def test_the_end_of_a_prefix_is_the_next_string(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_is_read_or_refused_and_never_ends_in_another_error(tmp_path: pathlib.Path, seed: int) -> None:
    store = database(tmp_path)
    for n in range(30):
        store.transact([], [Put(f"partitions/{n}", b'{"leader": 1}' * 20)], 0)
    store.close()
    path, chance = tmp_path / "m.sqlite", random.Random(seed)
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 2, 30))):
        at, size = chance.randrange(len(damaged)), chance.choice((1, 4, 200, 4_096))
        damaged[at : at + size] = chance.randbytes(len(damaged[at : at + size]))
    path.write_bytes(damaged)
    try:
        again = database(tmp_path)
    except StoreUnusable as error:
        assert "restore" in str(error) or "another program" in str(error) or "newer release" in str(error)
        return
    try:
        again.state()
        again.list("")
    except StorageFailed as error:
        assert "restore" in str(error)
    finally:
        again.close()
