"""Where the values of the metrics come from: each of the catalogue's families and what it reads.

Nothing here runs between scrapes. A source looks at the broker's own objects; those that walk over all partitions are
generators, run in slices, and bounded: ``headpond.metrics.partitions.max`` partitions have series of their own, oldest
first, so that it is the same ones at every scrape; the others are added up as topic "other", partition "other".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from headpond import __version__
from headpond.broker.coordinators.group_coordinator import GroupCoordinator
from headpond.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headpond.broker.handlers.fetch.fetch import FetchHandler
from headpond.broker.handlers.fetch.sessions import FetchSessions
from headpond.broker.handlers.produce.waiting import Waiting
from headpond.broker.metrics.group_metrics import BREATHE_EVERY, group_sources, transaction_sources
from headpond.broker.net.server import Server
from headpond.broker.replicas.replicas import Replica, Replicas
from headpond.config.broker import BrokerSettings
from headpond.model import invariant
from headpond.ports import Clock, ProcessFacts
from headpond.storage.manager import LogManager
from headpond.telemetry import catalogue, logs
from headpond.telemetry.endpoint import Verdict
from headpond.telemetry.families import Family
from headpond.telemetry.looked_up import LookedUp
from headpond.telemetry.loop_watch import LoopWatch
from headpond.telemetry.metrics import OTHER, Counter, Point, Source
from headpond.telemetry.requests import RequestMeters

if TYPE_CHECKING:
    from headpond.storage.compaction.compactor import Compactor

T = TypeVar("T")
Space = tuple[int, int]
"""(total, free) bytes of the file system with the data folder."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The parts of a broker that the metrics look at."""

    settings: BrokerSettings
    clock: Clock
    started_s: float
    unready: Verdict
    requests: RequestMeters
    server: Server
    produces: Waiting
    fetches: FetchHandler
    sessions: FetchSessions
    replicas: Replicas
    logs: LogManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator


@dataclass(frozen=True, slots=True)
class Facts:
    """What is found out only because there are metrics."""

    process: LookedUp[ProcessFacts]
    space: LookedUp[Space]
    loop: LoopWatch


def sources(observed: Observed, facts: Facts, scrape_failures: Counter) -> Iterator[tuple[Family, Source]]:
    """Every family of the catalogue, in its order, with its source."""
    found: dict[Family, Source] = {
        **_of_requests(observed),
        **_of_logs(observed),
        **group_sources(observed.groups, observed.replicas, series_max=_series_max(observed)),
        **transaction_sources(observed.transactions, observed.clock),
        **_of_the_disk(observed, facts),
        **_of_the_process(observed, facts),
        catalogue.SCRAPE_FAILURES: scrape_failures.points,
    }
    invariant(found.keys() == set(catalogue.ALL), "the catalogue and the sources differ")
    for family in catalogue.ALL:
        yield family, found[family]


def _series_max(observed: Observed) -> int:
    metrics = observed.settings.metrics
    return metrics.partitions_max if metrics is not None else 0


def _of_requests(observed: Observed) -> dict[Family, Source]:
    requests, server = observed.requests, observed.server

    def parked() -> Iterator[Point]:
        yield ("Fetch",), observed.fetches.parked_count
        yield ("Produce",), observed.produces.count

    return {
        catalogue.REQUESTS: requests.totals,
        catalogue.RESPONSE_ERRORS: requests.errors.points,
        catalogue.REQUEST_DURATION: requests.durations,
        catalogue.REQUEST_PARKED: requests.parked_durations,
        catalogue.PARKED: parked,
        catalogue.RECEIVED: _one(lambda: server.received_bytes),
        catalogue.SENT: _one(lambda: server.sent_bytes),
        catalogue.CONNECTIONS: _one(lambda: server.connection_count),
        catalogue.CONNECTIONS_OPENED: _one(lambda: server.opened_count),
        catalogue.CONNECTIONS_REFUSED: _by_reason(server.refused_counts),
        catalogue.CONNECTIONS_DROPPED: _by_reason(server.dropped_counts),
        catalogue.REQUEST_MEMORY: _one(lambda: server.frame_memory.in_use_bytes),
        catalogue.RESPONSE_MEMORY: _one(lambda: server.response_memory.held_bytes),
        catalogue.FETCH_SESSIONS: _one(lambda: len(observed.sessions)),
    }


