"""What ``headpond pipeline run`` does: the declaration, the broker, Spark, the queries, the summary."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headpond.cli.common.failures import OK, TERMINATED, CommandFailed, WrongUsage, counted
from headpond.cli.common.output import Column, note, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.cli.pipeline.security import with_command_config
from headpond.cli.pipeline.spark import broker_address, in_one_sentence, session_of
from headpond.runtime.process import noted_stop_signals
from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.mistakes import WrongDeclaration
from headpond.spark.pipeline.model import Pipeline, Sink
from headpond.spark.pipeline.table import seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headpond.spark.pipeline.figures import Figures
    from headpond.spark.pipeline.runner import Plan, Runner, Summary

PY4J_MODULES = ("clientserver", "java_gateway")
"""They write a page to the root logger when their connection to Java ends."""


def run(options: argparse.Namespace) -> int:
    pipeline = _declared(options)
    with in_one_sentence(options):
        return _run(pipeline, _bootstrap(pipeline, options), options)


def _declared(options: argparse.Namespace) -> Pipeline:
    try:
        pipeline = load_pipeline(options.file)
    except WrongDeclaration as error:
        first, *more = map(str, error.mistakes)
        rest = f"; {counted(len(more), 'more mistake')}: headpond pipeline validate {options.file}" if more else ""
        raise CommandFailed(f"{first}{rest}") from None
    if options.every is not None and seconds_of(options.every) is None:
        raise WrongUsage(f"--every {options.every} should be a time such as '10 seconds' or '5 minutes'")
    pipeline = replace(pipeline, trigger=options.every or (None if options.once else pipeline.trigger))
    return with_command_config(pipeline, options)


def _bootstrap(pipeline: Pipeline, options: argparse.Namespace) -> str:
    """The option goes before the file, and the file before the variable and the default."""
    if options.bootstrap_server is None and pipeline.bootstrap is not None:
        return pipeline.bootstrap
    return broker_address(options)


def _run(pipeline: Pipeline, bootstrap: str, options: argparse.Namespace) -> int:
    # Not before: it is pyspark that takes the time, and that may be missing.
    from headpond.spark.pipeline.runner import SPARK_SETTINGS, Runner

    with Runner(pipeline, bootstrap, timeout_s=options.timeout, is_remote=options.remote is not None) as runner:
        runner.survey(is_dry=options.dry_run)
        options.spark_config = [*SPARK_SETTINGS.items(), *pipeline.spark.items(), *options.spark_config]
        with session_of(options, pipeline.name) as spark:
            if not options.trace:
                _be_quiet(spark, options)
            plan = runner.plan(spark)
            if options.dry_run:
                _show_plan(runner, plan, options)
                return OK
            total = runner.surveyed.waiting if pipeline.trigger is None else None
            with Progress(pipeline.name, total, is_wanted=not _has_console(pipeline)) as bar:
                watcher = _Watcher(bar, noted_stop_signals())
                try:
                    summary = runner.run(spark, plan, show=_show_rows, watch=watcher.look)
                except (KeyboardInterrupt, SystemExit):
                    note(
                        f"headpond: pipeline {pipeline.name} stopped: {watcher.told()}; the next run goes on from here"
                    )
                    raise
    _show_summary(pipeline, summary, options)
    return OK


def _be_quiet(spark: SparkSession, options: argparse.Namespace) -> None:
    """A failure is told once, by us; and that a query which is stopped was doing something is no news."""
    import logging

    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(lambda record: record.module not in PY4J_MODULES)  # it has no logger of its own there
    if options.remote is None and (options.master or "local").startswith("local"):
        spark.sparkContext.setLogLevel("OFF")


class _Watcher:
    """Between two looks nothing is interrupted: a question to Spark that breaks off leaves it in pieces."""

    def __init__(self, bar: Progress, stop_signal: Callable[[], str | None]) -> None:
        self._bar = bar
        self._stop_signal = stop_signal
        self._read = 0
        self._latest: list[Figures] = []

    def look(self, figures: list[Figures]) -> None:
        self._latest = figures
        first = figures[0]
        lag = "" if first.lag is None else f", lag {first.lag:,}"
        self._bar.advance(first.rows_read - self._read, f"{first.processed_rows_per_s:,.0f} rows/s{lag}")
        self._read = first.rows_read
        if (come := self._stop_signal()) is not None:
            raise KeyboardInterrupt if come == "SIGINT" else SystemExit(TERMINATED)

    def told(self) -> str:
        return "; ".join(f"{one.name} {one.rows_read:,} rows in, {one.rows_written:,} out" for one in self._latest)


def _has_console(pipeline: Pipeline) -> bool:
    return any(sink.kind == "console" for sink in pipeline.sinks)


def _show_rows(sink: Sink, frame: DataFrame, batch_id: int) -> None:
    """The console sink. All of a batch is computed, also what is not shown: its state must be whole."""
    frame = frame.persist()
    count = frame.count()
    rows = frame.limit(sink.rows_max).collect()
    frame.unpersist()
    if not rows:
        return
    columns = [Column(name, kind in ("int", "bigint", "double")) for name, kind in frame.dtypes]
    shown = [tuple("null" if cell is None else cell for cell in row) for row in rows]
    print_table(columns, shown, title=f"{sink.name}, batch {batch_id}")
    if count > len(rows):
        print_line(f"and {counted(count - len(rows), 'more row')}")


def _show_plan(runner: Runner, plan: Plan, options: argparse.Namespace) -> None:
    pipeline = runner.pipeline
    sinks: list[dict[str, Any]] = [
        {
            "sink": output.name,
            "kind": output.sink.kind if output.sink else "topic",
            "target": output.sink.target if output.sink else pipeline.bad_records.topic,
            "group": output.group,
            "columns": output.columns,
            "goes_on": runner.folder.checkpoint(output.name).planned >= 0,
        }
        for output in plan.outputs
    ]
    if options.json:
        print_json(
            {
                "pipeline": pipeline.name,
                "trigger": pipeline.trigger or "once",
                "folder": pipeline.folder,
                "waiting": runner.surveyed.waiting,
                "new_topics": [topic.name for topic in runner.surveyed.new_topics],
                "sinks": sinks,
            }
        )
        return
    how = "once" if pipeline.trigger is None else f"every {pipeline.trigger}"
    waiting = counted(runner.surveyed.waiting, "record")
    print_line(f"pipeline {pipeline.name} would run {how}; {waiting} would be read first")
    rows: list[tuple[Any, ...]] = [
        (
            *(one["sink"], one["kind"], one["target"]),
            "goes on" if one["goes_on"] else "begins",
            ", ".join(f"{name} {kind}" for name, kind in one["columns"].items()),
        )
        for one in sinks
    ]
    print_table([Column("sink"), Column("kind"), Column("target"), Column("checkpoint"), Column("columns")], rows)
    for topic in runner.surveyed.new_topics:
        print_line(f"topic {topic.name} would be created")


def _show_summary(pipeline: Pipeline, summary: Summary, options: argparse.Namespace) -> None:
    if options.json:
        print_json(
            {
                "pipeline": pipeline.name,
                "seconds": round(summary.seconds, 3),
                "dead_letters": summary.dead_letters,
                "sinks": [one.document() for one in summary.figures],
            }
        )
        return
    rows = [(one.name, one.batches, one.rows_read, one.rows_written) for one in summary.figures]
    columns = [Column("sink"), Column("batches", True), Column("rows in", True), Column("rows out", True)]
    print_table(columns, rows, title=f"pipeline {pipeline.name}: done in {summary.seconds:.1f} s")
    if summary.dead_letters:
        unread = counted(summary.dead_letters, "record")
        print_line(f"{unread} could not be read: see topic {pipeline.bad_records.topic}")
