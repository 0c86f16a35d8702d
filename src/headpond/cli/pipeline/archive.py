"""``headpond pipeline archive``: topics into a lake of Parquet files, exactly once, and only what is new."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, names_of, size_bytes
from headpond.cli.pipeline.options import add_pipeline_options

COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Copy the records of topics to a lake: a folder of Parquet files, LAKE/topic=NAME/date=YYYY-MM-DD/*.parquet.\n"
        "A run takes what is there when it starts, the next run what has arrived since. Each record is in the lake\n"
        "once, even if runs are killed. No small files pile up: a run merges into the last file of a day.",
        "headpond pipeline archive orders payments --to lake",
        "headpond pipeline archive --pattern 'shop-.*' --to lake --json",
        "headpond pipeline archive orders --to lake --dry-run",
        notes="Every topic in a lake is a table:\n"
        "  duckdb -c \"select count(*) from 'lake/topic=orders/*/*.parquet'\"\n"
        "  python -c \"import pandas; print(pandas.read_parquet('lake/topic=orders'))\"",
    )
    names_of("topics", parser.add_argument("topics", metavar="TOPIC", nargs="*", help="the topics"))
    parser.add_argument("--pattern", metavar="REGEX", help="instead of TOPIC: all topics whose whole name matches")
    parser.add_argument("--to", metavar="LAKE", required=True, help="the lake's folder; created if missing")
    parser.add_argument(
        "--file-size",
        type=size_bytes,
        default=64 << 20,
        metavar="BYTES",
        help="merge into files of up to this size (default 64M)",
    )
    parser.add_argument(
        "--batch-records", type=count, default=2_000_000, metavar="N", help="records per commit, about (default 2M)"
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="compress the files (default zstd)")
    parser.add_argument("--group", metavar="NAME", help="commit the progress to this group (default archive-LAKE)")
    parser.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="continue if records were deleted before they were archived",
    )
    add_pipeline_options(parser, dry_run="show what would be archived, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.archive_run import archive

    if bool(options.topics) == (options.pattern is not None):
        raise WrongUsage("give the topics to archive, or a --pattern for their names")
    return archive(options)
