"""``headpond pipeline restore``: a lake back into topics, exactly once."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, name_and_value
from headpond.cli.pipeline.options import add_pipeline_options
from headpond.cli.produce.command import COMPRESSIONS


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write the records of a lake to topics: each to its partition, in its order, with its key, value, headers and\n"
        "timestamp. Offsets are new. Topics that are missing are created with as many partitions as they had. It may\n"
        "be killed: the same command goes on where it was, and each record is written once.",
        "headpond pipeline restore --from lake",
        "headpond pipeline restore orders --from lake --as orders-of-last-year",
        "headpond pipeline restore orders --from lake --dry-run",
        notes="A topic that is created keeps its records (retention.ms=-1), for they may be older than any retention:\n"
        "say --config retention.ms=... for another one.",
    )
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="the topics (all that the lake holds)")
    parser.add_argument("--from", dest="lake", metavar="LAKE", required=True, help="the folder that archive has made")
    parser.add_argument("--as", dest="target", metavar="NAME", help="another name for the topic, if it is one")
    parser.add_argument("--append", action="store_true", help="fine if a topic has records already")
    parser.add_argument(
        "--config",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of topics that are created; repeat it",
    )
    parser.add_argument(
        "--batch-records", type=count, default=1_000_000, metavar="N", help="about so many in a transaction (1M)"
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        help="where it notes how far it is, and stages (in the lake: for one that is read-only)",
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="zstd", help="of batches (zstd)")
    add_pipeline_options(parser, dry_run="show what it would write, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.restore_run import restore

    if options.target is not None and len(options.topics) != 1:
        raise WrongUsage("--as is the name for one topic: name the one that it is for")
    return restore(options)
