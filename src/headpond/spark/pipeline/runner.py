"""One run of a pipeline, from the first question to the last batch.

    with Runner(pipeline, bootstrap) as runner:
        runner.survey()                 # broker and folder: seconds before Spark would say the same
        plan = runner.plan(spark)       # every view, checked by Spark; nothing is written
        summary = runner.run(spark, plan, ...)

Order       everything that can be refused is refused before the first write: topics, folder, SQL, columns. Then the
            folder is locked and bound, topics are created, the queries start. A run that is refused leaves nothing.
A crash     at any point is made good by the next run: checkpoints say where each sink goes on, the sinks count each
            batch once, the lock goes with the process.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from headpond.runtime.clock import SystemClock
from headpond.spark.pipeline import preflight
from headpond.spark.pipeline.failures import RunBusy, RunFailed, WrongFolder
from headpond.spark.pipeline.figures import Figures
from headpond.spark.pipeline.folder import Columns, Folder, TableColumns, known_columns
from headpond.spark.pipeline.model import DEAD_LETTERS, Pipeline, Sink
from headpond.spark.pipeline.sinks import Output, Show, check_remote, columns_of, prepare, start
from headpond.spark.pipeline.sources import Sources
from headpond.spark.pipeline.state import check_state
from headpond.spark.pipeline.status import StatusFile
from headpond.spark.pipeline.steps import apply_step
from headpond.spark.pipeline.tables import check_columns, sweep
from headpond.spark.pipeline.targets import Targets, last_written
from headpond.spark.pipeline.words import hide, is_python_late, is_state_changed, reason_of
from headpond.spark.session import java_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

LOOK_S = 0.5
STARTS_MAX = 3
"""How often a query is started, without a batch in between. Spark gives a Python process ten seconds to start, and has
no setting for it: on a busy machine that may not be enough."""
SPARK_SETTINGS = {
    # 200 shuffle partitions are for clusters: here each costs a task and a state store in every batch.
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}
"""Of a session that is made for a pipeline, unless its file says otherwise."""

Watcher = Callable[[list[Figures]], None]


class Plan(NamedTuple):
    outputs: list[Output]
    schemas: dict[str, str]


class Summary(NamedTuple):
    figures: list[Figures]
    seconds: float

    @property
    def dead_letters(self) -> int:
        return sum(one.rows_written for one in self.figures if one.name == DEAD_LETTERS)


class Runner:
    def __init__(self, pipeline: Pipeline, bootstrap: str, *, timeout_s: float = 15.0, is_remote: bool = False) -> None:
        self.pipeline = pipeline
        self.bootstrap = bootstrap
        self.folder = Folder(pipeline.folder)
        self.surveyed = preflight.Survey(0, [], {}, {})
        self._timeout_s = timeout_s
        self._is_remote = is_remote
        self._bound: dict[str, Any] = {}
        self._clock = SystemClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folder.unlock()

    # --- before Spark -------------------------------------------------------------------------------------------------

    def survey(self, *, is_dry: bool = False) -> preflight.Survey:
        """What can be known without Spark: who else runs, whose the checkpoint is, which topics there are."""
        if self._is_remote:
            check_remote(self.pipeline)
        if not is_dry:
            self.folder.check_idle(self.pipeline.name)
        self._bound = self.folder.check(self.pipeline)
        self._check_targets()
        known_starts = self._bound.get("starts")
        self.surveyed = preflight.survey(self.pipeline, self.bootstrap, self._timeout_s, known_starts)
        return self.surveyed

    def _check_targets(self) -> Targets:
        settings = preflight.settings_for(self.pipeline, self.bootstrap, self._timeout_s)
        targets = Targets(self.pipeline, self.folder, self._bound.get("id"), settings)
        targets.check()
        return targets

    # --- views --------------------------------------------------------------------------------------------------------

    def plan(self, spark: SparkSession) -> Plan:
        """Every view and every sink's rows; ``RunFailed`` for what Spark does not take."""
        pipeline = self.pipeline
        try:
            sources = Sources(spark, pipeline, self.bootstrap, self._bound.get("schemas", {}))
            outputs = [self._output(spark, sources, sink) for sink in pipeline.sinks]
            letters = sources.dead_letters(f"{pipeline.name}.{DEAD_LETTERS}", self.surveyed.letters_from)
        except RunFailed as error:
            raise RunFailed(hide(str(error), pipeline.secrets)) from error.__cause__
        for output in outputs:
            self._check_fit(output)
        if letters is not None:
            outputs.append(Output(DEAD_LETTERS, None, letters, f"{pipeline.name}.{DEAD_LETTERS}", {}))
        return Plan(outputs, sources.schemas)

    def _output(self, spark: SparkSession, sources: Sources, sink: Sink) -> Output:
        """Views are made anew for each sink: a query has a group of its own to tell how far it is."""
        group = self.pipeline.group_of(sink)
        views: dict[str, DataFrame] = {}
        for source in self.pipeline.sources:
            views[source.name] = sources.view(source, group)
            views[source.name].createOrReplaceTempView(source.name)
        for step in self.pipeline.steps:
            views[step.name] = apply_step(spark, step, views)
            views[step.name].createOrReplaceTempView(step.name)
        by_lower = {name.lower(): view for name, view in views.items()}
        frame = by_lower[sink.input.lower()]
        if not frame.isStreaming:
            raise RunFailed(
                f"{sink.place}: sink {sink.name}: {sink.input} reads no stream, so that it would never get news"
            )
        rows = prepare(frame, sink)
        return Output(sink.name, sink, rows, group, columns_of(rows if sink.kind == "parquet" else frame, sink))

    def _check_fit(self, output: Output) -> None:
        """``WrongFolder`` where the columns are not those of the table, or the steps not those of the state."""
        from pyspark.errors import PySparkException

        sink = output.sink
        assert sink is not None
        if sink.kind == "parquet":
            check_columns(sink, self._known_columns(sink), output.columns)
        if not self._is_remote:
            try:
                check_state(output.frame, sink.mode, self.folder.checkpoint(sink.name))
            except PySparkException as error:
                if is_state_changed(error):  # whatever else it is, the run tells it
                    raise WrongFolder(str(self._failure(output, error))) from error

    def _known_columns(self, sink: Sink) -> dict[str, str] | None:
        return known_columns(self._bound, sink, written=last_written(sink, self.folder, self._bound.get("id")))

    # --- queries ------------------------------------------------------------------------------------------------------

    def run(self, spark: SparkSession, plan: Plan, *, show: Show, watch: Watcher) -> Summary:
        """To the end of what is there or, with a trigger, until it is interrupted. ``RunFailed`` when a query fails."""
        pipeline = self.pipeline
        held = self._lock()
        self._bound = self.folder.bind(pipeline, self._bound, plan.schemas, self._columns(plan), self.surveyed.starts)
        identity = str(self._bound["id"])
        preflight.create_topics(pipeline, self.bootstrap, self._timeout_s, self.surveyed.new_topics)
        for output in plan.outputs:
            self._sweep(output)
        begun_s = self._clock.monotonic()
        figures = [Figures(output.name, output.group, held.get(output.name, -1)) for output in plan.outputs]
        status = StatusFile(self.folder, pipeline, self.bootstrap, self._clock)
        status.write("running", figures)
        state, reason = "stopped", None
        try:
            while self._run_once(spark, plan, identity, figures, status, show, watch):
                plan = self.plan(spark)  # tables are read anew
            state = "done"
        except Exception as error:
            state, reason = "failed", hide(java_ended(error) or str(error), pipeline.secrets)
            raise
        finally:
            status.write(state, figures, reason)
        return Summary(figures, self._clock.monotonic() - begun_s)

    def _columns(self, plan: Plan) -> Columns:
        found: Columns = {}
        for output in plan.outputs:
            if output.sink is not None and output.sink.kind == "parquet":
                written = last_written(output.sink, self.folder, self._bound.get("id"))
                found[output.name] = TableColumns(self._known_columns(output.sink), output.columns, written)
        return found

    def _sweep(self, output: Output) -> None:
        """What a query that was killed has left under way."""
        self.folder.checkpoint(output.name).sweep()
        if output.sink is not None and output.sink.kind == "parquet" and not output.sink.upsert:
            sweep(output.sink)

    def _lock(self) -> dict[str, int]:
        """The last batch that each target holds. Locked only now, for a lock is a file, and a run that is refused
        leaves none. Another run may have come between: what it has bound would not be what was planned with."""
        self.folder.lock(self.pipeline.name)
        if self.folder.check(self.pipeline) != self._bound:
            raise RunBusy(f"pipeline {self.pipeline.name} was run by another process meanwhile: run it again")
        return self._check_targets().written

    def _run_once(
        self,
        spark: SparkSession,
        plan: Plan,
        identity: str,
        figures: list[Figures],
        status: StatusFile,
        show: Show,
        watch: Watcher,
    ) -> bool:
        """Whether to go on with tables that are read anew."""
        queries: list[StreamingQuery] = []
        late = dict.fromkeys((output.name for output in plan.outputs), 0)
        has_tables = any(not source.is_stream for source in self.pipeline.sources)
        until_s = self._clock.monotonic() + self.pipeline.refresh_s
        try:
            for output in plan.outputs:
                queries.append(self._started(output, identity, show))
            while True:
                active = [query for query in queries if query.isActive]
                for number, output in enumerate(plan.outputs):
                    if self._is_late(queries[number], output, late):
                        self._sweep(output)
                        queries[number] = self._started(output, identity, show)
                        active.append(queries[number])
                    elif figures[number].look(queries[number]):
                        late[output.name] = 0
                watch(figures)
                status.write("running", figures)
                if not active:
                    return False
                if has_tables and self.pipeline.trigger is not None and self._clock.monotonic() >= until_s:
                    return True
                self._wait(active[0])
        finally:
            for query, one in zip(queries, figures, strict=False):  # not all may have been started
                _stop(query, one)

    def _started(self, output: Output, identity: str, show: Show) -> StreamingQuery:
        from pyspark.errors import PySparkException

        try:
            return start(output, self.pipeline, self.bootstrap, self.folder, identity, show)
        except PySparkException as error:
            raise self._failure(output, error) from error

    def _wait(self, query: StreamingQuery) -> None:
        from pyspark.errors import PySparkException

        try:
            query.awaitTermination(LOOK_S)
        except PySparkException:
            pass  # told by _is_late, with the sink that it is about

    def _is_late(self, query: StreamingQuery, output: Output, late: dict[str, int]) -> bool:
        """Whether a query has ended, and only because Python was too slow for Spark: the next start may be in time.
        ``RunFailed`` for what else it ended with, and where that has happened too often without a batch in between."""
        if query.isActive or (failure := query.exception()) is None:
            return False
        late[output.name] += 1
        if not is_python_late(failure) or late[output.name] == STARTS_MAX:
            raise self._failure(output, failure) from failure
        return True

    def _failure(self, output: Output, error: BaseException) -> RunFailed:
        where = (
            f"{output.sink.place}: sink {output.name}" if output.sink else f"the dead letters of {self.pipeline.name}"
        )
        return RunFailed(hide(f"{where}: {reason_of(error)}", self.pipeline.secrets))


def _stop(query: StreamingQuery, figures: Figures) -> None:
    """Whatever it was doing is done again by the next run; what it has done since the last look is counted."""
    try:
        query.stop()
        figures.look(query)
    except Exception:
        pass  # the session is gone, and the query with it
