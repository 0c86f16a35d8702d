"""What can be wrong with a simulated disk. Paths are matched by prefix, ``""`` matching everything."""

from __future__ import annotations

import errno
import os

from simulation.harness.trace import DirectorySynced, EverythingSynced, Op


class Faults:
    """Mutable: a test or a nemesis sets what should go wrong from now on."""

    def __init__(self) -> None:
        self.space_bytes: int | None = None
        """Bytes that may still be written; beyond them a write is cut short and ENOSPC raised. None: no limit."""
        self.has_sync_all = True
        self.sync_takes_s = 0.0
        """A slow disk: what each sync adds to the time that ``take_time`` hands to the workers."""
        self.slow_suffix = ""
        """Slow are only syncs of files whose names end so: those with much to write, say."""
        self._unreadable: list[str] = []
        self._cold: list[str] = []
        self._unsyncable: list[str] = []
        self._syncs_to_fail = 0
        self._writes_to_fail: list[tuple[str, int, int]] = []
        self._time_spent_s = 0.0

    def fail_reads(self, path: str) -> None:
        """EIO from now on, as from a dying sector."""
        self._unreadable.append(path)

    def fail_syncs(self, path: str = "") -> None:
        """Each sync of such a file fails, and what was pending is lost (fsyncgate)."""
        self._unsyncable.append(path)

    def fail_next_syncs(self, count: int = 1) -> None:
        self._syncs_to_fail += count

    def fail_next_write(self, path: str = "", *, after_bytes: int = 0, error: int = errno.EIO) -> None:
        """The next write there stops after some bytes, at least one before its end, and raises: write(2) does not fail
        with everything written."""
        self._writes_to_fail.append((path, after_bytes, error))

    def make_cold(self, path: str) -> None:
        """``read_nowait`` answers None until a blocking read brings the file into memory."""
        self._cold.append(path)

    def heal(self) -> None:
        """No more faults from now on; what they destroyed stays destroyed."""
        self.space_bytes = None
        self.sync_takes_s = 0.0
        self.slow_suffix = ""
        self._syncs_to_fail = 0
        for matches in (self._unreadable, self._cold, self._unsyncable, self._writes_to_fail):
            matches.clear()

    # --- asked by the disk --------------------------------------------------------------------------------------------

    def admit_write(self, path: str, size: int) -> tuple[int, OSError | None]:
        """How many bytes go through, and what is raised then."""
        for index, (prefix, after_bytes, code) in enumerate(self._writes_to_fail):
            if path.startswith(prefix):
                del self._writes_to_fail[index]
                return min(after_bytes, max(0, size - 1)), OSError(code, os.strerror(code), path)
        if self.space_bytes is None:
            return size, None
        allowed = min(size, self.space_bytes)
        self.space_bytes -= allowed
        if allowed == size:
            return size, None
        return allowed, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def check_read(self, path: str) -> None:
        if any(path.startswith(prefix) for prefix in self._unreadable):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def is_cold(self, path: str) -> bool:
        return any(path.startswith(prefix) for prefix in self._cold)

    def warm(self, path: str) -> None:
        self._cold = [prefix for prefix in self._cold if not path.startswith(prefix)]

    def sync_error(self, path: str) -> OSError | None:
        fails = any(path.startswith(prefix) for prefix in self._unsyncable)
        if self._syncs_to_fail:
            self._syncs_to_fail -= 1
            fails = True
        return OSError(errno.EIO, os.strerror(errno.EIO), path) if fails else None

    def spend_time(self, op: Op) -> None:
        if isinstance(op, DirectorySynced | EverythingSynced) and not self.slow_suffix:
            self._time_spent_s += self.sync_takes_s

    def spend_sync(self, path: str) -> None:
        if path.endswith(self.slow_suffix):
            self._time_spent_s += self.sync_takes_s

    def take_time(self) -> float:
        """Seconds that the disk was busy since the last call: ``SimulatedWorkers`` delays its answer by them."""
        spent, self._time_spent_s = self._time_spent_s, 0.0
        return spent
