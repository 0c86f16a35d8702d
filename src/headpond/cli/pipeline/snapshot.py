"""``headpond pipeline snapshot``: the latest value of each key as a table, as of now or of a moment."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import describe, names_of, offset_number, partition_number
from headpond.cli.consume.command import timestamp_option
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write a table (a folder of Parquet files) with a row for each key of a topic: its latest value. A key whose\n"
        "latest value is null (a tombstone) has no row. Records without a key are left out and counted.",
        "headpond pipeline snapshot users --to users-now",
        "headpond pipeline snapshot users --to users-then --until 2026-01-31T12:00:00Z --strings",
        "headpond pipeline snapshot users --from lake --to users-then --until-offset 0:1042 --until-offset 1:998",
        notes="Latest is by offset within a partition. A key that is in several partitions (their number was changed)\n"
        "has the record with the latest timestamp of those.",
    )
    names_of("topics", parser.add_argument("topic", metavar="TOPIC", help="the topic"))
    parser.add_argument("--to", metavar="TABLE", required=True, help="the folder of the table")
    parser.add_argument("--from", dest="lake", metavar="LAKE", help="take the topic from a lake, not from the broker")
    until = parser.add_argument_group("the moment").add_mutually_exclusive_group()
    until.add_argument(
        "--until",
        type=timestamp_option,
        metavar="TIME",
        help="records up to this time: milliseconds since 1970, or ISO 8601 (UTC if no zone)",
    )
    until.add_argument(
        "--until-offset",
        type=until_offset,
        action="append",
        metavar="[PARTITION:]N",
        help="records before this offset, of each partition or of the one; repeat it",
    )
    parser.add_argument("--null-keys", choices=("skip", "fail"), default="skip", help="what a null key means (skip)")
    parser.add_argument("--strings", action="store_true", help="key and value as text, not as binary")
    parser.add_argument("--overwrite", action="store_true", help="replace the table if there is one")
    add_pipeline_options(parser, dry_run="show what it would read, and write nothing")
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
