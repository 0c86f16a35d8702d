"""Lines from stdin, as they arrive, and what each of them stands for.

A pipe is read in pieces, so that `tail -f x | headpond produce t` writes each line when it comes. Reading is a blocking
call in a worker thread. It goes to the descriptor under Python's buffer: that one has a lock which a thread that still
waits would hold when the process ends.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from headpond.cli.common.failures import CommandFailed
from headpond.cli.common.record_json import BadRecord, Header, InputRecord, parse_record
from headpond.ports import Workers

PIECE_BYTES = 256 * 1024
LINE_BYTES_MAX = 64 * 1024 * 1024
"""Far above any broker's largest message: a file without line ends must not fill the memory."""


class LineFormat(NamedTuple):
    """How a line becomes a record."""

    is_json: bool = False
    key_separator: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None

    def parse(self, line: bytes) -> InputRecord:
        """Raises ``BadRecord``. What the command line says of headers and partition holds for every line."""
        if self.is_json:
            record = parse_record(line)
            partition = record.partition if self.partition is None else self.partition
            return record._replace(headers=(*self.headers, *record.headers), partition=partition)
        key, value = None, line
        if self.key_separator is not None:
            key, separator, value = line.partition(self.key_separator)
            if not separator:
                shown = self.key_separator.decode("utf-8", "replace")
                raise BadRecord(f"there is no {shown!r} between key and value")
        return InputRecord(key, value, self.headers, self.partition)


async def lines(workers: Workers, read: Callable[[int], bytes | None] | None = None) -> AsyncIterator[list[bytes]]:
    """The lines of stdin without their ends (``\\n`` or ``\\r\\n``), as many at a time as there are. The last one needs
    no end."""
    if read is None:
        read = sys.stdin.buffer.raw.read  # type: ignore[union-attr]
        assert read is not None
    rest = b""
    while piece := await workers.run(read, PIECE_BYTES):
        whole = (rest + piece).split(b"\n")
        rest = whole.pop()
        if len(rest) > LINE_BYTES_MAX:
            raise CommandFailed(f"a line is longer than {LINE_BYTES_MAX:,} bytes: is this a file of lines?")
        if whole:
            yield [line.removesuffix(b"\r") for line in whole]
    if rest:
        yield [rest.removesuffix(b"\r")]


def header_options(given: Sequence[tuple[str, str]]) -> tuple[Header, ...]:
    """Arguments come with the bytes that are no text as surrogate escapes; they leave as those bytes."""
    return tuple((name, value.encode("utf-8", "surrogateescape")) for name, value in given)


def separator_option(text: str) -> bytes:
    """``\\t`` and the like, which shells don't make easy to type."""
    for written, meant in (("\\t", "\t"), ("\\0", "\0")):
        text = text.replace(written, meant)
    return text.encode("utf-8", "surrogateescape")
