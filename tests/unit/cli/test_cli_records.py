"""Records in and out of text: JSON that loses nothing, lines in pieces of any size, bad lines with their reason."""

from __future__ import annotations

import argparse
import io
import itertools
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.cli.common.failures import CommandFailed
from headpond.cli.common.record_json import BadRecord, InputRecord, parse_record, record_fields
from headpond.cli.common.record_text import RecordLines
from headpond.cli.produce.lines import LINE_BYTES_MAX, LineFormat, header_options, lines, separator_option
from headpond.model import TopicPartition

maybe_bytes = st.none() | st.binary(max_size=20)
header_names = st.binary(max_size=8).map(lambda name: name.decode("utf-8", "surrogateescape"))
headers_of_any_kind = st.lists(st.tuples(header_names, maybe_bytes), max_size=3).map(tuple)


@given(key=maybe_bytes, value=maybe_bytes, headers=headers_of_any_kind)
def test_whatever_a_record_holds_survives_json(key: Any, value: Any, headers: Any) -> None:
    line = json.dumps(record_fields(key, value, headers)).encode()
    assert parse_record(line) == InputRecord(key, value, headers)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b'"te\\u0078t"', b"text"),
        (b'""', b""),
        (b"null", None),
        (b"5", b"5"),
        (b"true", b"true"),
        (b"1.10", b"1.10"),
        (b"1e999", b"1e999"),
        (b'{"a": 1,  "a": [null, "\\u0078"]}', b'{"a": 1,  "a": [null, "\\u0078"]}'),
    ],
)
def test_a_value_that_is_no_text_is_written_as_it_stands_in_the_line(value: bytes, written: bytes | None) -> None:
    whole = b'{"key" : %s , "value" : %s , "headers": {"h": %s }}' % (value, value, value)
    assert parse_record(whole) == InputRecord(written, written, (("h", written),))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "the line is empty"),
        (b"  ", "the line is empty"),
        (b"{", "invalid JSON"),
        (b"\xff", "invalid JSON"),
        (b'{"value": NaN}', "invalid JSON"),
        (b"null", "it should be an object"),
        (b'{"headers": []}', "it has no value"),
        (b'{"value": 1, "kye": 2}', "it has no field 'kye' (did you mean key?)"),
        (b'{"value": 1, "headers": [{"value": 1}]}', "a header has no key"),
        (b'{"value": 1, "headers": ["a"]}', "headers should be"),
        (b'{"value": 1, "headers": [{"key": "a", "x": 1}]}', "it has no field 'x'"),
        (b'{"value_base64": 5}', "value_base64 is no base64"),
        (b'{"value": 1, "timestamp": 9223372036854775808}', "timestamp should be"),
        (b'{"value": 1, "timestamp": true}', "timestamp should be"),
        (b'{"value": 1, "timestamp": -1}', "timestamp should be"),
        (b'{"value": 1, "partition": 1.5}', "partition should be"),
        (b'{"value": 1, "partition": 2147483648}', "partition should be"),
        (b'{"value": 1, "partition": [0]}', "partition should be a whole number from 0 on, not [0]"),
        (b'{"value": "\\ud800"}', "invalid JSON"),
        (b'{"value": ["\xff"]}', "invalid JSON"),
        (b'{"value": ' + b"[" * 3_000 + b"]" * 3_000 + b"}", "its JSON is nested too deeply"),
        (b'{"value": 1, "headers": ' + b"[" * 3_000 + b"]" * 3_000 + b"}", "its JSON is nested too deeply"),
    ],
)
def test_a_line_that_is_no_record_says_why(line: bytes, says: str) -> None:
    with pytest.raises(BadRecord, match=re.escape(says)):
        parse_record(line)


def test_the_command_line_s_headers_come_first_and_its_partition_wins() -> None:
    json_format = LineFormat(True, None, header_options([("a", "1")]), 3)
    record = json_format.parse(b'{"value": "v", "partition": 0, "headers": {"b": null}}')
    assert record == InputRecord(None, b"v", (("a", b"1"), ("b", None)), 3)
    assert LineFormat(key_separator=b"::").parse(b"k::v::w") == InputRecord(b"k", b"v::w")
    assert LineFormat().parse(b"\xff") == InputRecord(None, b"\xff")
    assert separator_option("\\t") == b"\t"
    with pytest.raises(BadRecord, match="there is no ':'"):
        LineFormat(key_separator=b":").parse(b"kv")


