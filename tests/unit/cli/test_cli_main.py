"""The command line's grammar: help for everything, one sentence for every mistake, nothing imported for nothing."""

from __future__ import annotations

import argparse
import errno
import inspect
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from headpond.cli import main as main_module
from headpond.cli.common.arguments import (
    command_named,
    count,
    name_and_value,
    partition_count,
    partition_number,
    positive_seconds,
    replica_count,
    size_bytes,
)
from headpond.cli.common.failures import CommandFailed, WrongUsage, counted, in_words
from headpond.cli.consume.command import offset_option, timestamp_option
from headpond.cli.main import COMMANDS, main, whole_parser
from support.broker import headpond_command, headpond_environment


def all_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    def below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        yield parser.prog, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for each in action.choices.values():
                    yield from below(each)

    yield from below(whole_parser())


@pytest.mark.parametrize(("prog", "parser"), [pytest.param(*each, id=each[0]) for each in all_parsers()])
def test_every_command_has_help_with_examples_and_exit_codes(prog: str, parser: argparse.ArgumentParser) -> None:
    text = parser.format_help()
    assert "examples:\n" in text and "exit codes: 0 done" in text
    assert f"  {prog}" in text or f"| {prog}" in text, "an example of the command itself"
    undescribed = [
        action.dest for action in parser._actions if not action.help and action.dest not in ("action", "command")
    ]
    assert undescribed == []


