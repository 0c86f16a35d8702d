"""``headpond pipeline run``: a pipeline that a file declares."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import describe
from headpond.cli.pipeline.options import add_pipeline_options


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Run the pipeline that FILE declares (.toml, .yaml or .py): topics in, SQL or Python, topics and tables out.\n"
        "Without a trigger it processes what is there and ends; the next run continues where this one ended, even if\n"
        "it was killed. `headpond groups` and `headpond pipeline status` show the progress.",
        "headpond pipeline run sessions.toml",
        "headpond pipeline run sessions.toml --every '10 seconds'",
        "headpond pipeline run sessions.toml --dry-run",
        notes="Checkpoints are kept in .pipelines/NAME beside FILE, unless FILE says otherwise.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline file")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="process what is there and end, whatever FILE says")
    when.add_argument(
        "--every", metavar="TIME", help="keep running; look for new records this often, e.g. '10 seconds'"
    )
    add_pipeline_options(parser, dry_run="check everything, with Spark too; show what would be done, and write nothing")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.pipeline.run_declared import run

    return run(options)
