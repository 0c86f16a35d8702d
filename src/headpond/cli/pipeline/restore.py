"""``headpond pipeline restore``: a lake back into topics, exactly once."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, name_and_value
from headpond.cli.pipeline.options import add_pipeline_options
from headpond.cli.produce.command import COMPRESSIONS


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write the records of a lake to topics: each to its partition, in order, with its key, value, headers and\n"
        "timestamp. Offsets are new. Missing topics are created with as many partitions as they had. If it is killed,\n"
        "the same command continues where it stopped, and each record is written once.",
        "headpond pipeline restore --from lake",
        "headpond pipeline restore orders --from lake --as orders-of-last-year",
        "headpond pipeline restore orders --from lake --dry-run",
        notes="Created topics keep all records (retention.ms=-1), because these may be older than any retention;\n"
        "--config retention.ms=... sets another one.",
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="the topics (default: all in the lake)")
    parser.add_argument("--from", dest="lake", metavar="LAKE", required=True, help="the folder made by archive")
    parser.add_argument("--as", dest="target", metavar="NAME", help="write the topic under this name (one topic only)")
    parser.add_argument("--append", action="store_true", help="allow topics that already have records")
    parser.add_argument(
        "--config",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting for created topics; repeatable",
    )
    parser.add_argument(
        "--batch-records",
        type=count,
        default=1_000_000,
        metavar="N",
        help="records per transaction, about (default 1M)",
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        help="folder for progress and staged data (default: in the lake; needed if the lake is read-only)",
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="compress batches (default zstd)")
    add_pipeline_options(parser, dry_run="show what would be written, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.restore_run import restore

    if options.target is not None and len(options.topics) != 1:
        raise WrongUsage("--as is the name for one topic: name the one that it is for")
    return restore(options)
