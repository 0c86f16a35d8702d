"""``headpond.testing.Broker``: what a test that uses it may rely on."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headpond.model import ErrorCode
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.metadata import MetadataRequest, MetadataResponse
from headpond.testing import Broker, BrokerFailed, Record, StartFailed, TopicNotCreated
from support.batches import build
from support.traces import is_alive, is_listening
from support.variants import kinds
from support.verbs import append, describe_topic, end_offset
from support.waiting import eventually
from support.wire import Wire


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(settings={"num.partitions": 4, "auto.create.topics.enable": False}) as broker:
        yield broker


@pytest.fixture
def own() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def metadata_of(broker: Broker, *topics: str) -> MetadataResponse:
    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    with Wire(broker.bootstrap_servers) as wire:
        answer: MetadataResponse = wire.call(MetadataRequest(topics=named, allow_auto_topic_creation=False), 12)
        return answer


def topic_settings(broker: Broker, topic: str, *names: str) -> dict[str, str | None]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=list(names)
    )
    with Wire(broker.bootstrap_servers) as wire:
        (result,) = wire.call(DescribeConfigsRequest(resources=[resource]), 4).results
    return {entry.name: entry.value for entry in result.configs}


def broker_settings(broker: Broker, *names: str) -> list[str | None]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=list(names)
    )
    with Wire(broker.bootstrap_servers) as wire:
        (result,) = wire.call(DescribeConfigsRequest(resources=[resource]), 4).results
    found = {entry.name: entry.value for entry in result.configs}
    return [found[name] for name in names]


def test_records_stay_and_groups_do_not_wait_for_members_unless_the_test_says_so(tmp_path: Path) -> None:
    delay, kept_ms, kept_h = "group.initial.rebalance.delay.ms", "log.retention.ms", "log.retention.hours"
    with Broker() as broker:
        assert broker_settings(broker, delay, kept_ms) == ["0", "-1"]
    with Broker(settings={delay: 1000, kept_h: 5}) as broker:
        assert broker_settings(broker, delay, kept_ms, kept_h) == ["1000", None, "5"]
    with Broker(env={"HEADPOND_GROUP_INITIAL_REBALANCE_DELAY_MS": "1000"}) as broker:
        assert broker_settings(broker, delay, kept_ms) == ["1000", "-1"]
    with Broker(arguments=["--set", f"{delay}=1000"]) as broker:
        assert broker_settings(broker, delay, kept_ms) == ["1000", "-1"]
    file = tmp_path / "mine.toml"
    file.write_text(f'"{kept_ms}" = 70000\n')
    with Broker(arguments=["--config", str(file)]) as broker:
        assert broker_settings(broker, delay, kept_ms) == ["3000", "70000"]


def test_a_setting_that_is_given_wins_also_where_it_says_the_same_as_a_default(tmp_path: Path) -> None:
    delay, kept_ms = "group.initial.rebalance.delay.ms", "log.retention.ms"
    file = tmp_path / "mine.toml"
    file.write_text(f'"{delay}" = 1000\n"{kept_ms}" = 70000\n')
    with Broker(settings={kept_ms: -1}, arguments=["--config", str(file)]) as broker:
        assert broker_settings(broker, delay, kept_ms) == ["1000", "-1"]
    with Broker(settings={delay: 0}, env={"HEADPOND_GROUP_INITIAL_REBALANCE_DELAY_MS": "1000"}) as broker:
        assert broker_settings(broker, delay, kept_ms) == ["0", "-1"]


def test_a_topic_has_the_partitions_and_the_settings_that_were_asked_for(shared: Broker) -> None:
    shared.create_topic("orders", 3, cleanup_policy=["compact", "delete"], **{"retention.ms": 1000})
    shared.create_topic("plain", max_message_bytes=None)
    shared.create_topic("as-the-broker-likes", partitions=-1, message_timestamp_type="LogAppendTime")
    found = metadata_of(shared, "orders", "plain", "as-the-broker-likes").topics
    assert [len(topic.partitions) for topic in found] == [3, 1, 4]
    assert topic_settings(shared, "orders", "cleanup.policy", "retention.ms") == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "1000",
    }


def test_a_refused_topic_says_why(shared: Broker) -> None:
    shared.create_topic("once")
    with pytest.raises(TopicNotCreated, match=r"topic 'once' was not created, TOPIC_ALREADY_EXISTS: .+") as refused:
        shared.create_topic("once")
    assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(TopicNotCreated, match=r"INVALID_CONFIG: .*cleanup\.polici"):
        shared.create_topic("wrong", cleanup_polici="compact")
    with pytest.raises(TopicNotCreated, match="INVALID_TOPIC_EXCEPTION"):
        shared.create_topic("no/name")


def test_a_stop_is_clean_and_data_and_port_come_back(own: Broker) -> None:
    own.create_topic("orders")
    address, first_pid = own.bootstrap_servers, own.pid
    with Wire(address) as wire:
        append(wire, describe_topic(wire, "orders"), build([b"x"] * 3))
    own.stop()
    own.stop()
    assert not is_listening(address) and not own.is_running
    assert (own.data_dir / ".kafka_cleanshutdown").exists()
    with pytest.raises(BrokerFailed, match="topic 'more' was not created: the broker is not running"):
        own.create_topic("more")
    own.start()
    assert own.bootstrap_servers == address and own.pid != first_pid
    with Wire(address) as wire:
        assert end_offset(wire, describe_topic(wire, "orders")) == 3


@pytest.mark.parametrize("kill", kinds([False, True], ordinary={True}))
def test_a_client_that_stays_goes_on_after_a_restart(own: Broker, kill: bool) -> None:
    own.create_topic("orders")
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": own.bootstrap_servers, "enable.idempotence": True})
    for n in range(3):
        producer.produce("orders", str(n), on_delivery=lambda error, _: error and errors.append(error))
        assert producer.flush(30) == 0
        own.restart(kill=kill)
    with Wire(own.bootstrap_servers) as wire:
        assert end_offset(wire, describe_topic(wire, "orders")) == 3
    assert errors == []


def test_a_kill_leaves_no_marker_and_a_second_one_does_nothing(own: Broker) -> None:
    pid = own.pid
    own.kill()
    own.kill()
    own.stop()
    assert not is_alive(pid) and not (own.data_dir / ".kafka_cleanshutdown").exists()
    own.restart()
    assert own.is_running


def test_a_restart_waits_for_its_port(own: Broker) -> None:
    own.stop()
    first_log = set(own.folder.glob("stderr-*"))
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind((own.host, own.port))
        squatter.listen()

        def leave_when_noticed() -> None:
            logs = lambda: set(own.folder.glob("stderr-*")) - first_log  # noqa: E731
            eventually(lambda: any("in use" in log.read_text() for log in logs()))
            squatter.close()

        leaving = threading.Thread(target=leave_when_noticed)
        leaving.start()
        before = own.port
        own.restart()
        leaving.join()
    assert own.port == before and is_listening(own.bootstrap_servers)


def test_a_port_that_never_was_its_own_is_refused_at_once(own: Broker) -> None:
    with pytest.raises(StartFailed, match=f"{own.bootstrap_servers} is in use"), Broker(port=own.port):
        pass


def test_a_broker_that_ended_by_itself_is_reported_and_can_be_started_again(own: Broker) -> None:
    os.kill(own.pid, signal.SIGKILL)
    eventually(lambda: not own.is_running)
    with pytest.raises(BrokerFailed, match=r"ended by itself with -9, it said:\nheadpond .* listening on"):
        own.stop()
    own.start()
    assert own.is_running


def test_a_broker_is_started_once(own: Broker) -> None:
    with pytest.raises(BrokerFailed, match=f"running already, on {own.bootstrap_servers}"):
        own.start()
    assert own.is_running


def test_a_block_around_a_started_one_is_fine() -> None:
    broker = Broker().start()
    pid = broker.pid
    with broker as same:
        assert same is broker and broker.pid == pid
    assert not is_alive(pid)


def test_before_its_start_it_has_no_address_no_folder_and_no_process() -> None:
    broker = Broker()
    for ask in (lambda: broker.bootstrap_servers, lambda: broker.folder, lambda: broker.pid):
        with pytest.raises(BrokerFailed):
            ask()
    assert not broker.is_running and broker.logs() == ""
    broker.stop()
    broker.kill()
    broker.close()


def test_after_the_block_it_can_be_used_anew_and_is_empty() -> None:
    broker = Broker()
    for _ in range(2):
        with broker:
            broker.create_topic("orders")
            folder, address, pid = broker.folder, broker.bootstrap_servers, broker.pid
        assert not folder.exists() and not is_listening(address) and not is_alive(pid)


def test_a_failure_in_the_block_leaves_nothing_either() -> None:
    with pytest.raises(ValueError, match="the test's"), Broker() as broker:
        folder, pid = broker.folder, broker.pid
        raise ValueError("the test's")
    assert not folder.exists() and not is_alive(pid)


def test_a_folder_of_one_s_own_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Broker(folder="kept") as broker:
        broker.create_topic("orders")
    monkeypatch.chdir("/")
    assert "listening on" in broker.logs() and (tmp_path / "kept" / "data" / "meta.properties").exists()
    with Broker(folder=tmp_path / "kept") as again, Wire(again.bootstrap_servers) as wire:
        describe_topic(wire, "orders")


def test_settings_variables_and_arguments_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADPOND_BROKER_ID", "77")
    with Broker(env={"HEADPOND_SET": "num.partitions=2"}, arguments=["--broker-id", "5"]) as broker:
        broker.create_topic("orders", -1)
        found = metadata_of(broker, "orders")
        assert (found.brokers[0].node_id, len(found.topics[0].partitions)) == (5, 2)


def test_records_of_long_ago_stay_unless_the_test_says_otherwise() -> None:
    impatient = {"log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 20}
    with Broker(settings=impatient) as keeping, Broker(settings={**impatient, "log.retention.ms": 1_000}) as deleting:
        for broker in (keeping, deleting):
            broker.produce("old", [Record("of 1970", timestamp_ms=5)])
        eventually(lambda: deleting.consume("old") == [])
        assert [record.value for record in keeping.consume("old")] == [b"of 1970"]


def test_with_async_the_loop_goes_on() -> None:
    async def use() -> tuple[Path, int]:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async with Broker() as broker:
            broker.create_topic("orders")
            await asyncio.to_thread(broker.restart)
            folder = broker.folder
        counting.cancel()
        return folder, turns

    folder, turns = asyncio.run(use())
    assert not folder.exists() and turns > 100


class TestWithUnittest(unittest.TestCase):
    """For other test runners it is a context manager like any other."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = cls.enterClassContext(Broker())

    def test_it_serves(self) -> None:
        self.broker.create_topic("orders")
        self.assertTrue(is_listening(self.broker.bootstrap_servers))
