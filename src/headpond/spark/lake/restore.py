"""A lake back into topics: chunk after chunk, each one transaction, in the order of offsets within each partition.

A chunk takes a range of the lake's offsets of each partition. Spark reads the files that have such records, puts each
partition's rows together in order, and the sink writes them, all or nothing, and not twice (``restore_state.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headpond.runtime.environment import absolute_path
from headpond.spark.kafka.link import Link
from headpond.spark.lake import layout, restore_target
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.restore_state import (
    RestoreFile,
    RestoreState,
    new_restore,
    starts_of,
    with_chunk_done,
    with_next_chunk,
)
from headpond.spark.lake.restore_target import Target
from headpond.spark.lake.rows import between, frame_of
from headpond.spark.lake.state import TopicState
from headpond.spark.lake.store import Lake
from headpond.spark.lake.tasks import parallelism
from headpond.spark.reading.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    bootstrap: str
    api_timeout_ms: int
    topics: Mapping[str, str]
    """Name in the lake -> name of the topic that is written to."""
    configs: Mapping[str, str]
    batch_records: int
    compression: str
    may_append: bool = False
    state_folder: str | None = None
    security: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of TLS and SASL."""

    def client_options(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.default.api.timeout.ms": str(self.api_timeout_ms),
            "subscribe": ",".join(self.topics.values()),
            **self.security,
        }


@dataclass(slots=True)
class TopicRestore:
    """One topic of a run: what there is to do, and what was done."""

    lake: TopicState
    target: Target
    file: RestoreFile
    state: RestoreState | None
    """None: a restore that has not begun."""
    state_read: RestoreState | None
    """What the file said, whether it was about this restore or not."""
    is_created: bool = False
    records: int = 0
    """Written by this run."""
    chunks: int = 0

    @property
    def offsets(self) -> int:
        """Still to write, about as many as records."""
        positions = {} if self.state is None else self.state.positions
        return sum(
            reach.next_offset - positions.get(partition, reach.first_offset)
            for partition, reach in self.lake.partitions.items()
        )


class Restore:
    """``session`` is asked for when there is something to write; ``advance`` is told how many offsets are done."""

    def __init__(
        self,
        session: Callable[[], SparkSession],
        settings: RestoreSettings,
        lake: Lake,
        advance: Callable[[int], None],
    ) -> None:
        self._session = session
        self._settings = settings
        self._lake = lake
        self._advance = advance

    def plan(self) -> list[TopicRestore]:
        """Asks the brokers, checks everything, changes nothing."""
        lake_id = self._lake.mark().id
        with Link(parse_options(self._settings.client_options(), is_stream=False).client) as link:
            cluster_id = link.run(lambda client: client.metadata([])).cluster_id or ""
            return [
                self._plan_topic(link, topic, name, lake_id, cluster_id)
                for topic, name in self._settings.topics.items()
            ]

    def _plan_topic(self, link: Link, topic: str, name: str, lake_id: str, cluster_id: str) -> TopicRestore:
        known = self._lake.state(topic)
        if known is None:
            raise LakeError(f"{self._lake.path} does not hold topic {topic}: {self._held()}")
        target = link.run(lambda client: restore_target.look_at(client, name))
        file = RestoreFile(*self._folders(), cluster_id, topic, name, self._lake.fs)
        state = found = file.read()
        if state is not None and (state.lake_id, state.target_id) != (lake_id, target.topic_id):
            state = None  # of another lake at this place, or the topic is a new one by this name
        restore_target.check(target, known, is_resumed=state is not None, may_append=self._settings.may_append)
        return TopicRestore(known, target, file, state, found)

    def _folders(self) -> tuple[str, str]:
        """For states, and for what is staged: in the lake, or in the folder that stands in for it. The second is for
        tasks, too, so that it must not be the sink's usual one, which is among the driver's temporary files."""
        if (named := self._settings.state_folder) is not None:
            return named, f"{absolute_path(named)}/staging"
        return self._lake.at(layout.RESTORES), f"{self._lake.absolute_path}/{layout.RESTORE_STAGING}"

    def _held(self) -> str:
        held = self._lake.topics()
        return f"it holds {', '.join(held)}" if held else "it holds none"

    def run(self, one: TopicRestore) -> None:
        """Writes one topic to its end."""
        with one.file.held():
            # Chunks are known by their numbers alone: whoever counts on from an old state takes the chunks of another
            # run for its own, or begins a second time.
            if one.file.read() != one.state_read:
                raise LakeError("another process has gone on with this restore meanwhile: start it again")
            state = one.state or self._begun(one)
            while (ready := with_next_chunk(state, one.lake, self._settings.batch_records)) is not None:
                one.file.write(ready)
                records = self._write(ready, one)
                state = with_chunk_done(ready, records)
                one.file.write(state)
                assert ready.chunk_ends is not None
                starts = starts_of(ready, one.lake)
                self._advance(sum(end - starts[partition] for partition, end in ready.chunk_ends.items()))
                one.records += records
                one.chunks += 1
            one.state = state

    def _begun(self, one: TopicRestore) -> RestoreState:
        target = one.target
        if not target.exists:
            partitions = restore_target.partitions_needed(one.lake)
            with Link(parse_options(self._settings.client_options(), is_stream=False).client) as link:
                target = link.once(
                    lambda client: restore_target.create(client, target.name, partitions, self._settings.configs)
                )
            one.target, one.is_created = target, True
        state = new_restore(self._lake.mark().id, one.lake.topic, target.name, target.topic_id)
        one.file.write(state)
        return state

    def _write(self, ready: RestoreState, one: TopicRestore) -> int:
        assert ready.chunk_ends is not None
        spans = {
            partition: (start, ready.chunk_ends[partition])
            for partition, start in starts_of(ready, one.lake).items()
            if ready.chunk_ends.get(partition, start) > start
        }
        session = self._session()
        frame = frame_of(session, self._lake.absolute_path, one.lake, spans)
        if frame is None:  # offsets without records: of transactions, or compacted away
            return 0
        tasks = min(parallelism(session), len(spans))
        rows = (
            frame.where(between(spans))
            .repartition(tasks, "partition")
            .sortWithinPartitions("partition", "offset")
            .select("partition", "key", "value", "headers", "timestamp")
        )
        from pyspark.sql import Observation
        from pyspark.sql.functions import count, lit

        seen = Observation()
        writer = rows.observe(seen, count(lit(1)).alias("records")).write.format("headpond").mode("append")
        for name, value in self._sink_options(ready, one.file.staging).items():
            writer = writer.option(name, value)
        writer.save()
        return int(seen.get["records"])

    def _sink_options(self, ready: RestoreState, staging: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self._settings.bootstrap,
            "kafka.compression.type": self._settings.compression,
            "topic": ready.target,
            "txnAppId": ready.app_id,
            "txnVersion": str(ready.chunk),
            "stagingDir": staging,
            "earlyTimestamps": "keep",  # some producer had them
            **self._settings.security,
        }
