"""``headpond transactions``: list, describe and abort. Works with any Kafka from 3.0 on."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import (
    add_actions,
    add_broker,
    add_json,
    describe,
    names_of,
    offset_number,
    partition_number,
    run_with_broker,
    topic_name,
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List, describe and abort transactions.",
        "headpond transactions list",
        "headpond transactions describe billing-1",
        "headpond transactions abort billing-1",
    )
    actions = {
        "list": ("transactional ids and their states", _configure_list),
        "describe": ("show how long a transaction has been open, and its partitions", _configure_describe),
        "abort": ("end a transaction that its producer has left open", _configure_abort),
    }
    add_actions(parser, actions)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List the transactional ids.",
        "headpond transactions list",
        "headpond transactions list --open --json | jq -r '.[].id'",
    )
    parser.add_argument("--open", action="store_true", help="list only ids with an open transaction")
    add_json(parser)
    run_with_broker(parser, "transactions.run.show_list")


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Describe transactions: producer, state, how long they have been open, and their partitions.",
        "headpond transactions describe billing-1",
        "headpond transactions describe --json | jq '.[] | {id, age_ms}'",
    )
    ids = parser.add_argument("ids", metavar="ID", nargs="*", help="the ids (default: those with an open transaction)")
    names_of("transactions", ids)
    add_json(parser)
    run_with_broker(parser, "transactions.run.show_details")


def _configure_abort(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Abort the open transaction of a transactional id. Its producer, if it still runs, is fenced: its next\n"
        "request fails. With --topic, --partition and --start-offset instead of an id, abort a hanging transaction:\n"
        "one that no coordinator knows any more (`kafka-transactions find-hanging` finds them).",
        "headpond transactions abort billing-1",
        "headpond transactions abort --topic orders --partition 3 --start-offset 1042",
    )
    names_of("transactions", parser.add_argument("id", metavar="ID", nargs="?", help="the transactional id"))
    topic = parser.add_argument("--topic", type=topic_name, metavar="TOPIC", help="topic of a hanging transaction")
    names_of("topics", topic)
    parser.add_argument("--partition", type=partition_number, metavar="N", help="partition of a hanging transaction")
    parser.add_argument("--start-offset", type=offset_number, metavar="N", help="its first offset in the partition")
    add_json(parser)
    add_broker(parser)
    parser.set_defaults(run=_abort)


def _abort(options: argparse.Namespace) -> int:
    from headpond.cli.common.connection import run_with_client
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.transactions import run as transactions_run

    hanging = (options.topic, options.partition, options.start_offset)
    if options.id is not None and any(each is not None for each in hanging):
        raise WrongUsage("give a transactional id, or --topic, --partition and --start-offset, not both")
    if options.id is None and any(each is None for each in hanging):
        raise WrongUsage("give a transactional id, or all of --topic, --partition and --start-offset")
    return run_with_client(options, lambda client: transactions_run.abort(client, options))
