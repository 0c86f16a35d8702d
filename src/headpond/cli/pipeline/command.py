"""``headpond pipeline``: topics in bulk, through Spark. A table of actions, each in a file of its own.

An action's module has ``configure(parser)``, like a command's. It imports nothing heavy: Spark and pyarrow come when
the action runs, so that ``--help`` and completion stay quick, and work without the extra ``spark``.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple

from headpond.cli.common.arguments import add_actions, describe


class Action(NamedTuple):
    name: str
    """Its module here, too."""
    summary: str


ACTIONS = (
    Action("run", "run the pipeline that a file declares"),
    Action("validate", "find the mistakes of a declaration, with file and line"),
    Action("status", "how pipelines are: rates, lag, batch time, state"),
    Action("archive", "topics into a lake of Parquet files, where each is a table"),
    Action("restore", "a lake back into topics"),
    Action("snapshot", "the latest value of each key of a topic as a table"),
    Action("audit", "prove that a topic is well, or that two places hold the same records"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Topics in bulk, through Spark, which runs inside of the command unless you name a cluster.",
        "headpond pipeline archive orders --to lake",
        "headpond pipeline audit orders --against-lake lake --report audit.html",
        notes="needs pip install 'headpond[spark]'",
    )
    add_actions(
        parser,
        {
            action.name: (action.summary, import_module(f"headpond.cli.pipeline.{action.name}").configure)
            for action in ACTIONS
        },
    )