def test_what_a_command_says_it_runs_is_there() -> None:
    said = [parser.get_default("run") for _, parser in all_parsers()]
    names = [run.args[0] for run in said if isinstance(run, partial)]
    assert len(names) > 10
    for name in names:
        assert inspect.iscoroutinefunction(command_named(name)), name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "headpond: COMMAND is missing; headpond --help shows how"),
        (["sreve"], "headpond: unknown command sreve (did you mean serve?)"),
        (["topics", "lst"], "headpond topics: unknown action lst (did you mean list?)"),
        (
            ["produce", "t", "--ack", "1"],
            "headpond produce: unknown option --ack (did you mean --acks?); headpond produce --help",
        ),
        (
            ["topics", "create", "t", "--partitons=3"],
            "headpond topics create: unknown option --partitons=3 (did you",
        ),
        (["topics", "list", "t"], "headpond topics list: t is one argument too many"),
        (["produce", "t", "--acks", "2"], "invalid value 2 for --acks (all, 1, 0)"),
        (["topics", "create"], "headpond topics create: NAME is missing"),
        (["topics", "create", "t", "--partitions", "99999999999"], "99999999999 is more than there can be: 2,147,483"),
        (["topics", "alter", "t", "--partitions", "2147483648"], "2147483648 is more than there can be: 2,147,483,647"),
        (["topics", "create", "t", "--replication-factor", "70000"], "70000 is more than there can be: 32,767"),
        (["bench", "produce", "--partitions", "3g"], "3g is more than there can be: 2,147,483,647"),
        (["consume", "t", "--timestamp", "99999999999999999999"], "99999999999999999999 should be milliseconds since"),
        (
            ["groups", "reset-offsets", "g", "--all-topics", "--to-timestamp", "9223372036854775808"],
            "9223372036854775808 should be milliseconds since",
        ),
        (["topics", "create", "t", "--config", "a=1", "--config", "a=1"], "--config: a is given twice"),
        (["topics", "alter", "t", "--config", "a=1", "--config", "b=1", "--config", "a=2"], "a is given twice"),
        *(
            (command, "the name of a topic can't be empty")
            for command in (
                ["topics", "describe", ""],
                ["topics", "describe", "t", ""],
                ["topics", "create", ""],
                ["topics", "alter", "", "--partitions", "2"],
                ["topics", "delete", "--if-exists", ""],
                ["consume", ""],
                ["produce", ""],
                ["bench", "produce", "--topic", ""],
                ["groups", "reset-offsets", "g", "--to-latest", "--topic", ""],
                ["transactions", "abort", "--topic", "", "--partition", "0", "--start-offset", "0"],
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == ""
    assert says in said.err and len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (CommandFailed("it broke; mend it"), 1, "headpond: it broke; mend it\n"),
        (WrongUsage("say it right"), 2, "headpond: say it right\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 1, "headpond: /x: Permission denied\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_command_s_end_becomes_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], raised: BaseException, code: int, says: str
) -> None:
    class Ends:
        @staticmethod
        def configure(parser: argparse.ArgumentParser) -> None:
            def run(options: argparse.Namespace) -> int:
                raise raised

            parser.set_defaults(run=run)

    class NoStdout:
        """What main closes when its reader is gone; pytest still needs its own."""

        def flush(self) -> None: ...
        def close(self) -> None: ...

    monkeypatch.setattr(main_module.importlib, "import_module", lambda name: Ends)
    monkeypatch.setattr(sys, "stdout", NoStdout())
    assert main(["config"]) == code
    assert capfd.readouterr().err == says


def test_a_bug_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(options: argparse.Namespace) -> int:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        main_module._run(run, argparse.Namespace())


@pytest.mark.parametrize(
    "module", ["argparse", "headpond.cli.main", "headpond.cli.common.arguments", "headpond.cli.topics.command"]
)
def test_ctrl_c_while_modules_are_loaded_is_quiet(module: str) -> None:
    program = (
        "import os, runpy, signal, sys\n"
        "class Impatient:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Impatient)\n"
        "sys.modules.pop('argparse', None)\n"
        "sys.argv = ['headpond', 'topics', '--help']\n"
        "runpy.run_module('headpond', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], env=headpond_environment(), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_help_imports_neither_asyncio_nor_rich_nor_the_client() -> None:
    for command in COMMANDS:
        code = (
            "import sys; from headpond.cli.main import build_parser; "
            f"build_parser([{command.name!r}]); "
            "print(sorted({'asyncio', 'rich', 'msgspec', 'headpond.client', 'headpond.broker.app'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], env=headpond_environment(), capture_output=True, text=True)
        assert done.stdout.strip() == "[]", (command.name, done.stdout, done.stderr)


def test_the_version_is_told() -> None:
    done = subprocess.run(headpond_command("--version"), env=headpond_environment(), capture_output=True, text=True)
    assert done.stdout.startswith("headpond ") and done.returncode == 0


def test_numbers_may_have_units() -> None:
    assert [count(text) for text in ("1", "1_000", "10k", "5M")] == [1, 1_000, 10_000, 5_000_000]
    assert [size_bytes(text) for text in ("100", "16k", "1M")] == [100, 16_384, 1_048_576]
    assert (partition_count("2147483647"), replica_count("32767")) == (2_147_483_647, 32_767)
    assert (partition_number("0"), positive_seconds("0.5"), name_and_value("a=b=c")) == (0, 0.5, ("a", "b=c"))
    for parse, text in (
        (count, "0"),
        (count, "-1"),
        (count, "1.5"),
        (count, ""),
        (size_bytes, "1kk"),
        (partition_number, "-1"),
        (positive_seconds, "0"),
        (positive_seconds, "nan"),
        (name_and_value, "a"),
        (name_and_value, "=b"),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)


def test_offsets_and_times_are_read_as_people_write_them() -> None:
    assert [offset_option(text) for text in ("0", "-5", "earliest", "latest")] == [0, -5, "earliest", "latest"]
    assert timestamp_option("1700000000000") == 1_700_000_000_000
    assert timestamp_option("2023-11-14T22:13:20Z") == timestamp_option("2023-11-14 22:13:20") == 1_700_000_000_000
    assert timestamp_option(str((1 << 63) - 1)) == (1 << 63) - 1
    for parse, text in (
        (offset_option, "1e3"),
        (offset_option, str(1 << 63)),
        (timestamp_option, "soon"),
        (timestamp_option, str(1 << 63)),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)


@pytest.mark.parametrize("before", ["1900-01-01", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59.999Z"])
def test_a_time_before_1970_is_its_beginning_and_not_one_of_the_numbers_that_mean_something_else(before: str) -> None:
    assert timestamp_option(before) == 0


def test_words_for_counts_and_errors() -> None:
    assert [counted(n, noun) for n, noun in ((1, "batch"), (2, "batch"), (0, "record"), (1_000, "entry"))] == [
        "1 batch",
        "2 batches",
        "0 records",
        "1,000 entries",
    ]
    assert in_words(OSError(errno.ENOENT, "No such file", "/a")) == "/a: No such file"
