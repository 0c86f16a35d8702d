"""Settings that show only over time or only here: retention, the full look at records, flush modes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from support.batches import CODECS, Rec, build, now_ms
from support.broker import BrokerProcess, run_headpond
from support.verbs import EARLIEST, Topic, append, create_topic, end_offset, list_offset, produce, stored
from support.waiting import eventually
from support.wire import Wire

INVALID_RECORD = 87
INVALID_REQUEST = 42
VALUE = os.urandom(100_000)
QUICK = {
    "log.initial.task.delay.ms": 0,
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 0,
}


def start_of(wire: Wire, topic: Topic) -> int:
    return int(list_offset(wire, topic, EARLIEST).offset)


def set_config(wire: Wire, name: str, value: str) -> None:
    message = IncrementalAlterConfigsRequest
    row = message.AlterableConfig(name=name, config_operation=0, value=value)
    resource = message.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[row])
    assert wire.call(message(resources=[resource]), 1).responses[0].error_code == 0


def segments(broker: BrokerProcess) -> int:
    return len(list(broker.log_folder("orders").glob("*.log")))


def test_a_broker_does_not_start_with_a_security_setting_that_would_do_nothing(tmp_path: Path) -> None:
    done = run_headpond("serve", "--data-dir", str(tmp_path / "data"), "--set", "authorizer.class.name=x")
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("headpond: authorizer.class.name (from --set) would have no effect: ")
    assert not (tmp_path / "data").exists()


def test_settings_without_effect_are_named_in_one_line_at_the_start(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"num.io.threads": 16, "background.threads": 10, "min.insync.replicas": 2}).start()
    broker.stop()
    (line,) = [line for line in broker.logs().splitlines() if "without effect" in line]
    assert line.endswith("settings without effect here: min.insync.replicas, num.io.threads")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400", "9" * 5_000])
def test_a_number_that_is_none_is_refused_while_the_broker_runs_too(broker: BrokerProcess, value: str) -> None:
    message = IncrementalAlterConfigsRequest
    with Wire(broker.bootstrap_servers) as wire:
        for name in ("log.cleaner.io.buffer.load.factor", "max.connections.per.ip.overrides", "log.cleaner.backoff.ms"):
            text = f"h:{value}" if name.endswith("overrides") else value
            row = message.AlterableConfig(name=name, config_operation=0, value=text)
            resource = message.AlterConfigsResource(resource_type=4, resource_name="1", configs=[row])
            (answer,) = wire.call(message(resources=[resource]), 1).responses
            assert answer.error_code == INVALID_REQUEST, name


@pytest.mark.parametrize(
    ("limit", "value", "start"),
    [
        ("retention.bytes", 2_500_000, 30),  # of six segments with a megabyte each, three must stay
        ("retention.ms", 3_600_000, 40),  # the first forty records are two hours old
    ],
)
def test_retention_deletes_whole_old_segments(
    make_broker: Callable[..., BrokerProcess], limit: str, value: int, start: int
) -> None:
    broker = make_broker(settings=QUICK).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", configs={"segment.bytes": str(1 << 20), "retention.ms": "-1"})
        for n in range(60):
            is_old = limit == "retention.ms" and n < 40
            append(wire, topic, build([VALUE], timestamp_ms=now_ms() - (7_200_000 if is_old else 0)))
        # Set only now: a sweep in between would roll the segment that is being written, and move the boundaries.
        set_config(wire, limit, str(value))
        eventually(lambda: start_of(wire, topic) == start)
        eventually(lambda: segments(broker) == (60 - start) // 10)
        assert end_offset(wire, topic) == 60
        assert [b.base_offset for b in stored(wire, topic, offset=start)] == list(range(start, 60))
        broker.restart(kill=True)
    with Wire(broker.bootstrap_servers) as wire:
        assert start_of(wire, topic) == start
        assert append(wire, topic, build([b"x"])) == 60


def test_deleted_records_give_their_segments_back_and_stay_deleted(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings=QUICK).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", configs={"segment.bytes": str(1 << 20)})
        for _ in range(40):
            append(wire, topic, build([VALUE]))
        before = segments(broker)
        wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=35)
        entry = DeleteRecordsRequest.DeleteRecordsTopic(name="orders", partitions=[wanted])
        wire.call(DeleteRecordsRequest(topics=[entry], timeout_ms=10_000), 2)
        assert start_of(wire, topic) == 35
        eventually(lambda: segments(broker) < before - 1)
    for kill in (False, True):  # like Kafka's, the log start is sure to be on disk after a clean stop only
        broker.restart(kill=kill)
        with Wire(broker.bootstrap_servers) as wire:
            assert (start_of(wire, topic), end_offset(wire, topic)) == (35, 40)


@pytest.mark.parametrize("codec", CODECS)
def test_the_full_look_at_records_can_be_turned_on(broker: BrokerProcess, topic_name: str, codec: str) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, topic_name, configs={"headpond.validate.records": "true"})
        good = build([Rec(b"v", b"k", [("h", b"x")]), Rec(None, None)], codec=codec)
        assert append(wire, topic, good) == 0
        lying = build([b"a", b"b", b"c"], codec=codec, count=2, last_offset_delta=1)
        assert produce(wire, topic, lying).error_code == INVALID_RECORD
        hollow = build([b"a"], codec=codec, count=2, last_offset_delta=1)
        assert produce(wire, topic, hollow).error_code == INVALID_RECORD
        assert end_offset(wire, topic) == 2


@pytest.mark.parametrize("flush", ["ack", "interval", "os"])
@pytest.mark.parametrize("acks", [1, -1])
def test_every_flush_mode_answers_and_shows_records(
    make_broker: Callable[..., BrokerProcess], flush: str, acks: int
) -> None:
    broker = make_broker(settings={"headpond.flush": flush}).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        for n in range(10):
            assert append(wire, topic, build([b"x"]), acks=acks) == n
            if acks == -1:
                assert end_offset(wire, topic) == n + 1, "visible as soon as it is acknowledged"
        eventually(lambda: end_offset(wire, topic) == 10)
        assert len(stored(wire, topic)) == 10


def test_kafka_s_own_flush_settings_are_taken(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"log.flush.interval.messages": 1, "headpond.flush": "os"}).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", configs={"flush.messages": "1", "flush.ms": "100"})
        assert [append(wire, topic, build([b"x"])) for _ in range(5)] == [0, 1, 2, 3, 4]
