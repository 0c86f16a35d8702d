"""The ``headpond`` command: a table of commands, each in a folder of its own that is imported when it is called.

A command's ``command.py`` has ``configure(parser)``: it adds the arguments and, as the default of ``run``, the function
that takes the parsed options and returns the exit code. Nothing heavy is imported at the top of such a module:
``--help`` and completion must be quick.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headpond import __version__
from headpond.cli.common.arguments import Parser, describe
from headpond.cli.common.failures import FAILED, INTERRUPTED, OK, USAGE, CommandFailed, in_words
from headpond.cli.common.printable import printable_lines
from headpond.runtime.streams import settle_streams


class Command(NamedTuple):
    name: str
    """Its folder here, too; ``command.py`` in it configures it."""
    summary: str


COMMANDS = (
    Command("serve", "run a broker in the foreground"),
    Command("config", "print the effective settings and where each comes from"),
    Command("topics", "list, create, describe, alter and delete topics"),
    Command("produce", "write records from stdin to a topic"),
    Command("consume", "print the records of a topic"),
    Command("groups", "list, describe, move and delete consumer groups"),
    Command("transactions", "list, describe and abort transactions"),
    Command("log", "print and verify the files of a data folder"),
    Command("pipeline", "run pipelines with Spark; archive, restore, snapshot and audit topics"),
    Command("bench", "run a load test: throughput and latency percentiles"),
    Command("adopt", "turn partition folders written by Kafka into topics"),
    Command("completion", "print a completion script for bash, zsh or fish"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        settle_streams()
        given = list(sys.argv[1:] if arguments is None else arguments)
        options, left = build_parser(given[:1]).parse_known_args(given)
        if left:
            options.parser.error(f"unrecognized arguments: {left[0]}")
        return _run(options.run, options)
    except KeyboardInterrupt:
        return INTERRUPTED


def build_parser(wanted: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands; only those that are ``wanted`` are imported and know their arguments."""
    parser = Parser(prog="headpond")
    describe(
        parser,
        "A Kafka that you pip install: a durable log broker for every Kafka client.",
        "headpond serve",
        "headpond topics create orders --partitions 3",
        "echo hello | headpond produce orders",
        "headpond consume orders --from-beginning",
        notes="headpond COMMAND --help shows a command's options and examples.",
    )
    parser.add_argument("--version", action="version", version=f"headpond {__version__}")
    parser.set_defaults(whole_parser=whole_parser)  # for completion, which is one of the commands itself
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = commands.add_parser(command.name, help=command.summary)
        subparser.set_defaults(parser=subparser)
        if command.name in wanted:
            importlib.import_module(f"headpond.cli.{command.name}.command").configure(subparser)
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """With the arguments of every command."""
    return build_parser([command.name for command in COMMANDS])


def _run(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough, as in `headpond config --all | head`
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.close()  # or the interpreter would try again at its end, and complain
        return OK
    except CommandFailed as error:
        return _fail(str(error), error.code)
    except OSError as error:
        return _fail(in_words(error), FAILED)
    except ValueError as error:
        if not _is_config_error(error):
            raise
        return _fail(str(error), USAGE)


def _is_config_error(error: ValueError) -> bool:
    from headpond.config.definition import ConfigError

    return isinstance(error, ConfigError)


def _fail(sentence: str, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()  # what was asked for comes before the complaint where both go to one place
    print(printable_lines(f"headpond: {sentence}"), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
