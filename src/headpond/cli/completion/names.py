"""What only the broker knows, for a completion script: names of topics, groups and transactional ids, one per line.

A TAB must not wait, nor print anything but words: whatever goes wrong, there are just no names, and after
``ANSWER_S_MAX`` it has gone wrong. The broker is the one that the command line so far names, as the command itself
would find it. Names that a shell would take for something else are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, NoReturn

from headpond.cli.common.arguments import add_broker
from headpond.cli.common.failures import CommandFailed

if TYPE_CHECKING:
    from headpond.client import Client

KINDS = ("topics", "groups", "transactions")
ANSWER_S_MAX = 1.0
PLAIN_NAME = re.compile(r"[\w.:@%+,/=][\w.:@%+,/=-]*", re.ASCII)
"""What needs no quotes in any shell, and is no option."""


def print_names(kind: str, line: str) -> None:
    """``line``: the command line that is being completed."""
    from headpond.cli.common.connection import run_with_client
    from headpond.runtime import process

    options = broker_in(line)
    options.timeout = min(options.timeout, ANSWER_S_MAX)

    async def ask(client: Client) -> int:
        names = await _names(client, kind)
        sys.stdout.write("".join(f"{name}\n" for name in sorted(names) if PLAIN_NAME.fullmatch(name)))
        sys.stdout.flush()
        return 0

    # A name server that is silent, or the way out of the loop, may take longer than any request.
    process.end_after(2 * ANSWER_S_MAX)
    try:
        run_with_client(options, ask)
    except (CommandFailed, OSError):
        pass


async def _names(client: Client, kind: str) -> list[str]:
    if kind == "groups":
        from headpond.client.group_admin import Groups

        return [group.group_id for group in await Groups(client).all()]
    if kind == "transactions":
        from headpond.client.transaction_admin import Transactions

        return [one.transactional_id for one in await Transactions(client).all()]
    view = await client.metadata(None)
    return [topic.name for topic in view.topics.values() if not topic.is_internal]


def broker_in(line: str) -> argparse.Namespace:
    """The broker's options in an unfinished command line; those that are not there, or make no sense yet, have their
    defaults."""
    parser = _Lenient(add_help=False, allow_abbrev=False)
    add_broker(parser)
    words = _words(line)
    while True:
        try:
            return parser.parse_known_args(words)[0]
        except ValueError:  # the last option has no value yet
            words = words[:-1]


def _words(line: str) -> list[str]:
    import shlex

    try:
        return shlex.split(line)[1:]
    except ValueError:  # a quote that is still open
        return line.split()[1:]


class _Lenient(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)
