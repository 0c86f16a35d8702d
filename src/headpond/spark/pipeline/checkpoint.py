"""The checkpoint of one query, as Spark lays it down: what can be known of it without Spark.

metadata            the id of the query
offsets/N           batch N was planned, and may have been written
commits/N           batch N is done
offsets/.N.ID.tmp   a file under way. A killed run leaves it; Spark never reads it, but refuses to begin a query
                    whose logs hold such a file and no batch
"""

from __future__ import annotations

import json
import re

from headpond.runtime.files import DiskFileSystem

LOGS = OFFSETS, COMMITS = ("offsets", "commits")
_UNFINISHED = re.compile(r"\.+\d+\.[0-9a-f-]+\.tmp(\.crc)?")


class Checkpoint:
    def __init__(self, path: str) -> None:
        self.path = path
        self._fs = DiskFileSystem()

    @property
    def planned(self) -> int:
        """The last batch that was planned; -1: none."""
        return last_batch(f"{self.path}/{OFFSETS}")

    @property
    def committed(self) -> int:
        """The last batch that is done; -1: none."""
        return last_batch(f"{self.path}/{COMMITS}")

    @property
    def query_id(self) -> str | None:
        """None: the query has not been started yet."""
        try:
            found = json.loads(self._fs.read_file(f"{self.path}/metadata"))
            return str(found["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def conf_line(self) -> str | None:
        """What Spark noted of the last planned batch beside its offsets: watermark, time, settings. None: no batch."""
        if (batch := self.planned) < 0:
            return None
        lines = self._fs.read_file(f"{self.path}/{OFFSETS}/{batch}").decode().split("\n")
        return lines[1] if lines[0] == "v1" and len(lines) > 1 else None

    def sweep(self) -> int:
        """Remove files that a killed run had under way; how many they were. Only while no run holds the folder."""
        left = [
            f"{self.path}/{log}/{name}"
            for log in LOGS
            if self._fs.is_dir(f"{self.path}/{log}")
            for name in self._fs.list_dir(f"{self.path}/{log}")
            if _UNFINISHED.fullmatch(name)
        ]
        for path in left:
            self._fs.remove(path)
        return len(left)


def last_batch(log: str) -> int:
    """Of a log of Spark's; -1: it has none, or is not there."""
    fs = DiskFileSystem()
    names = [name.removesuffix(".compact") for name in fs.list_dir(log)] if fs.is_dir(log) else []
    return max((int(name) for name in names if name.isascii() and name.isdigit()), default=-1)
