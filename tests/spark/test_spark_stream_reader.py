"""The stream reader, asked as Spark asks it, without a JVM: offsets, batches, losses, and what the group is told."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.admin import Admin
from headpond.client.group_admin import Groups
from headpond.model import TopicPartition
from headpond.testing import Broker, Record
from spark.reads import options_of
from support.internal_client import run_with_client

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headpond.spark.kafka.errors import DataLost, WrongCheckpoint
from headpond.spark.reading import cluster
from headpond.spark.reading.cluster import FoundPartitions
from spark.engine import Engine, offsets_of

if TYPE_CHECKING:
    from headpond.spark.reading.offsets import Document


@pytest.fixture
def started() -> Iterator[list[Engine]]:
    """Engines of a test, stopped at its end."""
    engines: list[Engine] = []
    yield engines
    for engine in engines:
        engine.reader.stop()


@pytest.fixture
def engine(spark_broker: Broker, topic: str, started: list[Engine]) -> Any:
    def start(log: list[Document] | None = None, **more: str) -> Engine:
        given = options_of(spark_broker, None if {"subscribePattern", "assign"} & set(more) else topic, **more)
        started.append(Engine(given, log))
        return started[-1]

    return start


def change_topics(broker: Broker, action: str, *arguments: Any) -> None:
    async def change(client: Client) -> None:
        await getattr(Admin(client), action)(*arguments)

    run_with_client(broker.bootstrap_servers, change)


# --- the start --------------------------------------------------------------------------------------------------------


def test_the_first_offset_asks_nobody(engine: Any) -> None:
    reader = engine(**{"kafka.bootstrap.servers": "127.0.0.1:1"}).reader
    assert reader.initialOffset() == reader.initialOffset() == {"#start": {}}


def test_the_first_batch_is_empty_and_writes_down_where_the_query_begins(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [Record("old", partition=0)])
    query = engine()
    assert query.batch() == []
    assert offsets_of(query.log[0]) == {topic: {"0": 1, "1": 0}}
    spark_broker.produce(topic, [Record("new", partition=0)])
    assert query.batch() == ["new"]


def test_a_first_batch_that_was_logged_but_not_done_loses_nothing_after_a_restart(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, ["old"])
    before = engine()
    before.batch()
    spark_broker.produce(topic, ["between"])
    after = engine(before.log)
    assert after.values(after.reader.initialOffset(), before.log[0]) == []
    assert after.to_end() == ["between"]


def test_from_the_earliest_everything_is_read_once(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    query = engine(startingOffsets="earliest")
    assert query.to_end() == ["a", "b", "c"]
    assert query.batch() is None


def test_one_batch_only_reads_from_the_start_to_the_end(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b"])
    query = engine(startingOffsets="earliest")
    assert query.batch(ReadAllAvailable()) == ["a", "b"]
    again = engine(query.log)
    assert again.batch() is None
    spark_broker.produce(topic, ["c"])
    assert again.to_end() == ["c"]


def test_one_batch_only_from_the_latest_reads_nothing_but_what_comes(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    query = engine()
    assert query.batch(ReadAllAvailable()) == []
    spark_broker.produce(topic, ["c"])
    assert query.batch(ReadAllAvailable()) == ["c"]


# --- rates ------------------------------------------------------------------------------------------------------------


def test_a_batch_takes_no_more_than_its_most(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, [f"{number}" for number in range(10)])
    query = engine(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(4)
    assert [query.batch() for _ in range(5)] == [[], ["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"], None]


def test_a_batch_waits_for_its_least_after_the_first(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["0"])
    query = engine(startingOffsets="earliest", minOffsetsPerTrigger="3")
    assert query.batch() == [] and query.batch() == ["0"]
    spark_broker.produce(topic, ["1", "2"])
    assert query.batch() is None
    spark_broker.produce(topic, ["3"])
    assert query.batch() == ["1", "2", "3"]


def test_a_batch_comes_when_the_delay_is_over(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["0"])
    query = engine(startingOffsets="earliest", minOffsetsPerTrigger="1000", maxTriggerDelay="0ms")
    assert query.batch() == [] and query.batch() == ["0"]
    spark_broker.produce(topic, ["1"])
    assert query.to_end() == ["1"]


def test_available_now_ends_where_the_topic_ended_when_it_began(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["0", "1", "2"])
    query = engine(startingOffsets="earliest", maxOffsetsPerTrigger="2", minOffsetsPerTrigger="2")
    query.reader.prepareForTriggerAvailableNow()
    spark_broker.produce(topic, ["late"])
    assert [query.batch() for _ in range(4)] == [[], ["0", "1"], ["2"], None]


def test_available_now_leaves_partitions_that_came_later_to_the_next_query(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, ["old"])
    query = engine(startingOffsets="earliest")
    query.reader.prepareForTriggerAvailableNow()
    change_topics(spark_broker, "create_partitions", topic, 2)
    spark_broker.produce(topic, [Record("new", partition=1)])
    assert query.to_end() == ["old"]
    following = engine(query.log)
    following.reader.prepareForTriggerAvailableNow()
    assert following.to_end() == ["new"]


# --- what comes and goes ----------------------------------------------------------------------------------------------


def test_new_partitions_are_read_from_their_first_record(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    query = engine()
    query.to_end()
    change_topics(spark_broker, "create_partitions", topic, 2)
    spark_broker.produce(topic, [Record("in the new one", partition=1)])
    assert query.batch() == []
    assert query.batch() == ["in the new one"]


def test_new_topics_of_a_pattern_are_read_from_their_first_record_even_when_there_was_none(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    query = engine(subscribePattern=f"{topic}-.*")
    assert query.batch() == [] and query.batch() is None
    spark_broker.produce(f"{topic}-x", ["first"])
    assert query.to_end() == ["first"]


def test_a_topic_that_was_created_again_is_noticed_though_it_is_longer_now(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    query = engine(startingOffsets="earliest")
    query.to_end()
    change_topics(spark_broker, "delete_topics", [topic])
    spark_broker.produce(topic, ["x", "y", "z"])
    restarted = engine(list(query.log))
    with pytest.raises(DataLost, match=f"topic {topic} was deleted and created again"):
        restarted.batch()
    assert engine(list(query.log), failOnDataLoss="false").to_end() == ["x", "y", "z"]


def test_a_topic_that_was_created_again_between_plan_and_read_is_noticed(
    engine: Any, spark_broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    for is_strict in (True, False):
        query = engine(startingOffsets="earliest", failOnDataLoss=str(is_strict).lower())
        query.batch()
        start = query.start
        end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
        change_topics(spark_broker, "delete_topics", [topic])
        spark_broker.produce(topic, ["x", "y", "z"])
        if is_strict:
            with pytest.raises(DataLost, match="was deleted and created again"):
                query.values(start, end)
        else:
            with caplog.at_level(logging.WARNING, "headpond.spark"):
                assert query.values(start, end) == []
            assert "was deleted and created again" in caplog.text


def test_a_topic_that_is_gone_fails_the_query_or_is_left_out(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(f"{topic}-a", ["a"])
    spark_broker.produce(f"{topic}-b", ["b"])
    query = engine(subscribePattern=f"{topic}-.*", startingOffsets="earliest")
    assert sorted(query.to_end()) == ["a", "b"]
    change_topics(spark_broker, "delete_topics", [f"{topic}-b"])
    with pytest.raises(DataLost, match=f"{topic}-b-0 is gone"):
        query.batch()
    spark_broker.produce(f"{topic}-a", ["more"])
    tolerant = engine(query.log, subscribePattern=f"{topic}-.*", failOnDataLoss="false")
    assert tolerant.to_end() == ["more"]
    assert list(offsets_of(query.log[-1])) == [f"{topic}-a"]


def test_records_that_were_deleted_before_they_were_read_fail_the_batch_or_are_left_out(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, [f"{number}" for number in range(6)])
    query = engine(startingOffsets="earliest")
    query.batch()
    change_topics(spark_broker, "delete_records", {TopicPartition(topic, 0): 4})
    with pytest.raises(DataLost, match="offset 0 is not in the log, which begins at 4"):
        query.batch()
    del query.log[-1]
    assert engine(query.log, failOnDataLoss="false").batch() == ["4", "5"]


def test_a_range_that_is_gone_altogether_is_left_out(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, [f"{number}" for number in range(6)])
    query = engine(startingOffsets="earliest", maxOffsetsPerTrigger="2", failOnDataLoss="false")
    query.batch()
    change_topics(spark_broker, "delete_records", {TopicPartition(topic, 0): 5})
    assert query.to_end() == ["5"]


def test_a_range_that_the_log_does_not_reach_is_never_taken_for_read(
    engine: Any, spark_broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    start, beyond = {topic: {"0": 1}}, {topic: {"0": 5}}
    patience = {"kafkaConsumer.pollTimeoutMs": "200"}
    with pytest.raises(DataLost, match=f"{topic}-0: nothing came at offset 2 for 0.2 s, and 5 is the end"):
        engine(**patience).values(start, beyond)
    with caplog.at_level(logging.WARNING, "headpond.spark"):
        assert engine(failOnDataLoss="false", **patience).values(start, beyond) == ["b"]
    assert "nothing came at offset 2" in caplog.text


def test_a_read_that_ends_early_is_an_error_whatever_the_reason(
    engine: Any, spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: Any) -> list[Any]:
        return []

    spark_broker.produce(topic, ["a", "b"])
    monkeypatch.setattr("headpond.client.consumer.Reader.take", nothing)
    with pytest.raises(ClientError, match="reading ended at offset 0, before 2"):
        engine(failOnDataLoss="false").values({topic: {"0": 0}}, {topic: {"0": 2}})


def test_a_task_goes_on_where_it_was_when_its_broker_was_killed(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headpond.spark.reading.range_reader.BUFFER_BYTES_MAX", 1)
    sent = [f"{number:04}" + "x" * 1_000 for number in range(300)]
    with Broker() as broker:
        for number in range(0, len(sent), 20):  # many batches, each larger than an answer may be
            broker.produce(topic, sent[number : number + 20])
        small = {"kafka.max.partition.fetch.bytes": "1000", "kafka.fetch.max.bytes": "1000"}
        query = Engine(options_of(broker, topic, startingOffsets="earliest", **small))
        (partition,) = query.reader.partitions({topic: {"0": 0}}, {topic: {"0": len(sent)}})
        found: list[str] = []
        for count, rows in enumerate(query.reader.read(partition)):
            found += [value.decode() for value in rows.column("value").to_pylist()]
            if count in (1, 4):
                broker.restart(kill=True)
    assert found == sent


def test_a_task_that_is_given_up_leaves_no_thread_behind(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b"])
    query = engine()
    (partition,) = query.reader.partitions({topic: {"0": 0}}, {topic: {"0": 2}})
    before = threading.active_count()
    rows = query.reader.read(partition)
    next(rows)
    assert threading.active_count() == before + 1
    rows.close()
    assert threading.active_count() == before


def test_a_checkpoint_of_sparks_own_connector_is_gone_on_with(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    log = [json.loads(f'{{"{topic}":{{"0":2}}}}')]
    assert engine(log).to_end() == ["c"]


def test_a_first_batch_that_the_connector_did_not_finish_is_refused(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    query = engine(startingOffsets="earliest")
    with pytest.raises(WrongCheckpoint, match="planned by another source, Spark's own connector perhaps, and never"):
        query.values(query.reader.initialOffset(), {topic: {"0": 3}})


def test_a_later_batch_that_the_connector_did_not_finish_is_read_with_its_new_partitions(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [Record(f"{number}", partition=number % 2) for number in range(6)])
    assert sorted(engine().values({topic: {"0": 2}}, {topic: {"0": 3, "1": 2}})) == ["1", "3", "4"]


def test_a_new_partition_that_the_connector_did_not_finish_and_that_has_lost_records_fails_the_query(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [Record(f"{number}", partition=1) for number in range(4)])
    change_topics(spark_broker, "delete_records", {TopicPartition(topic, 1): 2})
    start, end = {topic: {"0": 0}}, {topic: {"0": 0, "1": 4}}
    with pytest.raises(DataLost, match=f"the new {topic}-1 begins at offset 2 instead of 0"):
        engine().values(start, end)
    assert engine(failOnDataLoss="false").values(start, end) == ["2", "3"]


@pytest.fixture
def without_topic_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """As brokers older than Kafka 2.8 answer."""
    found = cluster._found
    monkeypatch.setattr(cluster, "_found", lambda topics: FoundPartitions(found(topics).partitions, {}))


@pytest.mark.usefixtures("without_topic_ids")
def test_where_topics_have_no_ids_a_first_batch_that_was_not_done_loses_nothing(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, ["old"])
    before = engine()
    assert before.batch() == [] and before.batch() is None
    assert before.log == [{topic: {"0": 1}, "#begin": {}}]
    spark_broker.produce(topic, ["between"])
    after = engine(before.log)
    assert after.values(after.reader.initialOffset(), before.log[0]) == []
    assert after.to_end() == ["between"]
    assert after.log[-1] == {topic: {"0": 2}}


@pytest.mark.usefixtures("without_topic_ids")
def test_where_topics_have_no_ids_new_partitions_are_read_once(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    query = engine()
    query.to_end()
    change_topics(spark_broker, "create_partitions", topic, 2)
    spark_broker.produce(topic, [Record("in the new one", partition=1)])
    assert [query.batch() for _ in range(3)] == [[], ["in the new one"], None]


def test_a_checkpoint_of_another_source_is_refused(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.create_topic(topic)
    with pytest.raises(WrongCheckpoint):
        engine([{"logOffset": 5}]).batch()


# --- what people see --------------------------------------------------------------------------------------------------


def committed(broker: Broker, group: str) -> dict[TopicPartition, int]:
    async def ask(client: Client) -> dict[TopicPartition, int]:
        return {tp: one.offset for tp, one in (await Groups(client).offsets(group)).items()}

    return run_with_client(broker.bootstrap_servers, ask)


def test_the_group_is_told_how_far_the_query_is(engine: Any, spark_broker: Broker, topic: str) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    query = engine(startingOffsets="earliest", maxOffsetsPerTrigger="2", **{"kafka.group.id": f"group-{topic}"})
    tp = TopicPartition(topic, 0)
    query.batch()
    query.batch()
    assert committed(spark_broker, f"group-{topic}") == {tp: 0}  # the batch is planned, nobody says that it is done
    query.reader.commit(query.log[-1])
    assert committed(spark_broker, f"group-{topic}") == {tp: 2}
    query.batch()
    assert query.batch() is None  # Spark asks once more after the last batch
    assert committed(spark_broker, f"group-{topic}") == {tp: 3}


def test_a_group_that_can_not_be_told_does_not_stop_the_query(
    engine: Any, spark_broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    spark_broker.produce(topic, ["a", "b"])
    from confluent_kafka import Consumer

    group = f"group-{topic}"
    settings = {"bootstrap.servers": spark_broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    member = Consumer(settings)
    member.subscribe([topic])
    assert member.poll(30) is not None
    with caplog.at_level(logging.WARNING, "headpond.spark"):
        assert engine(startingOffsets="earliest", **{"kafka.group.id": group}).to_end() == ["a", "b"]
    member.close()
    assert caplog.text.count(f"group {group} was not told how far the query is") == 1


def test_a_group_that_nobody_answers_for_does_not_stop_the_query(
    engine: Any, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headpond.spark.source.stream.COMMIT_TIMEOUT_S", 0.1)
    nobody = engine(**{"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.group.id": "g"})
    with caplog.at_level(logging.WARNING, "headpond.spark"):
        nobody.reader.commit({topic: {"0": 5}})
    assert "group g was not told how far the query is: no answer in time" in caplog.text


def test_the_latest_offset_is_reported_beside_the_one_that_a_batch_takes(
    engine: Any, spark_broker: Broker, topic: str
) -> None:
    spark_broker.produce(topic, ["a", "b", "c"])
    query = engine(startingOffsets="earliest", maxOffsetsPerTrigger="1")
    assert query.reader.reportLatestOffset() is None
    query.batch()
    query.batch()
    assert offsets_of(query.log[-1]) == {topic: {"0": 1}}
    assert offsets_of(query.reader.reportLatestOffset()) == {topic: {"0": 3}}


def test_a_task_of_another_headpond_is_refused(
    engine: Any, spark_broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_broker.produce(topic, ["a"])
    query = engine(startingOffsets="earliest")
    query.batch()
    monkeypatch.setattr("headpond.spark.source.ranges.__version__", "9.9")
    with pytest.raises(RuntimeError, match=r"the driver has headpond 9\.9 and this executor has .*: install the same"):
        query.batch()
