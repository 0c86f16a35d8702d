"""What an answer owes to its run and not to the broker's behaviour, put back under its name; and only that.

That is: the variables of the script (names and ids of topics, producer ids, fetch sessions), and what ``FIELDS`` lists.
A value that merely looks like one of them stays as it is and fails the comparison.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parity.plain import Plain

MOMENTS = re.compile(r"-?\b\d{13,19}\b")
MEMBER_ID = re.compile(r"(.*-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9_-]{22}")
HOUR_MS, LONG_MAX = 3_600_000, (1 << 63) - 1


class Peer(NamedTuple):
    """A broker under comparison."""

    bootstrap: str
    data_dir: Path
    cluster_id: str
    restart: Callable[[Mapping[str, str]], object] = lambda changed: None
    """With these settings changed."""


class Surroundings:
    def __init__(self, peer: Peer, variables: Mapping[str, Any], began_ms: int) -> None:
        self.variables = variables
        self._peer = peer
        self._began_ms = began_ms

    def put_back(self, answer: Plain, unordered: Sequence[str] = ()) -> Plain:
        """The answer in words that are the same in every run; ``unordered``: the lists to be sorted."""
        out: Plain = self._replaced("", answer)
        for path in unordered:
            _sort(out, path.split("."))
        return out

    def _replaced(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._replaced(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._replaced(name, each) for each in value]
        surrounding = FIELDS.get(name)
        if surrounding is not None:
            found = surrounding(self, value)
            if found is not None:
                return found
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value))
        if isinstance(value, str):
            return self._text(value)
        return value

    def _bytes(self, value: bytes) -> str:
        for name, known in self.variables.items():
            if known == value:
                return f"${{{name}}}"
        return value.hex()

    def _text(self, value: str) -> str:
        for name, known in self._names():
            value = value.replace(known, f"${{{name}}}")
        return MOMENTS.sub(self._moment_in_text, value)

    def _moment_in_text(self, found: re.Match[str]) -> str:
        """Bounds of timestamps are told relative to the broker's clock, at most by an hour or by all of a long."""
        for distance in (0, LONG_MAX):
            if abs(int(found[0]) + distance - self._began_ms) < 2 * HOUR_MS:
                return "${around now}" if distance == 0 else "${around now - a long}"
        return found[0]

    def _names(self) -> list[tuple[str, str]]:
        texts = {
            name: base64.urlsafe_b64encode(known).decode().rstrip("=") if isinstance(known, bytes) else known
            for name, known in {**self.variables, "data_dir": str(self._peer.data_dir)}.items()
        }
        host, _, port = self._peer.bootstrap.rpartition(":")
        texts["address"] = self._peer.bootstrap
        texts["the controller's address"] = f"{host}:{int(port) + 1}"
        found = [(name, known) for name, known in texts.items() if isinstance(known, str) and len(known) > 3]
        return sorted(found, key=lambda each: -len(each[1]))

    def moment(self, value: int) -> str | None:
        """A time that the broker's clock gave while the script was played."""
        is_now = self._began_ms - 1_000 <= value <= time.time_ns() // 1_000_000 + 1_000
        return "${a moment of this run}" if is_now else None


def _number(around: Surroundings, value: Any) -> str | None:
    numbers = {name: known for name, known in around.variables.items() if isinstance(known, int)}
    return next((f"${{{name}}}" for name, known in numbers.items() if known == value), None)


def _moment(around: Surroundings, value: Any) -> str | None:
    return around.moment(value)


def _text_of_documentation(_: Surroundings, value: Any) -> str | None:
    return "${words}" if value else None


def _positive(_: Surroundings, value: Any) -> str | None:
    return "${positive}" if value > 0 else None


def _revision(_: Surroundings, value: Any) -> str | None:
    return "${revision}" if value >= 0 else None


def _new_id(around: Surroundings, value: bytes) -> str | None:
    """Random ids say of themselves that they are; those that scripts make up don't."""
    is_random = value[6] >> 4 == 4 and value[8] >> 6 == 2
    return "${a new id}" if is_random and value not in around.variables.values() else None


def _new_member(around: Surroundings, value: str | None) -> str | None:
    """The broker's ids of members: what they are called by, and something random."""
    found = MEMBER_ID.fullmatch(value or "")
    if found is None or value in around.variables.values():
        return None
    return (found[1] or "") + "${a new id}"


FIELDS: dict[str, Callable[[Surroundings, Any], str | None]] = {
    # Ids that no step captured, because nothing is done with them.
    "topic_id": _new_id,
    "member_id": _new_member,
    "leader": _new_member,
    # The one that was asked; captured numbers likewise.
    "port": _number,
    "producer_id": _number,
    "session_id": _number,
    # The broker's clock.
    "log_append_time_ms": _moment,
    "base_timestamp": _moment,
    "max_timestamp": _moment,
    "timestamp": _moment,
    "last_timestamp": _moment,
    "transaction_start_time_ms": _moment,
    # The machine's disk.
    "total_bytes": _positive,
    "usable_bytes": _positive,
    # Revisions of the metadata: any that is one.
    "finalized_features_epoch": _revision,
    # Facts are carried over, sentences are not.
    "documentation": _text_of_documentation,
}
"""Field -> what stands for its value, where it is of the run and not of the broker's behaviour; None: it is not."""


def _sort(value: Any, path: list[str]) -> None:
    if isinstance(value, list):
        for each in value:
            _sort(each, path)
    elif isinstance(value, dict) and path[0] in value:
        if len(path) == 1:
            value[path[0]].sort(key=repr)
        else:
            _sort(value[path[0]], path[1:])
