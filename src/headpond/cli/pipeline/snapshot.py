"""``headpond pipeline snapshot``: the latest value of each key as a table, as of now or of a moment."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import describe, names_of, offset_number, partition_number
from headpond.cli.consume.command import timestamp_option
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write a table (a folder of Parquet files) with the latest value of each key of a topic. A key whose latest\n"
        "value is null (a tombstone) has no row. Records without a key are skipped and counted.",
        "headpond pipeline snapshot users --to users-now",
        "headpond pipeline snapshot users --to users-then --until 2026-01-31T12:00:00Z --strings",
        "headpond pipeline snapshot users --from lake --to users-then --until-offset 0:1042 --until-offset 1:998",
        notes="Latest means the highest offset in the partition. For a key in several partitions (their number was\n"
        "changed) it is the record with the latest timestamp of these.",
    )
    names_of("topics", parser.add_argument("topic", metavar="TOPIC", help="the topic"))
    parser.add_argument("--to", metavar="TABLE", required=True, help="the table's folder")
    parser.add_argument("--from", dest="lake", metavar="LAKE", help="read the topic from a lake instead of the broker")
    until = parser.add_argument_group("the moment").add_mutually_exclusive_group()
    until.add_argument(
        "--until",
        type=timestamp_option,
        metavar="TIME",
        help="only records up to this time: milliseconds since 1970, or ISO 8601 (default UTC)",
    )
    until.add_argument(
        "--until-offset",
        type=until_offset,
        action="append",
        metavar="[PARTITION:]N",
        help="only records before this offset, in all partitions or in the given one; repeatable",
    )
    parser.add_argument(
        "--null-keys", choices=("skip", "fail"), default="skip", help="skip records without a key (default), or fail"
    )
    parser.add_argument("--strings", action="store_true", help="write key and value as text instead of binary")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing table")
    add_pipeline_options(parser, dry_run="show what would be read, and write nothing")
    parser.set_defaults(run=_run)


def until_offset(text: str) -> tuple[int | None, int]:
    """(partition or None, the offset that is not taken any more)."""
    partition, colon, offset = text.rpartition(":")
    return (partition_number(partition) if colon else None), offset_number(offset)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.snapshot_run import snapshot

    given = options.until_offset or []
    if any(partition is None for partition, _ in given) and len(given) > 1:
        raise WrongUsage("--until-offset N is for all partitions: give it once, or PARTITION:N for each of them")
    return snapshot(options)
