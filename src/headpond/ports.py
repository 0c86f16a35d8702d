"""What the broker needs from the world, as Protocols.

Everything non-deterministic (time, chance, files, network, the metadata store, threads) comes through these, so that a
simulator can run the real code. ``runtime/`` holds the real adapters; ``tests/simulation/harness`` the simulated ones.

Two kinds of calls are kept apart everywhere:

* calls that never wait for a device (``File.write`` into the page cache, ``File.read_nowait``) may run on the loop;
* calls marked *blocking* must run inside ``Workers``; the real file system refuses them on the loop's thread.

Workers touch files, the loop touches memory: a blocking function takes what it needs as arguments and returns what it
found; the objects that the loop reads are changed on the loop when the worker is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970; may jump."""

    def monotonic(self) -> float:
        """Seconds that never go back; for time-outs and durations."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle: ...

    async def sleep(self, seconds: float) -> None: ...


class Random(Protocol):
    def random_bytes(self, count: int) -> bytes: ...

    def random_int(self, below: int) -> int:
        """A number in ``0 <= n < below``."""


class Lent(Protocol):
    """Bytes of a file on their way into a socket: the file's own pages, never to be looked into."""

    @property
    def view(self) -> memoryview: ...

    def __len__(self) -> int: ...

    def send_to(self, descriptor: int, at: int) -> int:
        """From ``at`` on straight into a socket, as many as it takes now: how many that were. ``OSError``: none."""


Part = Buffer | Lent
"""A piece of a response."""


class File(Protocol):
    """An open file. One writer; any number of readers at explicit positions."""

    @property
    def device(self) -> int:
        """The number of the file system that it is in: ``FileSystem.sync_all`` covers one of them."""

    def write(self, data: Buffer) -> None:
        """Append all of ``data`` at the end, into the page cache. On ``OSError`` a part may have been written: the
        caller must ``truncate`` back before it appends again."""

    def read_nowait(self, position: int, size: int) -> Buffer | None:
        """Up to ``size`` bytes that are in memory already (shorter at the end of the file, or where memory ends);
        ``None`` when the device would have to be waited for. The buffer is fresh and the caller's own (a bytearray
        where a copy into bytes would cost as much as the read)."""

    def lend_nowait(self, position: int, size: int) -> Lent | None:
        """The same bytes without a copy, for ``Network.send``. ``None``: some are not in memory, or can't be lent here;
        use ``read_nowait``."""

    def read(self, position: int, size: int) -> bytes:
        """Blocking. Shorter only at the end of the file."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Blocking. Later writes go to the new end."""

    def sync(self) -> None:
        """Blocking: fdatasync. An ``OSError`` is final: never retried (fsyncgate)."""

    def forget_cached(self) -> None:
        """Blocking. What is synced is read from the device from now on, not from memory, which after a failed sync
        holds what the device never got. A request: systems without such a call ignore it."""

    def map(self) -> Buffer:
        """Blocking: the whole file as read-only memory (mmap where there is one); stays valid until ``close``."""

    def close(self) -> None:
        """May run on the loop, also while a worker uses the file (whose call ends in peace); closing twice does
        nothing. The last close of a removed file gives its blocks back: for a large one, do that in a worker."""