def _of_logs(observed: Observed) -> dict[Family, Source]:
    replicas, logs_ = observed.replicas, observed.logs
    series_max = _series_max(observed)

    def each(read: Callable[[Replica], int]) -> Source:
        def points() -> Iterator[Point | None]:
            others = 0
            everything = list(replicas)
            for number, replica in enumerate(everything):
                if number < series_max:
                    tp = replica.partition.tp
                    yield (tp.topic, str(tp.partition)), read(replica)
                else:
                    others += read(replica)
                    if not number % BREATHE_EVERY:
                        yield None
            if len(everything) > series_max:
                yield (OTHER, OTHER), others

        return points

    def led() -> Iterator[Point | None]:
        count = 0
        for number, replica in enumerate(list(replicas), 1):
            count += replica.partition.is_leader
            if not number % BREATHE_EVERY:
                yield None
        yield (), count

    def producer_ids() -> Iterator[Point | None]:
        count = 0
        for number, log in enumerate(logs_.all(), 1):
            count += len(log.producers)
            if not number % BREATHE_EVERY:
                yield None
        yield (), count

    return {
        catalogue.TOPICS: _one(lambda: replicas.topic_count),
        catalogue.PARTITIONS: _one(lambda: len(replicas)),
        catalogue.PARTITIONS_LED: led,
        catalogue.PARTITIONS_UNNAMED: _one(lambda: max(0, len(replicas) - series_max)),
        catalogue.LOG_SIZE: each(lambda replica: replica.partition.log.size_bytes),
        catalogue.LOG_START: each(lambda replica: replica.partition.log.log_start_offset),
        catalogue.LOG_END: each(lambda replica: replica.partition.log.log_end_offset),
        catalogue.HIGH_WATERMARK: each(lambda replica: replica.partition.high_watermark),
        catalogue.LOG_SEGMENTS: each(lambda replica: len(replica.partition.log.segments)),
        catalogue.LOG_APPENDED: each(lambda replica: replica.appended_bytes),
        catalogue.PRODUCER_IDS: producer_ids,
    }


def _of_the_disk(observed: Observed, facts: Facts) -> dict[Family, Source]:
    logs_, meters, space = observed.logs, observed.logs.meters, facts.space

    def compaction(read: Callable[[Compactor], float]) -> Source:
        return _one(lambda: 0 if logs_.compactor is None else read(logs_.compactor))

    def fsync() -> Iterator[Point]:
        yield ("fdatasync",), meters.fdatasync
        yield ("syncfs",), meters.syncfs

    return {
        catalogue.FSYNC: fsync,
        catalogue.COMMIT_LOGS: meters.commit_logs.points,
        catalogue.COMMIT_RECORDS: meters.commit_records.points,
        catalogue.RETENTION_RUNS: _one(lambda: meters.retention_runs),
        catalogue.RETENTION_SEGMENTS: _one(lambda: meters.retention_segments),
        catalogue.RETENTION_BYTES: _one(lambda: meters.retention_bytes),
        catalogue.COMPACTION_RUNS: compaction(lambda one: one.stats.cleanings),
        catalogue.COMPACTION_FAILURES: compaction(lambda one: one.stats.failures),
        catalogue.COMPACTION_STUCK: compaction(lambda one: len(one.uncleanable)),
        catalogue.COMPACTION_TIME: compaction(lambda one: one.stats.seconds),
        catalogue.COMPACTION_REMOVED: compaction(lambda one: one.stats.records_removed),
        catalogue.COMPACTION_READ: compaction(lambda one: one.stats.bytes_read),
        catalogue.COMPACTION_WRITTEN: compaction(lambda one: one.stats.bytes_written),
        catalogue.RECOVERY_SCANNED: _one(lambda: logs_.scanned_bytes),
        catalogue.FOLDER_SIZE: _known(space, lambda found: found[0]),
        catalogue.FOLDER_FREE: _known(space, lambda found: found[1]),
        catalogue.FOLDER_FAILED: _one(lambda: logs_.commits.failed is not None),
    }


def _of_the_process(observed: Observed, facts: Facts) -> dict[Family, Source]:
    process, settings = facts.process, observed.settings

    def build() -> Iterator[Point]:
        python = process.value.python if process.value is not None else ""
        yield (__version__, python, str(settings.broker_id), settings.storage.flush), 1

    return {
        catalogue.READY: _one(lambda: observed.unready() is None),
        catalogue.UPTIME: _one(lambda: observed.clock.monotonic() - observed.started_s),
        catalogue.BUILD: build,
        catalogue.LOOP_LAG: facts.loop.lag.points,
        catalogue.LOG_MESSAGES: logs.MESSAGES.points,
        catalogue.LOG_SUPPRESSED: logs.MESSAGES.suppressed_points,
        catalogue.PROCESS_CPU: _known(process, lambda now: now.cpu_s),
        catalogue.PROCESS_RSS: _known(process, lambda now: now.resident_bytes),
        catalogue.PROCESS_VIRTUAL: _known(process, lambda now: now.virtual_bytes),
        catalogue.PROCESS_FDS: _known(process, lambda now: now.open_files),
        catalogue.PROCESS_FDS_MAX: _known(process, lambda now: now.open_files_max),
        catalogue.PROCESS_START: _known(process, lambda now: now.started_s),
    }


def _one(read: Callable[[], float]) -> Source:
    def points() -> Iterator[Point]:
        yield (), read()

    return points


def _by_reason(counts: dict[str, int]) -> Source:
    def points() -> Iterator[Point]:
        for reason, count in counts.items():
            yield (reason,), count

    return points


def _known(facts: LookedUp[T], read: Callable[[T], float]) -> Source:
    """Nothing is shown until it has been looked up once."""

    def points() -> Iterator[Point]:
        if facts.value is not None:
            yield (), read(facts.value)

    return points
