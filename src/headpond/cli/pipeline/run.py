"""``headpond pipeline run``: a pipeline that a file declares."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import describe
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Run the pipeline that FILE declares (.toml, .yaml or .py): topics in, SQL or Python, topics and tables out.\n"
        "Without a trigger it takes what is there and ends; the next run goes on where this one ended, whatever\n"
        "happened to it. `headpond groups` and `headpond pipeline status` show how far it is.",
        "headpond pipeline run sessions.toml",
        "headpond pipeline run sessions.toml --every '10 seconds'",
        "headpond pipeline run sessions.toml --dry-run",
        notes="Checkpoints are kept in .pipelines/NAME beside FILE, unless FILE says otherwise.",
    )
    parser.add_argument("file", metavar="FILE", help="the declaration")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="take what is there and end, whatever FILE says")
    when.add_argument("--every", metavar="TIME", help="go on, and look for news so often, as '10 seconds'")
    add_pipeline_options(parser, dry_run="check everything, with Spark too, show what it would do, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.pipeline.run_declared import run

    return run(options)
