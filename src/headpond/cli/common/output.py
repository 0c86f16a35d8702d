"""What commands write: tables for people, JSON for scripts.

On a terminal tables come from rich, which is imported only then; anywhere else, and where the terminal is too narrow,
they are plain text with aligned columns, so that ``awk`` and eyes can read them. stdout carries what was asked for,
stderr everything else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from headpond.cli.common.printable import display_width, printable, printable_json, printable_lines
from headpond.runtime.streams import terminal_columns

FOLDED_WIDTH_MIN = 24


class Column(NamedTuple):
    title: str
    is_number: bool = False


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, title: str = "") -> None:
    cells = [[shown(cell) for cell in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(map(display_width, texts)) for texts in zip(titles, *cells, strict=True)]
    if sys.stdout.isatty() and _fits(widths):
        _print_rich_table(columns, cells, title, widest=widths.index(max(widths)))
        return
    if title:
        print_line(title)
    for line in (titles, *cells):
        aligned = (
            _padded(text, width, is_number=column.is_number)
            for text, width, column in zip(line, widths, columns, strict=True)
        )
        print("  ".join(aligned).rstrip())


def _padded(text: str, width: int, *, is_number: bool) -> str:
    padding = " " * (width - display_width(text))
    return padding + text if is_number else text + padding


def _fits(widths: Sequence[int]) -> bool:
    """Whether a terminal has room for all columns, the widest of which may be folded, but not to nothing: rich would
    leave columns out without a word."""
    widest = max(widths)
    between = 3 * (len(widths) - 1) + 2
    return sum(widths) - widest + min(widest, FOLDED_WIDTH_MIN) + between <= terminal_columns()


def _print_rich_table(columns: Sequence[Column], cells: Sequence[Sequence[str]], title: str, *, widest: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    heading = Text(printable(title)) if title else None
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.title, justify=justify, overflow="fold", no_wrap=number != widest)
    for row in cells:
        table.add_row(*map(Text, row))  # Text: what stands in brackets is no markup
    Console().print(table)


def shown(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return "" if cell is None else printable(str(cell))


def print_line(sentence: str) -> None:
    """A heading or a result in words, with names in it that somebody else chose: it stays one line."""
    print(printable(sentence))


def print_json(document: Any) -> None:
    """One document, for a program or a person to read."""
    from msgspec.json import encode, format

    sys.stdout.write(_shown_json(format(encode(document)).decode()) + "\n")


def json_line(document: Any) -> str:
    from msgspec.json import encode

    return _shown_json(encode(document).decode()) + "\n"


def _shown_json(text: str) -> str:
    """msgspec escapes what JSON demands; terminals obey other characters, too."""
    return printable_json(text) if sys.stdout.isatty() else text


def note(sentence: str) -> None:
    """Something for the person at the terminal that is no result."""
    print(printable_lines(sentence), file=sys.stderr, flush=True)


def bytes_in_words(size_bytes: float) -> str:
    """``512 B``, ``1.5 KiB``, ``20.0 GiB``."""
    if size_bytes < 1024:
        return f"{int(size_bytes)} B"
    for unit in ("KiB", "MiB", "GiB"):
        size_bytes /= 1024
        if size_bytes < 1024:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / 1024:,.1f} TiB"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_in_words(timestamp_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; ``-`` for the timestamp that says that there is none."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:  # beyond the year 9999
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