class FileSystem(Protocol):
    """Paths are plain strings with ``/``. Everything here is blocking except where said. What is no regular file (a
    named pipe, a device) is an ``OSError`` when it is opened, read or asked for its size: nothing waits for it."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, writable: bool = True) -> File:
        """Open; the write position is the end of the file. ``exclusive``: fail with FileExistsError if it exists."""

    def list_dir(self, path: str) -> list[str]:
        """Names, sorted."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def make_dirs(self, path: str) -> None:
        """Make the folder and its parents; fine if it exists."""

    def rename(self, source: str, target: str) -> None:
        """Atomic, replaces ``target``; durable after ``sync_dir`` of the parent."""

    def remove(self, path: str) -> None:
        """Remove a file; fine if it is gone."""

    def remove_tree(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None:
        """fsync of a folder: makes creations, renames and removals in it durable."""

    def sync_all(self, path: str) -> bool:
        """Flush the whole file system that holds ``path`` in one call (syncfs). False where there is no such call:
        then sync file by file."""

    def read_file(self, path: str) -> bytes: ...

    def write_file_atomically(self, path: str, data: Buffer) -> None:
        """Temporary file, fsync, rename, fsync of the folder: after a crash the old or the new content is there."""

    def leave_note(self, path: str) -> None:
        """May run on the loop: an empty file, seen by the next process but not durable; what fails is ignored. For a
        process that is about to end."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def lock(self, path: str) -> File | None:
        """Take an exclusive POSIX lock (``lockf``, the same kind that Kafka takes) on ``path``, created when missing.
        None: somebody else holds it. The lock lives until the file is closed or the process ends."""


class Workers(Protocol):
    """Runs blocking functions off the loop (real: threads; simulated: inline, with latency)."""

    def run(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]: ...

    def submit(self, function: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """The same without a future, for the hot path: ``done(result, error)`` is called on the loop."""


class Syncer(Protocol):
    """Makes files durable at less cost than a worker, when there is much of it (real: a process of its own)."""

    def offer(
        self, files: Sequence[File], folder: str | None, done: Callable[[float | None, BaseException | None], None]
    ) -> bool:
        """Sync these files or, with ``folder``, everything in its file system; ``done(seconds, error)`` is called on
        the loop, and an ``OSError`` is as final as that of ``File.sync``. False: it does not take this one, a worker
        has to."""

    def look(self) -> None:
        """Call ``done`` of the syncs that have returned now, rather than in the loop's next turn."""


class ProcessLost(Exception):
    """The process that ran a job has died, by a bug or for want of memory; what the job had done so far stays done."""


class Processes(Protocol):
    """Runs long pure-Python work in another process, so that neither the loop nor the interpreter lock is held (real:
    a process that starts with the first job and ends when there is none for a while; simulated: inline)."""

    def steps(self, function: Callable[..., Iterator[T]], *arguments: Any) -> AsyncGenerator[T, None]:
        """What ``function(fs, *arguments)`` yields there. It goes on when the next step is asked for; closing the
        generator ends the job, wherever it is. Raises what it raises, and ``ProcessLost``. Function, arguments and
        steps must be picklable. ``fs`` is a file system as of here."""


class Tasks(Protocol):
    """Owns every task: names it, keeps it referenced, reports its failure, ends it at shutdown."""

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...

    async def cancel_all(self) -> None: ...


class CodeFiles(Protocol):
    """The files of the program itself, of which some are read when it serves already."""

    later_modules: tuple[str, ...]
    """What adapters import at their first use."""

    def within_reach(self) -> AbstractContextManager[None]:
        """Inside, they can be opened however many descriptors are taken. Nothing is awaited there."""

    def all_read(self) -> None:
        """Nothing has to be kept for them any more."""


class ProcessFacts(NamedTuple):
    """What the operating system knows about the process."""

    cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    open_files: int
    open_files_max: int
    started_s: float  # since 1970
    python: str  # the interpreter's version


class Listener(Protocol):
    host: str
    port: int

    async def close(self) -> None: ...


class Tls(NamedTuple):
    """How the peer of a connection proves who it is, and how we do. Files are read anew for each connection, so that
    certificates can be replaced; PEM stands for the text itself."""

    trusted_path: str | None = None
    """A file of certificates, or a folder as ``openssl rehash`` makes it."""
    trusted_pem: str | None = None
    """With neither: whom the machine trusts."""
    certificate_path: str | None = None
    """Ours, with its chain; and its key, unless ``key_path`` says where that is."""
    key_path: str | None = None
    certificate_pem: str | None = None
    """The same as text, the key included."""
    key_password: str | None = None
    is_host_checked: bool = True
    """The certificate must be for the host that was asked for."""
    versions: tuple[str, ...] = ()
    """Of the protocol, as TLSv1.3; none: what the machine thinks right."""

    def __repr__(self) -> str:
        """Without the key and what opens it."""
        return f"Tls(trusted_path={self.trusted_path!r}, certificate_path={self.certificate_path!r})"


class TlsMisconfigured(OSError):
    """Our own certificates or keys can't be used; one sentence that says which."""


class Network(Protocol):
    async def listen(self, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]) -> Listener:
        """Accept connections; port 0 picks a free one."""

    async def connect(
        self, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol], *, tls: Tls | None = None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """With ``tls`` the handshake is done when it returns. What goes wrong in it is an ``OSError``: of Python's
        ``ssl``, whose attributes say more, or ``TlsMisconfigured``."""

    def send(self, transport: asyncio.WriteTransport, parts: Sequence[Part]) -> None:
        """Like ``transport.writelines``, and takes what files have lent. Not for a transport that is closing."""

    def buffer(self, size_bytes: int) -> bytearray:
        """To receive into. What has not been written yet may be anything, and takes no memory."""


