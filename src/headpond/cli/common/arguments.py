"""The grammar that the commands share: a parser that answers in one sentence, examples, options with one meaning."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from headpond.cli.common.failures import EXIT_CODES, USAGE, did_you_mean
from headpond.cli.common.printable import printable_lines

BOOTSTRAP_VARIABLE = "HEADPOND_BOOTSTRAP_SERVER"
COMMAND_CONFIG_VARIABLE = "HEADPOND_COMMAND_CONFIG"
BOOTSTRAP_DEFAULT = "127.0.0.1:9092"
TIMEOUT_DEFAULT_S = 15.0
OFFSET_MAX = (1 << 63) - 1
PARTITIONS_MAX = (1 << 31) - 1
REPLICAS_MAX = (1 << 15) - 1
"""The largest numbers that a request has room for; what a broker takes is its own to say."""

_INVALID_CHOICE = re.compile(r"argument (?P<what>.+?): invalid choice: '(?P<given>.*?)' \(choose from (?P<known>.*)\)")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, with the nearest right word; no usage text in front of it."""

    def __init__(self, **options: object) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)  # a script that abbreviates breaks when an option is added
        super().__init__(**options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        if found := _INVALID_CHOICE.fullmatch(message):
            known = re.findall(r"[\w.-]+", found["known"])
            hint = did_you_mean(found["given"], known) or f" ({', '.join(known)})"
            message = f"{_wrong(found['what'], found['given'])}{hint}"
        elif message.startswith("the following arguments are required: "):
            message = f"{message.split(': ', 1)[1]} is missing"
        elif message.startswith("unrecognized arguments: "):
            message = self._left_over(message.split(": ", 1)[1])
        message = message.removeprefix("argument ").replace("allowed with argument ", "allowed together with ")
        print(printable_lines(f"{self.prog}: {message}; {self.prog} --help shows how"), file=sys.stderr)
        raise SystemExit(USAGE)

    def _left_over(self, text: str) -> str:
        if not text.startswith("-"):
            return f"{text} is one argument too many"
        options = [each for action in self._actions for each in action.option_strings]
        return f"unknown option {text}{did_you_mean(text.split('=')[0], options)}"


def _wrong(argument: str, given: str) -> str:
    if argument in ("COMMAND", "ACTION"):
        return f"unknown {argument.lower()} {given}"
    return f"invalid value {given} for {argument}"


def describe(parser: argparse.ArgumentParser, description: str, *examples: str, notes: str = "") -> None:
    """What ``--help`` says around the list of options."""
    parser.description = description
    parts = [notes] if notes else []
    if examples:
        parts.append("examples:\n" + "\n".join(f"  {line}" for line in examples))
    parser.epilog = "\n\n".join([*parts, EXIT_CODES])


def add_actions(
    parser: argparse.ArgumentParser, actions: Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]
) -> None:
    """Sub-commands of a command: name -> (help, what adds its arguments)."""
    subparsers = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (summary, configure) in actions.items():
        subparser = subparsers.add_parser(name, help=summary)
        subparser.set_defaults(parser=subparser)  # who complains about what is left over
        configure(subparser)


def add_broker(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("broker")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help=f"a broker of the cluster, Headpond or Kafka (default {BOOTSTRAP_VARIABLE}, else {BOOTSTRAP_DEFAULT})",
    )
    add_command_config(group)
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_seconds,
        default=TIMEOUT_DEFAULT_S,
        help=f"give up when a broker does not answer in time (default {TIMEOUT_DEFAULT_S:g})",
    )


def add_command_config(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help=f"properties as for Kafka's tools: security.protocol, ssl.*, sasl.* (default {COMMAND_CONFIG_VARIABLE})",
    )


def names_of(kind: str, action: argparse.Action) -> argparse.Action:
    """The argument takes names of that ``kind`` (topics, groups, transactions), which completion asks a broker for."""
    action.names_of = kind  # type: ignore[attr-defined]
    return action


def add_json(parser: argparse._ActionsContainer, what: str = "for scripts: one JSON document on stdout") -> None:
    parser.add_argument("--json", action="store_true", help=what)


def run_with_broker(parser: argparse.ArgumentParser, command: str) -> None:
    """``command``: ``module.function`` of this package, a coroutine that takes the client and the options and returns
    the exit code. It is imported only when it is run: the client costs more than all the parsing."""
    add_broker(parser)
    parser.set_defaults(run=partial(_ask_broker, command))


def _ask_broker(command: str, options: argparse.Namespace) -> int:
    from headpond.cli.common.connection import run_with_client

    work = command_named(command)
    return run_with_client(options, lambda client: work(client, options))


def command_named(command: str) -> Callable[..., Awaitable[int]]:
    module, _, function = command.rpartition(".")
    found: Callable[..., Awaitable[int]] = getattr(import_module(f"headpond.cli.{module}"), function)
    return found


def positive_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError(f"{text} should be a number of seconds above 0")
    return seconds


def count(text: str) -> int:
    """A number above 0; ``10_000``, ``10k``, ``5M`` are fine too."""
    value = _number(text, {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000})
    if value is None or value < 1:
        raise argparse.ArgumentTypeError(f"{text} should be a whole number above 0, such as 1000 or 10k")
    return value


def partition_count(text: str) -> int:
    return _at_most(PARTITIONS_MAX, text)


def replica_count(text: str) -> int:
    return _at_most(REPLICAS_MAX, text)


def _at_most(maximum: int, text: str) -> int:
    value = count(text)
    if value > maximum:
        raise argparse.ArgumentTypeError(f"{text} is more than there can be: {maximum:,}")
    return value


def size_bytes(text: str) -> int:
    """A number of bytes above 0; ``16k`` and ``1M`` are powers of 1,024."""
    value = _number(text, {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30})
    if value is None or value < 1:
        raise argparse.ArgumentTypeError(f"{text} should be a number of bytes above 0, such as 100, 16k or 1M")
    return value


def partition_number(text: str) -> int:
    value = _number(text, {})
    if value is None or value < 0:
        raise argparse.ArgumentTypeError(f"{text} should be a partition's number: 0, 1, 2, ...")
    return value


def offset_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > OFFSET_MAX:
        raise argparse.ArgumentTypeError(f"{text} should be an offset: 0, 1, 2, ...")
    return int(text)


def name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text} should be NAME=VALUE")
    return name.strip(), value


class EachNameOnce(argparse.Action):
    """Gathers what ``name_and_value`` has read. The last of two would win without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        before = getattr(namespace, self.dest)
        if values[0] in dict(before):
            raise argparse.ArgumentError(self, f"{values[0]} is given twice")
        setattr(namespace, self.dest, [*before, values])


def topic_name(text: str) -> str:
    """Which names are fine is the broker's to say; an empty one is a variable that was not set."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a topic can't be empty")
    return text


def _number(text: str, units: Mapping[str, int]) -> int | None:
    digits, unit = (text[:-1], units[text[-1:].lower()]) if text[-1:].lower() in units else (text, 1)
    plain = digits.replace("_", "")
    return int(plain) * unit if plain.isascii() and plain.isdigit() else None
