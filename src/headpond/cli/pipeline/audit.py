"""``headpond pipeline audit``: is a topic well, and do two places hold the same records?"""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import count, describe, names_of
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Read topics from end to end, batch by batch, and report: offsets that are missing and why, records that a\n"
        "producer has written twice, timestamps out of order, keys that stand out, sizes, records per partition.\n"
        "With --against or --against-lake also whether the other side holds the same records. It exits with 1 when\n"
        "offsets are missing without a reason, records are there twice, or the two sides differ.",
        "headpond pipeline audit orders --report audit.html",
        "headpond pipeline audit orders --against-lake lake --json",
        "headpond pipeline audit orders --against other:9092 --by order",
    )
    names_of("topics", parser.add_argument("topics", metavar="TOPIC", nargs="+", help="the topics"))
    group = parser.add_argument_group("the other side")
    other = group.add_mutually_exclusive_group()
    other.add_argument("--against", metavar="HOST:PORT[,...]", help="another cluster (or this one, with --as)")
    other.add_argument("--against-lake", metavar="LAKE", help="a lake that archive has made")
    group.add_argument(
        "--against-command-config",
        metavar="FILE",
        help="what --command-config is for this cluster, for the other one (without: PLAINTEXT)",
    )
    parser.add_argument("--as", dest="other_name", metavar="NAME", help="the topic's name there, if it is one")
    parser.add_argument(
        "--by",
        choices=("offset", "order"),
        help="what makes two records the same place: their offset (a lake; default), or how many of the partition come "
        "before them (a copy; default with --against)",
    )
    parser.add_argument("--report", metavar="FILE", help="write the report, a web page of its own, to this file")
    parser.add_argument("--top", type=count, default=10, metavar="N", help="the most frequent keys to show (10)")
    add_pipeline_options(parser, dry_run="show what it would read, and read nothing")
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
