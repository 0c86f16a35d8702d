"""The SQLite file behind the embedded metadata store: blocking calls, for one thread.

Promises    A transaction that returned is on disk (``synchronous=FULL``: the write-ahead log is fsynced at each
            commit) and visible to every process that has the file open. Revisions grow by one for each transaction
            that changes something. The last ``history_revisions_max`` revisions can be replayed.
A crash     leaves the last committed transaction or the one in flight, whole: SQLite's recovery at the next open.
Leases      end by the machine's monotonic clock, which all processes of a boot share. After a reboot it starts anew: a
            lease that seems to last longer than its ``ttl_ms`` is from before, and gets one more ``ttl_ms`` from now.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

from headpond.model import OutcomeUnknown, StorageFailed
from headpond.ports import (
    Change,
    Changes,
    Committed,
    Compare,
    Conflict,
    Delete,
    Entry,
    HistoryLost,
    LeaseLost,
    Listing,
    Put,
)
from headpond.runtime.files import check_regular
from headpond.runtime.metastore_rules import prefix_end

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4C4F474D  # "LOGM", in the file's header: what `file` and we recognise it by
# Another process may hold the write lock for a commit or two, each an fsync; longer means that something is wrong.
BUSY_TIMEOUT_MS = 5_000
# Trim the history in steps: a deletion with every commit would double its cost.
HISTORY_TRIM_EVERY = 256

_SCHEMA = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER NOT NULL, forgotten INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 0);
CREATE TABLE entries (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, create_revision INTEGER NOT NULL, mod_revision INTEGER NOT NULL,
    lease INTEGER
) WITHOUT ROWID;
CREATE INDEX entries_by_lease ON entries (lease) WHERE lease IS NOT NULL;
CREATE TABLE history (
    revision INTEGER NOT NULL, ordinal INTEGER NOT NULL, key TEXT NOT NULL, value BLOB, PRIMARY KEY (revision, ordinal)
) WITHOUT ROWID;
CREATE TABLE leases (id INTEGER PRIMARY KEY AUTOINCREMENT, ttl_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL);
"""
_ENTRY = "SELECT key, value, create_revision, mod_revision FROM entries"
_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the second: its words about a damaged file quote the damage
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)  # the last: a table is missing
_ADOPT = "`headpond adopt` then gets the topics back from their folders"
RESTORE = f"restore the file from a copy, or move it away; {_ADOPT}"
"""What to do about a file that can't be used."""


class StoreUnusable(Exception):
    """The metadata file can't be used by this program; the message says why and what to do."""


class State(NamedTuple):
    revision: int
    next_expiry_ms: int | None


