"""``headpond pipeline audit``: topic health checks, and whether two places hold the same records."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, names_of
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Read topics completely, batch by batch, and report: missing offsets and why, records that a producer has\n"
        "written twice, timestamps out of order, frequent keys, sizes, records per partition. With --against or\n"
        "--against-lake also whether the other side holds the same records. The exit code is 1 if offsets are missing\n"
        "without a reason, records are there twice, or the two sides differ.",
        "headpond pipeline audit orders --report audit.html",
        "headpond pipeline audit orders --against-lake lake --json",
        "headpond pipeline audit orders --against other:9092 --by order",
    )
    names_of("topics", parser.add_argument("topics", metavar="TOPIC", nargs="+", help="the topics"))
    group = parser.add_argument_group("the other side")
    other = group.add_mutually_exclusive_group()
    other.add_argument(
        "--against", metavar="HOST:PORT[,...]", help="compare with another cluster (or with this one, with --as)"
    )
    other.add_argument("--against-lake", metavar="LAKE", help="compare with a lake made by archive")
    group.add_argument(
        "--against-command-config",
        metavar="FILE",
        help="like --command-config, for the other cluster (default PLAINTEXT)",
    )
    parser.add_argument(
        "--as", dest="other_name", metavar="NAME", help="the topic's name on the other side, if it differs"
    )
    parser.add_argument(
        "--by",
        choices=("offset", "order"),
        help="how records are matched: offset (default for a lake), or order, the position in the partition (default "
        "with --against: a copy has other offsets)",
    )
    parser.add_argument("--report", metavar="FILE", help="write the report to this file, a self-contained web page")
    parser.add_argument(
        "--top", type=count, default=10, metavar="N", help="number of most frequent keys to show (default 10)"
    )
    add_pipeline_options(parser, dry_run="show what would be read, and read nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.pipeline.audit_run import audit

    has_other = options.against is not None or options.against_lake is not None
    if not has_other and (options.other_name is not None or options.by is not None):
        raise WrongUsage("--as and --by are for a comparison: give --against or --against-lake, too")
    if options.against is None and options.against_command_config is not None:
        raise WrongUsage("--against-command-config is for another cluster: give --against, too")
    if options.other_name is not None and len(options.topics) != 1:
        raise WrongUsage("--as is the name for one topic")
    return audit(options)