class Inline:
    """Workers that do it at once."""

    async def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        return self._run(function, *arguments)

    def submit(self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        raise NotImplementedError


def read_all(pieces: list[bytes]) -> list[bytes]:
    import asyncio

    left = [*pieces, b""]

    async def collect() -> list[bytes]:
        return [line async for some in lines(Inline(), lambda size: left.pop(0)) for line in some]

    return asyncio.new_event_loop().run_until_complete(collect())


@given(text=st.binary(max_size=40), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_lines_are_the_same_however_they_are_cut_into_pieces(text: bytes, cuts: list[int]) -> None:
    text = text.replace(b"\r", b"")
    places = [0, *sorted(cuts), len(text)]
    pieces = [piece for start, end in itertools.pairwise(places) if (piece := text[start:end])]
    whole = text.split(b"\n")
    assert read_all(pieces) == (whole if whole[-1] else whole[:-1])


def test_line_ends_of_windows_are_no_part_of_a_record() -> None:
    assert read_all([b"a\r", b"\nb\r\nc"]) == [b"a", b"b", b"c"]


def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(CommandFailed, match="a line is longer than"):
        read_all([bytes(LINE_BYTES_MAX), b"x", b"y"])


def shown(**options: Any) -> bytes:
    defaults = dict.fromkeys(("json", "raw", "show_key", "show_headers", "show_offset", "show_timestamp"), False)
    formatter = RecordLines(argparse.Namespace(**{**defaults, "separator": "\\t", **options}))
    return formatter.line(TopicPartition("t", 1), 7, 1_700_000_000_123, b"k", None, (("h", None), ("i", b"x")))


class Terminal(io.TextIOWrapper):
    """A screen in some character set."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding)

    def isatty(self) -> bool:
        return True


TITLE, CLEAR, CLIPBOARD = b"\x1b]0;OWNED\x07", b"\x1b[2J", b"\x1b]52;c;ZXZpbA==\x07"


def line_of(key: bytes, value: bytes, headers: Any = (), **options: Any) -> bytes:
    defaults = dict.fromkeys(("json", "raw", "show_key", "show_headers", "show_offset", "show_timestamp"), False)
    formatter = RecordLines(argparse.Namespace(**{**defaults, "separator": "\\t", **options}))
    return formatter.line(TopicPartition("t", 1), 7, 1_700_000_000_123, key, value, headers)


def test_a_terminal_does_not_obey_what_stands_in_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    assert line_of(b"", CLEAR + b"v") == b"\\x1b[2Jv\n"
    everything = line_of(b"k" + TITLE, b"v", ((TITLE.decode(), CLIPBOARD),), show_key=True, show_headers=True)
    assert everything == b"\\x1b]0;OWNED\\x07=\\x1b]52;c;ZXZpbA==\\x07\tk\\x1b]0;OWNED\\x07\tv\n"
    assert line_of(b"", "\x9b2J\u202e\r\x7f é 注".encode()) == "\\x9b2J\\u202e\\r\\x7f é 注\n".encode()
    assert line_of(b"", b"\xff\x9b") == b"\\xff\\x9b\n"
    assert line_of(b"", b"two\tlines\n{}") == b"two\tlines\n{}\n", "nothing that a terminal would obey"


def test_a_terminal_that_has_only_single_bytes_gets_none_that_it_would_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal("latin-1"))
    assert line_of(b"", "ś é".encode()) == b"\\u015b \xe9\n", "the letter's second byte in UTF-8 is 9b"


def test_json_on_a_terminal_is_escaped_and_still_the_same_document(monkeypatch: pytest.MonkeyPatch) -> None:
    value = TITLE + "\x7f\x9b \u202e é 注 \U000e0001".encode()
    piped = line_of(b"k", value, json=True)
    monkeypatch.setattr("sys.stdout", Terminal())
    shown_there = line_of(b"k", value, json=True)
    assert json.loads(shown_there) == json.loads(piped)
    assert shown_there.decode().rstrip("\n").isprintable() and "é 注".encode() in shown_there


def test_a_pipe_and_raw_on_a_terminal_get_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    value = CLEAR + b"\xff\r\x00"
    assert line_of(b"", value) == value + b"\n"
    monkeypatch.setattr("sys.stdout", Terminal())
    assert line_of(b"", value, raw=True) == value + b"\n"


def test_a_line_holds_what_was_asked_for_in_front_of_the_value() -> None:
    assert shown() == b"null\n"
    assert shown(show_key=True) == b"k\tnull\n"
    everything = shown(show_key=True, show_headers=True, show_offset=True, show_timestamp=True, separator=" | ")
    assert everything == b"2023-11-14T22:13:20.123Z | 1:7 | h=null,i=x | k | null\n"
    assert json.loads(shown(json=True)) == {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 1_700_000_000_123,
        "key": "k",
        "value": None,
        "headers": [{"key": "h", "value": None}, {"key": "i", "value": "x"}],
    }
