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
    Action("validate", "find the mistakes in a pipeline file, with their lines"),
    Action("status", "show rates, lag, batch time and state of pipelines"),
    Action("archive", "copy topics to a lake of Parquet files, a table each"),
    Action("restore", "write a lake back to topics"),
    Action("snapshot", "write the latest value of each key of a topic to a table"),
    Action("audit", "check the health of a topic, or compare two copies"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Process whole topics with Spark, which runs inside this command unless you name a cluster.",
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
