"""Where the metrics read: every family has a source, partitions are bounded, a failed folder is unhealthy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headpond.broker.metrics.group_metrics import BREATHE_EVERY
from headpond.broker.metrics.metrics import Facts, sources
from headpond.broker.metrics.port import Observability
from headpond.coordination.groups.meters import GroupMeters
from headpond.runtime.clock import SystemClock
from headpond.storage.meters import StorageMeters
from headpond.telemetry import catalogue
from headpond.telemetry.families import Family
from headpond.telemetry.loop_watch import LoopWatch
from headpond.telemetry.metrics import OTHER, Counter, Point
from headpond.telemetry.requests import RequestMeters


class Partitions(list[Any]):
    topic_count = 1


def replica(index: int) -> Any:
    log = SimpleNamespace(
        size_bytes=100, log_start_offset=1, log_end_offset=index, segments=[1, 2], producers=[], topic="t"
    )
    partition = SimpleNamespace(tp=SimpleNamespace(topic="t", partition=index), log=log, high_watermark=index)
    partition.is_leader = index % 2 == 0
    return SimpleNamespace(partition=partition, appended_bytes=10)


def observed(partitions: int = 0, series_max: int = 10) -> Any:
    replicas = Partitions(replica(index) for index in range(partitions))
    return SimpleNamespace(
        settings=SimpleNamespace(
            metrics=SimpleNamespace(partitions_max=series_max),
            broker_id=1,
            storage=SimpleNamespace(flush="ack"),
        ),
        clock=SystemClock(),
        started_s=0.0,
        unready=lambda: None,
        requests=RequestMeters(),
        server=SimpleNamespace(
            received_bytes=1,
            sent_bytes=2,
            connection_count=3,
            opened_count=4,
            refused_counts={"max_connections": 1},
            dropped_counts={"idle": 1},
            frame_memory=SimpleNamespace(in_use_bytes=5),
            response_memory=SimpleNamespace(held_bytes=6),
        ),
        produces=SimpleNamespace(count=0),
        fetches=SimpleNamespace(parked_count=0),
        sessions=[],
        replicas=replicas,
        logs=SimpleNamespace(
            meters=StorageMeters(),
            compactor=None,
            scanned_bytes=0,
            commits=SimpleNamespace(failed=None),
            all=lambda: [each.partition.log for each in replicas],
        ),
        groups=SimpleNamespace(runtime=SimpleNamespace(machines=list), meters=GroupMeters()),
        transactions=SimpleNamespace(runtime=SimpleNamespace(machines=list)),
    )


def facts() -> Facts:
    unknown: Any = SimpleNamespace(value=None)
    return Facts(process=unknown, space=unknown, loop=LoopWatch(SystemClock()))


def points(of: Any, family: Family) -> list[Point | None]:
    return list(dict(sources(of, facts(), Counter()))[family]())


def test_every_family_of_the_catalogue_can_be_read_from_an_empty_broker() -> None:
    found = dict(sources(observed(), facts(), Counter()))
    assert tuple(found) == catalogue.ALL
    for family, source in found.items():
        for point in source():
            assert point is not None and len(point[0]) == len(family.labels), family.name


def test_partitions_below_the_limit_have_series_of_their_own() -> None:
    assert points(observed(3), catalogue.LOG_END) == [(("t", "0"), 0), (("t", "1"), 1), (("t", "2"), 2)]
    assert points(observed(3), catalogue.PARTITIONS_UNNAMED) == [((), 0)]
    assert points(observed(3), catalogue.PARTITIONS_LED) == [((), 2)]


def test_partitions_beyond_the_limit_are_added_up_with_a_breath_now_and_then() -> None:
    many = observed(partitions=3 * BREATHE_EVERY, series_max=2)
    found = points(many, catalogue.LOG_SIZE)
    shown = [point for point in found if point is not None]
    assert shown == [(("t", "0"), 100), (("t", "1"), 100), ((OTHER, OTHER), 100 * (3 * BREATHE_EVERY - 2))]
    assert found.count(None) == 2
    assert points(many, catalogue.PARTITIONS_UNNAMED) == [((), 3 * BREATHE_EVERY - 2)]


def test_no_partition_has_a_series_when_the_limit_is_0() -> None:
    assert points(observed(2, series_max=0), catalogue.LOG_SIZE)[-1] == ((OTHER, OTHER), 200)


def test_what_has_not_been_looked_up_is_not_shown() -> None:
    assert points(observed(), catalogue.PROCESS_RSS) == []
    assert points(observed(), catalogue.FOLDER_FREE) == []


def test_a_data_folder_that_failed_is_unhealthy_and_says_why() -> None:
    of = observed()
    nothing: Any = None
    observability = Observability(
        of,
        network=nothing,
        tasks=nothing,
        workers=nothing,
        look_at_process=nothing,
        look_at_disk=nothing,
    )
    assert observability._unhealthy() is None
    of.logs.commits.failed = OSError("Input/output error")
    assert observability._unhealthy() == "the data folder failed: Input/output error"
    assert points(of, catalogue.FOLDER_FAILED) == [((), True)]
