"""``headpond groups``: list, describe, reset-offsets and delete. Works with any Kafka from 3.0 on."""

from __future__ import annotations

import argparse
import re

from headpond.cli.common.arguments import (
    OFFSET_MAX,
    add_actions,
    add_json,
    describe,
    names_of,
    offset_number,
    run_with_broker,
    topic_name,
)
from headpond.cli.consume.command import timestamp_option


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List, describe, move and delete consumer groups.",
        "headpond groups list",
        "headpond groups describe billing",
        "headpond groups reset-offsets billing --topic orders --to-earliest --execute",
    )
    actions = {
        "list": ("names, types and states of all groups", _configure_list),
        "describe": ("show the lag and the members of a group", _configure_describe),
        "reset-offsets": (
            "move the offsets of a group without members; a preview unless --execute is given",
            _configure_reset,
        ),
        "delete": ("delete groups without members, and their offsets", _configure_delete),
    }
    add_actions(parser, actions)


def _configure_list(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List the groups.",
        "headpond groups list",
        "headpond groups list --state stable",
        "headpond groups list --json | jq -r '.[] | select(.state == \"Empty\") | .group'",
    )
    parser.add_argument("--state", metavar="STATE", help="list only groups in this state: Stable, Empty, ...")
    parser.add_argument("--type", metavar="TYPE", help="list only groups of this type: classic, consumer")
    add_json(parser)
    run_with_broker(parser, "groups.show.show_list")


def _configure_describe(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Describe groups: the committed offset, end offset and lag of each partition, and the members with their\n"
        "partitions.",
        "headpond groups describe billing",
        "headpond groups describe --json | jq '.[] | {group, lag}'",
    )
    names_of("groups", parser.add_argument("names", metavar="NAME", nargs="*", help="the groups (default all)"))
    add_json(parser)
    run_with_broker(parser, "groups.show.show_details")


def _configure_reset(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Move the committed offsets of a group. Without --execute it only shows what it would do. A group with\n"
        "members is refused: they would not notice, and would overwrite the offsets.",
        "headpond groups reset-offsets billing --all-topics --to-earliest",
        "headpond groups reset-offsets billing --topic orders --to-timestamp 2026-01-31T12:00:00Z --execute",
        "headpond groups reset-offsets billing --topic orders:0,3-5 --shift-by -100 --execute",
        notes="An offset out of range becomes the nearest one in range. A group that does not exist is created.",
    )
    names_of("groups", parser.add_argument("name", metavar="NAME", help="the group"))
    what = parser.add_argument_group("which partitions").add_mutually_exclusive_group(required=True)
    topic = what.add_argument(
        "--topic",
        type=topic_option,
        action="append",
        metavar="TOPIC[:PARTITIONS]",
        help="partitions of this topic (e.g. 0,3-5; default all); repeatable",
    )
    names_of("topics", topic)
    what.add_argument(
        "--all-topics", action="store_true", help="all partitions that the group has committed offsets for"
    )
    where = parser.add_argument_group("where to").add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="to the oldest record")
    where.add_argument("--to-latest", action="store_true", help="to the end: only new records will be read")
    where.add_argument(
        "--to-timestamp",
        type=timestamp_option,
        metavar="TIME",
        help="to the first record at or after this time: milliseconds since 1970, or ISO 8601 (default UTC)",
    )
    where.add_argument("--to-offset", type=offset_number, metavar="N", help="to this offset")
    where.add_argument("--shift-by", type=shift_number, metavar="N", help="by N offsets forward, or back with -N")
    parser.add_argument("--execute", action="store_true", help="apply the change instead of only showing it")
    add_json(parser)
    run_with_broker(parser, "groups.reset.reset")


def _configure_delete(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Delete groups with their offsets. If one of them has members or does not exist, none is deleted.",
        "headpond groups delete billing",
        "headpond groups delete --if-exists billing audit",
    )
    names_of("groups", parser.add_argument("names", metavar="NAME", nargs="+", help="the groups"))
    parser.add_argument("--if-exists", action="store_true", help="succeed if a group does not exist")
    add_json(parser)
    run_with_broker(parser, "groups.delete.delete")


def topic_option(text: str) -> tuple[str, list[int] | None]:
    """``orders`` or ``orders:0,3-5``: the topic, and the partitions if they are named."""
    name, colon, listed = text.partition(":")
    topic_name(name)
    if not colon:
        return name, None
    partitions: set[int] = set()
    for part in listed.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last or last - first > 100_000:
            raise argparse.ArgumentTypeError(f"{text} should be TOPIC or TOPIC:0,3-5")
        partitions.update(range(first, last + 1))
    return name, sorted(partitions)


def shift_number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or abs(int(text)) > OFFSET_MAX:
        raise argparse.ArgumentTypeError(f"{text} should be a number of offsets, as 100 or -100")
    return int(text)
