"""Topics into a lake: commit after commit, until what was there at the start is archived.

Exactly once    A topic's state holds how far it is *and* the files that hold the records up to there, and is replaced
                as a whole (``store.py``). There is no second checkpoint that could disagree, and nothing else that
                says how far a topic is: the group that is told is for people to look at.
Incremental     A run goes on where the state ends, and ends at the last stable offsets of its start.
Killed          between two commits: the next run reads the ranges of the lost commit again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headpond.client import Client, ClientError
from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.runtime.random import SystemRandom
from headpond.spark.kafka.link import Link
from headpond.spark.lake import archive_plan as plan
from headpond.spark.lake import layout
from headpond.spark.lake.archive_task import ArchiveAnswer, ArchiveWork, archive_parts
from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.files import FileTarget, Growing
from headpond.spark.lake.state import Hole, Move, TopicState
from headpond.spark.lake.store import Lake
from headpond.spark.lake.tasks import on_executors, parallelism
from headpond.spark.reading.cluster import commit_group, earliest_offsets, latest_offsets
from headpond.spark.reading.offsets import Offsets
from headpond.spark.reading.options import SourceOptions, parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TELL_GROUP_S = 5.0


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    source: Mapping[str, str] = field(repr=False)
    """Options of the source: brokers, topics, secrets."""
    lake: str
    file_size_bytes: int
    batch_records: int
    compression: str
    group_id: str | None = None
    allow_data_loss: bool = False


class Backlog(NamedTuple):
    """What a run finds to do."""

    states: dict[str, TopicState]
    cluster_id: str
    starts: dict[TopicPartition, int]
    ends: Offsets
    holes: dict[str, list[Hole]]

    @property
    def offsets(self) -> int:
        return sum(end - self.starts[tp] for tp, end in self.ends.by_partition.items())

    def topics(self) -> list[str]:
        return sorted({tp.topic for tp in self.ends.by_partition})

    def offsets_of(self, topic: str) -> int:
        return sum(end - self.starts[tp] for tp, end in self.ends.by_partition.items() if tp.topic == topic)


@dataclass(slots=True)
class TopicSummary:
    records: int = 0
    files_new: int = 0
    files_grown: int = 0
    skipped_offsets: int = 0
    """Of transactions and compaction: offsets that are no records."""
    lost_offsets: int = 0
    """Deleted before they were archived."""


@dataclass(slots=True)
class ArchiveSummary:
    topics: dict[str, TopicSummary] = field(default_factory=dict)
    commits: int = 0
    size_bytes: int = 0


def find_backlog(settings: ArchiveSettings, lake: Lake) -> Backlog:
    """Asks the brokers, and raises what speaks against archiving. Writes nothing."""
    options = parse_options(settings.source, is_stream=False)
    with Link(options.client) as link:
        return link.run(lambda client: _ask(client, options)).checked(lake, settings)


class _Asked(NamedTuple):
    cluster_id: str
    begins: dict[TopicPartition, int]
    ends: Offsets

    def checked(self, lake: Lake, settings: ArchiveSettings) -> Backlog:
        topics = sorted({tp.topic for tp in self.ends.by_partition})
        known = {topic: lake.state(topic) for topic in topics} if lake.exists else {}
        states = {topic: state for topic, state in known.items() if state is not None}
        for refused in plan.refusals(states, self.cluster_id, self.begins, self.ends, lake.path):
            if not refused.is_loss:
                raise LakeError(refused.sentence)
            if not settings.allow_data_loss:
                raise LakeError(f"{refused.sentence}: --allow-data-loss goes on without them")
        starts: dict[TopicPartition, int] = {}
        holes: dict[str, list[Hole]] = {}
        for topic in topics:
            begins = {tp: begin for tp, begin in self.begins.items() if tp.topic == topic}
            its_starts, its_holes = plan.starts_of(states, begins)
            starts |= its_starts
            holes[topic] = its_holes
        return Backlog(states, self.cluster_id, starts, self.ends, holes)


async def _ask(client: Client, options: SourceOptions) -> _Asked:
    ends = await latest_offsets(client, options, is_complete=True)
    begins = await earliest_offsets(client, ends.by_partition, options.client)
    cluster_id = (await client.metadata([])).cluster_id or ""
    return _Asked(cluster_id, begins, ends)


class Archive:
    """One run. ``session`` is asked for when there is something to read; ``advance`` is told how many offsets are done,
    commit by commit."""

    def __init__(
        self, session: Callable[[], SparkSession], settings: ArchiveSettings, lake: Lake, advance: Callable[[int], None]
    ) -> None:
        self._session = session
        self._settings = settings
        self._lake = lake
        self._advance = advance
        self._run_id = SystemRandom().random_bytes(6).hex()
        self.summary = ArchiveSummary()

    def run(self, backlog: Backlog) -> ArchiveSummary:
        """To be called by who holds the lake (``Lake.writing``), with the backlog that was found then."""
        states = dict(backlog.states)
        starts = dict(backlog.starts)
        ends = backlog.ends.by_partition
        self.summary.topics = {topic: TopicSummary() for topic in backlog.topics()}
        for topic, holes in backlog.holes.items():
            self.summary.topics[topic].lost_offsets = sum(hole.end_offset - hole.from_offset for hole in holes)
        lake_id = self._lake.create().id
        self._lake.fs.make_dirs(self._lake.at(self._staging))
        to_do = True
        while to_do:
            until = plan.next_ends(starts, ends, self._settings.batch_records)
            works = self._works(backlog, states, starts, until, lake_id)
            answers = on_executors(self._session(), archive_parts, works, ArchiveAnswer) if works else []
            self._commit(backlog, states, starts, until, works, answers)
            self._advance(sum(end - starts[tp] for tp, end in until.items()))
            starts |= until
            to_do = any(end > starts[tp] for tp, end in ends.items())
        return self.summary

    @property
    def _staging(self) -> str:
        return f"{layout.STAGING}/{self._run_id}"

    def _works(
        self,
        backlog: Backlog,
        states: Mapping[str, TopicState],
        starts: Mapping[TopicPartition, int],
        until: Mapping[TopicPartition, int],
        lake_id: str,
    ) -> list[ArchiveWork]:
        settings = self._settings
        works: list[ArchiveWork] = []
        if until == starts:
            return works
        tasks_max = parallelism(self._session())
        for topic in backlog.topics():
            state = states.get(topic)
            for number, parts in enumerate(plan.parts_of(topic, starts, until, tasks_max)):
                new_records = sum(part.end_offset - part.from_offset for part in parts)
                growing = plan.growing_files(state, number, new_records, settings.file_size_bytes)
                target = FileTarget(
                    lake=self._lake.absolute_path,
                    topic=topic,
                    staging=self._staging,
                    version=1 if state is None else state.version + 1,
                    task=number,
                    compression=settings.compression,
                    file_size_bytes=settings.file_size_bytes,
                    growing={
                        date: Growing(path, state.files[path]) for date, path in growing.items() if state is not None
                    },
                )
                topic_id = backlog.ends.topic_ids.get(topic)
                works.append(ArchiveWork(dict(settings.source), lake_id, topic_id, parts, target))
        return works

    def _commit(
        self,
        backlog: Backlog,
        states: dict[str, TopicState],
        starts: Mapping[TopicPartition, int],
        until: Mapping[TopicPartition, int],
        works: list[ArchiveWork],
        answers: list[ArchiveAnswer],
    ) -> None:
        is_commit = False
        for topic in backlog.topics():
            state = states.get(topic)
            its_answers = [answer for work, answer in zip(works, answers, strict=True) if work.target.topic == topic]
            reaches = plan.reaches(state, topic, starts, until)
            if state is not None and reaches == state.partitions:
                continue
            written = [one for answer in its_answers for one in answer.files]
            files = {} if state is None else dict(state.files)
            summary = self.summary.topics[topic]
            for one in written:
                summary.files_grown += one.move.final in files
                summary.files_new += one.move.final not in files
                files[one.move.final] = one.file
            records = sum(answer.records for answer in its_answers)
            offsets = sum(end - starts[tp] for tp, end in until.items() if tp.topic == topic)
            topic_id = backlog.ends.topic_ids.get(topic)
            states[topic] = TopicState(
                topic=topic,
                cluster_id=backlog.cluster_id,
                topic_id="" if topic_id is None else id_text(topic_id),
                version=1 if state is None else state.version + 1,
                records=records + (0 if state is None else state.records),
                partitions=reaches,
                files=files,
                moves=[Move(one.move.staged, one.move.final) for one in written],
                holes=[*([] if state is None else state.holes), *backlog.holes.pop(topic, [])],
            )
            self._lake.commit(states[topic])
            is_commit = True
            summary.records += records
            summary.skipped_offsets += offsets - records
            self.summary.size_bytes += sum(answer.size_bytes for answer in its_answers)
        self.summary.commits += is_commit


def tell_group(settings: ArchiveSettings, backlog: Backlog) -> str:
    """Tell the group how far the archive is, when a run has come to its end; a complaint, or nothing."""
    group_id = settings.group_id
    if group_id is None:
        return ""
    options = parse_options(settings.source, is_stream=False)
    try:
        with Link(options.client) as link:
            complaints = link.once(
                lambda client: commit_group(client, group_id, backlog.ends.by_partition), TELL_GROUP_S
            )
    except (ClientError, TimeoutError) as error:
        complaints = [str(error) or "no answer in time"]
    return complaints[0] if complaints else ""
