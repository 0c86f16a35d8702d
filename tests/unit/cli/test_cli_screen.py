"""What the screen shows: plain tables for pipes, rich ones and a bar for terminals, percentiles that are right."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from headpond import cli
from headpond.cli.bench.load import Result
from headpond.cli.common.output import Column, bytes_in_words, note, print_json, print_line, print_table, time_in_words
from headpond.cli.common.progress import PATIENCE_S, Progress
from headpond.cli.main import main
from simulation.harness.clock import ManualClock
from support.broker import headpond_environment

COLUMNS = [Column("topic"), Column("records", True)]
ROWS = [("orders", 1_234_567), ("a [red]name[/red]", None)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_in_a_pipe_is_plain_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "topic                records",
        "orders             1,234,567",
        "a [red]name[/red]",
    ]


def test_a_name_can_neither_break_its_row_nor_speak_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [("a\nb", 1), ("\x1b[31mred\u202e\x9b", 22)], title="of\x07 all")
    assert capsys.readouterr().out.splitlines() == [
        "of\\x07 all",
        "topic                  records",
        "a\\nb                         1",
        "\\x1b[31mred\\u202e\\x9b       22",
    ]


def test_neither_can_a_sentence_a_complaint_or_a_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_line("deleted \x1b[2J\n")
    note("two\nlines of \x1b]0;title\x07")
    said = capsys.readouterr()
    assert said.out == "deleted \\x1b[2J\\n\n" and said.err == "two\nlines of \\x1b]0;title\\x07\n"
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    print_json({"client": "\x9b2J\x7f\x1b é"})
    assert screen.getvalue() == '{\n  "client": "\\u009b2J\\u007f\\u001b é"\n}\n'


def test_a_command_that_fails_shows_escape_sequences_and_does_not_obey_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "verify", "/no\x1b[2J"]) == 1
    with pytest.raises(SystemExit):
        main(["log", "verify", "/", "\x1b[2J"])
    said = capsys.readouterr().err
    assert "\\x1b[2J" in said and "\x1b" not in said


def test_what_commands_print_goes_through_what_escapes_it() -> None:
    """A bare print of anything but the command's own words is how an escape sequence reaches a terminal."""
    bare = [
        f"{file.name}:{call.lineno}"
        for file in sorted(Path(cli.__file__).parent.glob("*.py"))
        if file.name != "output.py"
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
        for what in call.args
        if not isinstance(what, ast.Constant)
        and not (isinstance(what, ast.Call) and ast.unparse(what.func) in ("printable", "printable_lines"))
    ]
    assert not bare


def test_a_drawn_table_escapes_names_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    print_table(COLUMNS, [("a\nb\x1b]0;title\x07", 1)], title="of\x07 all")
    assert "a\\nb\\x1b]0;title\\x07" in screen.getvalue() and "of\\x07 all" in screen.getvalue()


def test_columns_are_aligned_by_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, [("注文", 1), ("cafe\u0301", 2), ("naïve", 3)])
    assert capsys.readouterr().out.splitlines() == [
        "topic  records",
        "注文         1",
        "cafe\u0301         2",
        "naïve        3",
    ]


def test_a_table_on_a_terminal_is_drawn_and_names_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    print_table(COLUMNS, ROWS)
    assert "─" in screen.getvalue() and "1,234,567" in screen.getvalue() and "[red]name[/red]" in screen.getvalue()


def test_a_terminal_that_is_too_narrow_for_a_table_loses_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [Column("name"), Column("leader", True), Column("replicas"), Column("size", True)]
    row = ("orders", 1, "1,2,3", "10.6 KiB")
    for width in (10, 20, 30, 40, 60):
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(columns, [row])
        assert all(str(cell) in screen.getvalue() for cell in (*row, *(column.title for column in columns))), width


def test_a_long_value_is_folded_and_the_other_columns_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "60")
    print_table([Column("setting"), Column("value")], [("compression.type", "x" * 200)])
    assert "compression.type" in screen.getvalue() and screen.getvalue().count("x") == 200
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines())) <= 60


def test_what_is_quick_shows_no_bar_and_imports_nothing() -> None:
    code = (
        "import sys; from headpond.cli.common.progress import Progress\n"
        "sys.stderr.isatty = lambda: True\n"
        "with Progress('x', 10) as bar: bar.advance(10)\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=headpond_environment(), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    ("unit", "total", "shown"),
    [("", 1_000, "500/1000"), ("", None, "500/?"), ("bytes", 1_000, "0.5/1.0 kB"), ("bytes", None, "500/? bytes")],
)
def test_what_takes_long_shows_a_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, unit: str, total: int | None, shown: str
) -> None:
    screen, clock = Terminal(), ManualClock()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("reading", total, unit=unit, clock=clock) as bar:
        bar.advance(10)
        assert screen.getvalue() == ""
        clock.advance(PATIENCE_S + 0.1)
        bar.advance(490, "still reading")
        assert "still reading" in screen.getvalue() and shown in screen.getvalue()


def test_a_bar_of_tasks_moves_as_more_of_them_become_known_and_shows_the_time_that_has_gone_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen, clock = Terminal(), ManualClock()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("auditing", unit="tasks", clock=clock) as bar:
        for done, total, shown in ((0, None, "0/? tasks 0:00:0"), (3, 8, "3/8 tasks 0:00:0"), (8, 12, "8/12 tasks")):
            clock.advance(PATIENCE_S + 0.1)
            bar.stand_at(done, total)
            assert shown in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).replace("  ", " ")


def test_a_pipe_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = io.StringIO(), ManualClock()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress("reading", 10, clock=clock) as bar:
        clock.advance(100)
        bar.advance(10)
    assert screen.getvalue() == ""


def test_sizes_and_times_are_said_in_words() -> None:
    assert [bytes_in_words(n) for n in (0, 1023, 1024, 1536, 1 << 30, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 GiB",
        "5.0 TiB",
    ]
    assert [time_in_words(ms) for ms in (-1, 0, 1_700_000_000_123)] == [
        "-",
        "1970-01-01T00:00:00.000Z",
        "2023-11-14T22:13:20.123Z",
    ]
    assert time_in_words(1 << 62) == str(1 << 62)


def test_percentiles_are_the_nearest_ranks() -> None:
    hundred = Result(100, 5_000_000, 2.0, array("d", (n / 1_000 for n in range(100, 0, -1))))
    assert hundred.latency_ms() == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 100.0, "max": 100.0}
    assert (hundred.records_per_s, hundred.mb_per_s) == (50.0, 2.5)
    assert set(Result(1, 1, 0.0, array("d", [0.007])).latency_ms().values()) == {7.0}
    assert Result(0, 0, 0.0, array("d")).latency_ms() == {}
