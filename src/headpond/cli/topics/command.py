"""``headpond topics``: list, create, describe, alter and delete. Works with any Kafka."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import (
    EachNameOnce,
    add_actions,
    add_json,
    describe,
    name_and_value,
    names_of,
    partition_count,
    replica_count,
    run_with_broker,
    topic_name,
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List, create, describe, alter and delete topics.",
        "headpond topics list",
        "headpond topics create orders --partitions 3 --config retention.ms=86400000",
        "headpond topics describe orders",
    )
    actions = {
        "list": ("names, partitions and replicas of all topics", _configure_list),
        "create": ("create a topic", _configure_create),
        "describe": (
            "partitions with leader, offsets and size; settings that are not the default",
            _configure_describe,
        ),
        "alter": ("change a topic's settings, or give it more partitions", _configure_alter),
        "delete": ("delete topics and everything in them", _configure_delete),
    }
    add_actions(parser, actions)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List the topics.",
        "headpond topics list",
        "headpond topics list --internal --json | jq -r '.[].name'",
    )
    parser.add_argument("--internal", action="store_true", help="include internal topics")
    add_json(parser)
    run_with_broker(parser, "topics.show.show_list")


def _configure_create(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Create a topic.",
        "headpond topics create orders",
        "headpond topics create users --partitions 6 --config cleanup.policy=compact",
    )
    parser.add_argument("name", type=topic_name, metavar="NAME", help="the topic")
    parser.add_argument(
        "--partitions", type=partition_count, metavar="N", help="number of partitions (default: the broker's)"
    )
    parser.add_argument(
        "--replication-factor", type=replica_count, metavar="N", help="replicas per partition (default: the broker's)"
    )
    _add_settings(parser)
    parser.add_argument("--if-not-exists", action="store_true", help="succeed if the topic already exists")
    add_json(parser)
    run_with_broker(parser, "topics.change.create")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        type=name_and_value,
        action=EachNameOnce,
        default=[],
        metavar="NAME=VALUE",
        help="set a topic setting; repeatable",
    )


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Describe topics: partitions with leader, in-sync replicas, offsets and size, and the settings that are\n"
        "not the default.",
        "headpond topics describe orders",
        "headpond topics describe --json | jq '.[] | {name, records: ([.partitions[] | .end_offset] | add)}'",
    )
    names = parser.add_argument(
        "names", type=topic_name, metavar="NAME", nargs="*", help="the topics (default: all but internal ones)"
    )
    names_of("topics", names)
    add_json(parser)
    run_with_broker(parser, "topics.show.show_details")


def _configure_alter(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Change a topic's settings, or give it more partitions. Everything is checked before anything is changed.",
        "headpond topics alter orders --config retention.ms=3600000",
        "headpond topics alter orders --delete-config retention.ms --partitions 12",
    )
    names_of("topics", parser.add_argument("name", type=topic_name, metavar="NAME", help="the topic"))
    _add_settings(parser)
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="NAME",
        help="reset a setting to its default; repeatable",
    )
    parser.add_argument(
        "--partitions", type=partition_count, metavar="N", help="new number of partitions; can only grow"
    )
    add_json(parser)
    run_with_broker(parser, "topics.change.alter")


def _configure_delete(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Delete topics and everything in them. If one of them does not exist, none is deleted.",
        "headpond topics delete orders",
        "headpond topics delete --if-exists orders users",
    )
    names_of("topics", parser.add_argument("names", type=topic_name, metavar="NAME", nargs="+", help="the topics"))
    parser.add_argument("--if-exists", action="store_true", help="succeed if a topic does not exist")
    add_json(parser)
    run_with_broker(parser, "topics.change.delete")
