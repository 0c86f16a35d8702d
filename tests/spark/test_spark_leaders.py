"""Leaders that move while a task reads its range: the rows are complete, in order, and none comes twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.record import Record
from spark.engine import Engine
from spark.tcp_cluster import TcpCluster
from unit.client.memory_cluster import DROP_BEFORE, Fault, Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 200
SMALL = {"kafka.max.partition.fetch.bytes": "400"}
"""A few records in an answer, so that a range takes dozens of them."""
WHOLE = [str(number) for number in range(RECORDS)]


class Moves:
    """Decides about each fetch, on the brokers' thread. With every fourth of them the leader is another node; the old
    one says so, or ends the connection."""

    def __init__(self, cluster: TcpCluster, log: Log, last_deed: Fault = None) -> None:
        self._cluster, self._log, self._last_deed = cluster, log, last_deed
        self._fetches = 0
        self.moved_at: list[int] = []
        """The offsets that were asked for when it happened."""

    def __call__(self, node: int, request: Any) -> Fault:
        if type(request).__name__ != "FetchRequest" or node != self._log.leader:
            return None
        self._fetches += 1
        if self._fetches % 4:
            return None
        self.moved_at.append(request.topics[0].partitions[0].fetch_offset)
        self._cluster.move_leader(self._log, node % len(self._cluster.nodes) + 1)
        return self._last_deed

    def leaders_read_from(self) -> set[int]:
        return {
            node
            for node, message, _ in self._cluster.requests
            if type(message).__name__ == "FetchRequest" and message.topics[0].partitions[0].fetch_offset > 0
        }


@pytest.mark.parametrize("last_deed", [None, DROP_BEFORE], ids=["says so", "ends the connection"])
def test_a_range_is_read_whole_whichever_leader_has_its_next_batch(last_deed: Fault) -> None:
    with TcpCluster(nodes=3) as cluster:
        (log,) = cluster.add_topic("t")
        fill(log)
        query = Engine(options(cluster))
        assert query.batch() == []  # the first one finds where the query begins
        moves = cluster.faults = Moves(cluster, log, last_deed)
        assert query.batch() == WHOLE
        query.reader.stop()
    assert len(moves.moved_at) > 5 and any(0 < offset < RECORDS for offset in moves.moved_at)
    assert moves.leaders_read_from() == {1, 2, 3}


def test_a_range_is_read_whole_when_its_leader_dies_and_another_one_is_elected() -> None:
    with TcpCluster(nodes=3) as cluster:
        (log,) = cluster.add_topic("t")
        fill(log)
        query = Engine(options(cluster))
        assert query.batch() == []
        dead: list[int] = []

        def die(node: int, request: Any) -> Fault:
            offset = request.topics[0].partitions[0].fetch_offset if type(request).__name__ == "FetchRequest" else 0
            if offset > 60 * (len(dead) + 1) and len(dead) < 2:
                dead.append(node)
                cluster.stop(node)
                cluster.move_leader(log, node + 1)
            return None

        cluster.faults = die
        assert query.batch() == WHOLE
        assert dead == [1, 2]
        query.reader.stop()


def test_a_query_sees_each_row_once_while_leaders_move(spark: SparkSession) -> None:
    """In Spark's own tasks; each partition is split among two of them, and every one sees moves."""
    with TcpCluster(nodes=2) as cluster:
        logs = cluster.add_topic("t", 2)
        for log in logs:
            fill(log)
        moves = [Moves(cluster, log) for log in logs]

        def faults(node: int, request: Any) -> Fault:
            if type(request).__name__ != "FetchRequest":
                return None
            return moves[request.topics[0].partitions[0].partition](node, request)

        cluster.faults = faults
        frame = spark.read.format("headpond").options(**options(cluster), minPartitions="4").load()
        rows = [(row.partition, row.offset, row.value.decode()) for row in frame.collect()]
        assert sorted(rows) == [(part, offset, str(offset)) for part in range(2) for offset in range(RECORDS)]
        assert all(len(one.moved_at) > 5 for one in moves)


def fill(log: Log) -> None:
    """Records whose values are their offsets, two in a batch."""
    for start in range(0, RECORDS, 2):
        log.append(build_batch([Record(index, 1_000, None, b"%d" % (start + index)) for index in range(2)]))


def options(cluster: TcpCluster) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t", "startingOffsets": "earliest"}
    return {**given, **SMALL}
