"""``headpond pipeline validate``: the mistakes of a declaration, with file and line. Needs neither broker nor Spark."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import add_json, describe


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Find the mistakes in a pipeline file without running it, each with its line. Needs neither a broker nor\n"
        "Spark; `headpond pipeline run FILE --dry-run` checks with both.",
        "headpond pipeline validate sessions.toml",
        "headpond pipeline validate pipelines/*.toml",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a pipeline file: .toml, .yaml or .py")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.failures import FAILED, OK, counted
    from headpond.cli.common.output import print_json, print_line
    from headpond.spark.pipeline.load import load_pipeline
    from headpond.spark.pipeline.mistakes import Mistake, WrongDeclaration

    found: list[Mistake] = []
    for file in options.files:
        try:
            pipeline = load_pipeline(file)
        except WrongDeclaration as error:
            found += error.mistakes
            continue
        if not options.json:
            parts = (
                counted(len(pipeline.sources), "source"),
                counted(len(pipeline.steps), "step"),
                counted(len(pipeline.sinks), "sink"),
            )
            print_line(f"{file}: pipeline {pipeline.name} is fine: {', '.join(parts)}")
    if options.json:
        print_json([{"file": one.place.file, "line": one.place.line, "mistake": one.sentence} for one in found])
    else:
        for mistake in found:
            print_line(str(mistake))
    return FAILED if found else OK
