"""Options that the actions of ``headpond pipeline`` share."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import add_broker, add_json, name_and_value


def add_pipeline_options(parser: argparse.ArgumentParser, *, dry_run: str) -> None:
    """``dry_run``: what ``--dry-run`` shows."""
    parser.add_argument("--dry-run", action="store_true", help=dry_run)
    add_json(parser)
    add_broker(parser)
    add_spark(parser)


def add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    where = group.add_mutually_exclusive_group()
    where.add_argument("--master", metavar="URL", help="a Spark cluster, e.g. spark://host:7077 (default local[*])")
    where.add_argument("--remote", metavar="URL", help="a Spark Connect server, e.g. sc://host:15002")
    group.add_argument(
        "--spark-config",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a Spark setting, e.g. spark.driver.memory=4g; repeatable",
    )
    group.add_argument("--trace", action="store_true", help="print all that Spark says about a failure")
