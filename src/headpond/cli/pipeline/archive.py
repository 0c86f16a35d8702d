"""``headpond pipeline archive``: topics into a lake of Parquet files, exactly once, and only what is new."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, names_of, size_bytes
from headpond.cli.pipeline.options import add_pipeline_options

COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Put the records of topics into a lake: a folder of Parquet files, LAKE/topic=NAME/date=YYYY-MM-DD/*.parquet.\n"
        "It takes what is there when it starts, and the next run takes what came since. Each record is in the lake\n"
        "once, whatever was killed when. Small files are not left behind: a run grows the last file of a day.",
        "headpond pipeline archive orders payments --to lake",
        "headpond pipeline archive --pattern 'shop-.*' --to lake --json",
        "headpond pipeline archive orders --to lake --dry-run",
        notes="Every topic in a lake is a table:\n"
        "  duckdb -c \"select count(*) from 'lake/topic=orders/*/*.parquet'\"\n"
        "  python -c \"import pandas; print(pandas.read_parquet('lake/topic=orders'))\"",
    )
    names_of("topics", parser.add_argument("topics", metavar="TOPIC", nargs="*", help="the topics"))
    parser.add_argument("--pattern", metavar="REGEX", help="all topics whose whole name it matches, instead")
    parser.add_argument("--to", metavar="LAKE", required=True, help="the folder; it is made if there is none")
    parser.add_argument(
        "--file-size", type=size_bytes, default=64 << 20, metavar="BYTES", help="a file that is smaller grows (64M)"
    )
    parser.add_argument(
        "--batch-records", type=count, default=2_000_000, metavar="N", help="about so many between two commits (2M)"
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="of the files (zstd)")
    parser.add_argument("--group", metavar="NAME", help="tell this group how far it is (archive-LAKE)")
    parser.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="go on where records were deleted before they were archived",
    )
    add_pipeline_options(parser, dry_run="show what it would archive, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.archive_run import archive

    if bool(options.topics) == (options.pattern is not None):
        raise WrongUsage("give the topics to archive, or a --pattern for their names")
    return archive(options)
