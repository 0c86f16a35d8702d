"""Log lines: one per message, whatever is in it; quiet by default; never a flood."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from headpond.telemetry.logs import (
    BURST,
    LIFECYCLE,
    WINDOW_S,
    BoundedHandler,
    JsonLines,
    Messages,
    TextLines,
    configure,
    printable,
)


class Output:
    """A logger of its own with a handler of ours; time is given with each message."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        self.messages = Messages()
        self._handler = BoundedHandler(self.stream, self.messages)
        self._handler.setFormatter(formatter)
        self._logger = logging.Logger("headpond.server")
        self._logger.addHandler(self._handler)

    def say(
        self, text: str, *arguments: object, at_s: float = 0.0, level: int = logging.WARNING, **more: object
    ) -> None:
        record = self._logger.makeRecord("headpond.server", level, "f", 1, text, arguments, None, extra=dict(more))
        record.created = at_s
        self._logger.handle(record)

    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root, lifecycle = logging.getLogger(), logging.getLogger(LIFECYCLE)
    handlers, level, lifecycle_level, raises = root.handlers[:], root.level, lifecycle.level, logging.raiseExceptions
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    lifecycle.setLevel(lifecycle_level)
    logging.raiseExceptions = raises


def test_a_line_says_when_how_bad_who_and_what() -> None:
    output = Output(TextLines())
    output.say("refused a connection from %s", "10.0.0.1", at_s=1_700_000_000.123)
    assert output.lines() == ["2023-11-14T22:13:20.123Z WARNING headpond.server: refused a connection from 10.0.0.1"]


def test_a_machine_gets_an_object_per_line_with_the_fields_that_were_passed() -> None:
    output = Output(JsonLines())
    output.say("a client sent %s", 'quotes "\n and \x1b[31m', at_s=1_700_000_000.5, peer="10.0.0.1", odd={1: 2})
    (line,) = output.lines()
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "WARNING",
        "logger": "headpond.server",
        "message": 'a client sent quotes "\n and \x1b[31m',
        "peer": "10.0.0.1",
        "odd": "{1: 2}",
    }


def test_a_lone_surrogate_out_of_a_clients_bytes_is_no_reason_to_lose_the_message() -> None:
    output = Output(JsonLines())
    output.say("client id %s", b"\xff".decode("utf-8", "surrogateescape"))
    assert json.loads(output.lines()[0])["message"] == "client id \\udcff"


def test_a_traceback_is_part_of_its_record() -> None:
    for formatter in (TextLines(), JsonLines()):
        stream = io.StringIO()
        handler = BoundedHandler(stream, Messages())
        handler.setFormatter(formatter)
        logger = logging.Logger("headpond.x")
        logger.addHandler(handler)
        try:
            raise ValueError("gone \x1b[2J\x07")
        except ValueError:
            logger.exception("met a bug")
        text = stream.getvalue()
        assert "met a bug" in text and "Traceback" in text and "ValueError: gone" in text
        assert all(line.isprintable() for line in text.split("\n")), "a client's bytes may be in an error"
        if isinstance(formatter, JsonLines):
            assert "ValueError" in json.loads(text)["traceback"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é \U0001f600", "plain é \U0001f600"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\u2028b\x00", "a\\u2028b\\x00"),
    ],
)
def test_control_characters_are_shown_not_obeyed(text: str, shown: str) -> None:
    assert printable(text) == shown
    output = Output(TextLines())
    output.say("%s", text)
    assert output.lines() == [f"1970-01-01T00:00:00.000Z WARNING headpond.server: {shown}"]


def test_a_client_that_misbehaves_all_day_gets_a_few_lines_and_a_count() -> None:
    output = Output(TextLines())
    for number in range(1_000):
        output.say("closed a connection from %s", f"10.0.0.{number}", at_s=number / 100)
    assert len(output.lines()) == BURST
    assert output.messages.by_level["WARNING"] == 1_000
    assert output.messages.suppressed == 1_000 - BURST
    output.say("closed a connection from %s", "10.0.0.1", at_s=WINDOW_S + 1)
    assert output.lines()[-1].endswith("closed a connection from 10.0.0.1 (990 more like this were not logged)")
    output.say("closed a connection from %s", "10.0.0.1", at_s=WINDOW_S + 2)
    assert output.lines()[-1].endswith("closed a connection from 10.0.0.1")


def test_one_kind_of_message_does_not_silence_another() -> None:
    output = Output(TextLines())
    for _ in range(100):
        output.say("noise", at_s=1.0)
    output.say("something else", at_s=1.0)
    output.say("noise", at_s=1.0, level=logging.ERROR)
    assert len(output.lines()) == BURST + 2


def test_a_clock_that_is_set_back_does_not_silence_for_ever() -> None:
    output = Output(TextLines())
    for _ in range(100):
        output.say("noise", at_s=1_000_000.0)
    output.say("noise", at_s=5.0)
    assert output.lines()[-1].endswith("noise (90 more like this were not logged)")


def test_the_worst_is_always_said() -> None:
    output = Output(TextLines())
    for _ in range(100):
        output.say("the data folder failed", level=logging.CRITICAL)
    assert len(output.lines()) == 100


def test_the_machine_learns_how_many_were_not_said() -> None:
    output = Output(JsonLines())
    for at_s in (*[0.0] * 30, WINDOW_S):
        output.say("noise", at_s=at_s)
    assert json.loads(output.lines()[-1])["not_logged"] == 20


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("WARNING", ["lifecycle info", "warning", "error"]),
        ("warn", ["lifecycle info", "warning", "error"]),
        ("INFO", ["info", "lifecycle info", "warning", "error"]),
        ("ERROR", ["error"]),
        ("DEBUG", ["debug", "info", "lifecycle info", "warning", "error"]),
    ],
)
def test_what_is_said_at_each_level(level: str, said: list[str], restored_logging: None) -> None:
    stream = io.StringIO()
    configure(format="text", level=level, stream=stream)
    logger = logging.getLogger("headpond.some.part")
    logger.debug("debug")
    logger.info("info")
    logging.getLogger(LIFECYCLE).info("lifecycle info")
    logger.warning("warning")
    logger.error("error")
    assert [line.partition(": ")[2] for line in stream.getvalue().splitlines()] == said


def test_configuring_twice_says_everything_once(restored_logging: None) -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(format="text", level="INFO", stream=first)
    configure(format="json", level="INFO", stream=second)
    logging.getLogger("headpond.x").info("hello")
    assert first.getvalue() == ""
    assert json.loads(second.getvalue())["message"] == "hello"


def test_a_stream_that_is_gone_is_no_reason_to_fail(restored_logging: None) -> None:
    stream = io.StringIO()
    configure(format="text", level="INFO", stream=stream)
    stream.close()
    logging.getLogger("headpond.x").error("nobody hears this")