# --- the metadata store ---------------------------------------------------------------------------------------------

STORE_OPERATIONS_MAX = 128
"""Operations (compares plus writes) in one transaction: etcd's default limit, enforced by every adapter."""
STORE_REQUEST_BYTES_MAX = 1_048_576
"""Keys plus values of one transaction: stays below etcd's 1.5 MiB request limit."""


class Entry(NamedTuple):
    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class Put(NamedTuple):
    key: str
    value: bytes
    lease: int | None = None


class Delete(NamedTuple):
    key: str


class Compare(NamedTuple):
    """``key`` was last changed at ``mod_revision``; 0: it does not exist. ``create_revision`` likewise, for fencing."""

    key: str
    revision: int
    target: Literal["mod", "create"] = "mod"


class Committed(NamedTuple):
    revision: int


class Conflict(NamedTuple):
    """A compare failed; nothing was changed. ``entries``: what the compared keys hold now (missing keys left out)."""

    revision: int
    entries: tuple[Entry, ...]


class Change(NamedTuple):
    """One key's change: ``value`` None means deleted."""

    key: str
    value: bytes | None
    revision: int


class Changes(NamedTuple):
    """All changes of one revision under the watched prefix (a transaction's changes come together)."""

    revision: int
    changes: tuple[Change, ...]


class Listing(NamedTuple):
    revision: int
    entries: tuple[Entry, ...]


class HistoryLost(Exception):
    """The store no longer has the revision that a watch asked for: list again, then watch from there."""


class LeaseLost(Exception):
    """A write named a lease that has run out or never was; nothing was changed."""


class MetadataStore(Protocol):
    """A small linearizable map with revisions. A call that raises ``OutcomeUnknown`` may have taken effect; one that
    raises ``StorageFailed`` has not. Revisions start at 0 (empty) and grow by one for each transaction that changes
    something; compares alone, and deletions of what is not there, leave it as it is."""

    async def get(self, key: str) -> Entry | None: ...

    async def list(self, prefix: str) -> Listing:
        """All entries under ``prefix``, sorted by key, with the store's revision at that moment."""

    async def transact(self, compares: Sequence[Compare], writes: Iterable[Put | Delete]) -> Committed | Conflict:
        """All writes or none, if every compare holds. One transaction gets one revision; a key may be written once.
        Raises ``LeaseLost``; breaking a limit is our bug (``InvariantBroken``)."""

    def watch(self, prefix: str, *, after_revision: int) -> AsyncIterator[Changes]:
        """Every change after that revision, in order, none left out; raises ``HistoryLost`` when it can't. Ends when
        the store is closed."""

    async def grant_lease(self, ttl_ms: int) -> int:
        """A lease that runs out unless ``keep_lease`` is called within each ``ttl_ms``; its keys are deleted then."""

    async def keep_lease(self, lease: int) -> bool:
        """False: it has run out, and its keys are gone."""

    async def revoke_lease(self, lease: int) -> None: ...

    async def close(self) -> None: ...
