"""``headpond pipeline status``: how pipelines are, from the files that they leave, and their lag from the broker."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import TIMEOUT_DEFAULT_S, add_command_config, add_json, describe, positive_seconds


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the input rate, lag, batch time and state of each sink of a pipeline.",
        "headpond pipeline status",
        "headpond pipeline status sessions.toml --json",
        notes="Without FILE: all pipelines in the folder .pipelines here. The lag comes from the broker; if that does\n"
        "not answer, it is the lag after the last batch.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="a pipeline file, or a pipeline's folder")
    add_json(parser)
    add_command_config(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=positive_seconds,
        default=TIMEOUT_DEFAULT_S,
        help=f"give up when a broker does not answer in time (default {TIMEOUT_DEFAULT_S:g})",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.pipeline.status_show import show

    return show(options)