class Database:
    """One connection. All times are milliseconds of the monotonic clock."""

    def __init__(self, path: str, *, history_revisions_max: int) -> None:
        self._path = path
        self._history_revisions_max = history_revisions_max
        self._failed: str | None = None
        is_new = _size_of(path) == 0
        if is_new and _size_of(f"{path}-wal"):
            # SQLite would remove the log of an empty file, and with it what the log may still hold.
            raise StoreUnusable(
                f"{path} is missing or empty, but its write-ahead log {path}-wal is not: restore both from a copy, or "
                f"move the log away as well; {_ADOPT}"
            )
        try:
            # The connection is made in one worker thread and used there; closing may happen in another one.
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_MS / 1_000, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(is_new=is_new)
            except BaseException:
                self._connection.close()
                raise
        except _SQLITE_ERRORS as error:
            raise StoreUnusable(f"{path}: {error}{_hint(error)}") from error

    def _prepare(self, *, is_new: bool) -> None:
        execute = self._connection.execute
        if not is_new:
            self._check_header()
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache; nothing elsewhere
        execute("PRAGMA checkpoint_fullfsync = ON")
        if not is_new:
            self._check_pages()
        if self._pragma("user_version") == 0:
            with self._writing():
                if self._pragma("user_version") == 0:  # two processes may both have found it empty
                    for statement in _SCHEMA.split(";\n"):
                        execute(statement)
                    execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            _sync_folder_of(self._path)

    def _check_header(self) -> None:
        version, application = self._pragma("user_version"), self._pragma("application_id")
        if application not in (0, APPLICATION_ID) or (application == 0 and self._has_tables()):
            raise StoreUnusable(f"{self._path}: an SQLite file of another program; choose another data folder")
        if version > SCHEMA_VERSION:
            raise StoreUnusable(
                f"{self._path}: written by a newer release (format {version}, this one reads up to {SCHEMA_VERSION}); "
                "upgrade this program"
            )

    def _check_pages(self) -> None:
        """Damage shows now and not when a page is first needed; 15 ms for 20,000 partitions."""
        (found,) = self._one("PRAGMA quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed ({' '.join(str(found).split())})")

    def _has_tables(self) -> bool:
        return bool(self._one("SELECT count(*) FROM sqlite_master")[0])

    # --- reading ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        with self._guarded():
            state = State(*self._one("SELECT revision, (SELECT min(expires_ms) FROM leases) FROM state"))
            if not isinstance(state.revision, int) or not isinstance(state.next_expiry_ms, int | None):
                raise sqlite3.DatabaseError("the tables state and leases should hold numbers")
            return state

    def get(self, key: str) -> Entry | None:
        with self._guarded():
            return self._entry(key)

    def list(self, prefix: str) -> Listing:
        with self._guarded(), self._snapshot():
            end = prefix_end(prefix)
            if end is None:
                rows = self._connection.execute(f"{_ENTRY} WHERE key >= ? ORDER BY key", (prefix,))
            else:
                rows = self._connection.execute(f"{_ENTRY} WHERE key >= ? AND key < ? ORDER BY key", (prefix, end))
            return Listing(self._revision(), tuple(map(_as_entry, rows)))

    def changes_after(self, revision: int) -> Sequence[Changes]:
        """All later revisions; raises ``HistoryLost``."""
        with self._guarded(), self._snapshot():
            newest, forgotten = self._one("SELECT revision, forgotten FROM state")
            if revision > newest:
                raise HistoryLost(f"revision {revision} is not in this store, whose newest is {newest}")
            if revision < forgotten:
                raise HistoryLost(f"revision {revision} is forgotten, history begins after {forgotten}")
            if revision == newest:
                return []
            rows = self._connection.execute(
                "SELECT key, value, revision FROM history WHERE revision > ? ORDER BY revision, ordinal", (revision,)
            )
            changes = (Change(*row) for row in rows)
            return [Changes(number, tuple(group)) for number, group in groupby(changes, key=lambda one: one.revision)]

    # --- writing ------------------------------------------------------------------------------------------------------

    def transact(
        self, compares: Sequence[Compare], writes: Sequence[Put | Delete], now_ms: int
    ) -> Committed | Conflict:
        with self._guarded(), self._writing():
            self._expire(now_ms)
            found = {compare.key: self._entry(compare.key) for compare in compares}
            if not all(_holds(compare, found[compare.key]) for compare in compares):
                entries = tuple(entry for entry in found.values() if entry is not None)
                return Conflict(self._revision(), entries)
            for write in writes:
                if isinstance(write, Put) and write.lease is not None and self._lease_ttl_ms(write.lease) is None:
                    raise LeaseLost(f"lease {write.lease} has run out")
            return Committed(self._apply(writes))

    def grant_lease(self, ttl_ms: int, now_ms: int) -> int:
        with self._guarded(), self._writing():
            cursor = self._connection.execute(
                "INSERT INTO leases (ttl_ms, expires_ms) VALUES (?, ?)", (ttl_ms, now_ms + ttl_ms)
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def keep_lease(self, lease: int, now_ms: int) -> bool:
        with self._guarded(), self._writing():
            self._expire(now_ms)
            ttl_ms = self._lease_ttl_ms(lease)
            if ttl_ms is None:
                return False
            self._connection.execute("UPDATE leases SET expires_ms = ? WHERE id = ?", (now_ms + ttl_ms, lease))
            return True

    def revoke_lease(self, lease: int) -> None:
        with self._guarded(), self._writing():
            self._end_lease(lease)

    def expire(self, now_ms: int) -> None:
        with self._guarded(), self._writing():
            self._expire(now_ms)

    def close(self) -> None:
        self._connection.close()

    # --- inside a transaction -----------------------------------------------------------------------------------------

    def _apply(self, writes: Iterable[Put | Delete]) -> int:
        """Carry the writes out under the next revision, if they change anything; returns the store's revision."""
        execute = self._connection.execute
        before = self._revision()
        revision = before + 1
        changes: list[tuple[int, int, str, bytes | None]] = []
        for write in writes:
            if isinstance(write, Put):
                execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                    "value = excluded.value, mod_revision = excluded.mod_revision, lease = excluded.lease",
                    (write.key, bytes(write.value), revision, revision, write.lease),
                )
                changes.append((revision, len(changes), write.key, bytes(write.value)))
            elif execute("DELETE FROM entries WHERE key = ?", (write.key,)).rowcount:
                changes.append((revision, len(changes), write.key, None))
        if not changes:
            return before
        self._connection.executemany("INSERT INTO history VALUES (?, ?, ?, ?)", changes)
        execute("UPDATE state SET revision = ?", (revision,))
        if revision % HISTORY_TRIM_EVERY == 0 or self._history_revisions_max < HISTORY_TRIM_EVERY:
            self._trim_history(revision - self._history_revisions_max)
        return revision

    def _trim_history(self, up_to_revision: int) -> None:
        if up_to_revision > 0:
            self._connection.execute("DELETE FROM history WHERE revision <= ?", (up_to_revision,))
            self._connection.execute("UPDATE state SET forgotten = max(forgotten, ?)", (up_to_revision,))

    def _expire(self, now_ms: int) -> None:
        execute = self._connection.execute
        execute("UPDATE leases SET expires_ms = ? + ttl_ms WHERE expires_ms > ? + ttl_ms", (now_ms, now_ms))
        for (lease,) in execute("SELECT id FROM leases WHERE expires_ms <= ? ORDER BY id", (now_ms,)).fetchall():
            self._end_lease(lease)

    def _end_lease(self, lease: int) -> None:
        """Its keys go in one revision, as in etcd."""
        keys = self._connection.execute("SELECT key FROM entries WHERE lease = ? ORDER BY key", (lease,)).fetchall()
        self._apply([Delete(key) for (key,) in keys])
        self._connection.execute("DELETE FROM leases WHERE id = ?", (lease,))

    def _lease_ttl_ms(self, lease: int) -> int | None:
        row = self._connection.execute("SELECT ttl_ms FROM leases WHERE id = ?", (lease,)).fetchone()
        return row[0] if row else None

    def _entry(self, key: str) -> Entry | None:
        row = self._connection.execute(f"{_ENTRY} WHERE key = ?", (key,)).fetchone()
        return _as_entry(row) if row else None

    def _revision(self) -> int:
        revision: int = self._one("SELECT revision FROM state")[0]
        return revision

    def _one(self, statement: str) -> Any:
        row = self._connection.execute(statement).fetchone()
        if row is None:
            raise sqlite3.DatabaseError(f"no row for {statement}")
        return row

    def _pragma(self, name: str) -> int:
        value: int = self._one(f"PRAGMA {name}")[0]
        return value

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Several reads of one moment."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The write lock from the start: a compare that held still holds at the commit."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            execute("ROLLBACK")
            raise
        try:
            execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL:
                raise  # found before anything was committed
            # The log may have reached the disk although the fsync failed, and trying again would prove nothing.
            self._failed = f"{self._path}: commit failed: {error}"
            raise OutcomeUnknown(message=self._failed) from error

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """SQLite's errors in our words: these calls had no effect."""
        if self._failed is not None:
            raise StorageFailed(message=self._failed)
        try:
            yield
        except _SQLITE_ERRORS as error:
            raise StorageFailed(message=f"{self._path}: {error}{_hint(error)}") from error


def _hint(error: Exception) -> str:
    """What to do about a file that is damaged; nothing for one that is locked, read-only or on a full disk."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # Python finds damage too, and gives no code
    return f"; {RESTORE}" if code & 0xFF in _DAMAGE else ""


def _as_entry(row: tuple[Any, ...]) -> Entry:
    key, value, create_revision, mod_revision = row
    if not isinstance(value, bytes):  # SQLite lets every column hold every type
        raise sqlite3.DatabaseError(f"bad entry {key}: its value is of type {type(value).__name__}")
    if not isinstance(create_revision, int) or not isinstance(mod_revision, int):
        raise sqlite3.DatabaseError(f"bad entry {key}: its revisions are not numbers")
    return Entry(key, value, create_revision, mod_revision)


def _holds(compare: Compare, entry: Entry | None) -> bool:
    if entry is None:
        return compare.revision == 0
    return compare.revision == (entry.mod_revision if compare.target == "mod" else entry.create_revision)


def _size_of(path: str) -> int:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0
    check_regular(found, path)  # SQLite would call it an I/O error
    return found.st_size


def _sync_folder_of(path: str) -> None:
    """The new file's name has to survive a power cut as well as its content."""
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
