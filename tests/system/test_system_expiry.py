"""Offsets and transactional ids that are too old are forgotten by a running broker, and stay so after kill -9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headpond.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_groups import ListGroupsRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.broker import BrokerProcess
from support.producer_v2 import PatientWire, ProducerV2
from support.verbs import create_topic
from support.waiting import eventually
from support.wire import Wire

OK, LOADING, NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND = 0, 14, 16, 105
TOPIC = "letters"
NO_RETENTION_OF_ITS_OWN = -1
OFFSETS_SOON = {"offsets.retention.check.interval.ms": 100}
IDS_SOON = {
    "transactional.id.expiration.ms": 300,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 100,
}
ONE_PARTITION = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


def killed_and_started_without(broker: BrokerProcess, settings: dict[str, int]) -> Wire:
    """Nothing is forgotten any more from now on: what is gone was gone."""
    broker.kill()
    for name in settings:
        del broker.settings[name]
    broker.start()
    return Wire(broker.bootstrap_servers)


# --- offsets


def commit(wire: Wire, group: str, partition: int, offset: int, *, retention_ms: int) -> None:
    row = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
    )
    eventually(lambda: wire.call(request, 2).topics[0].partitions[0].error_code == OK)


def committed(wire: Wire, group: str) -> list[int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0, 1])
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    answer = eventually(lambda: _loaded(wire.call(OffsetFetchRequest(groups=[asked]), 9).groups[0]))
    assert answer.error_code == OK
    return [row.committed_offset for row in answer.topics[0].partitions]


def listed(wire: Wire) -> list[str]:
    answer = eventually(lambda: _loaded(wire.call(ListGroupsRequest(), 4)))
    return sorted(each.group_id for each in answer.groups)


def _loaded(answer: Any) -> Any:
    return answer if answer.error_code not in (LOADING, NOT_COORDINATOR) else None


def test_offsets_are_forgotten_when_their_time_is_over_and_their_group_with_the_last_one(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings=OFFSETS_SOON | ONE_PARTITION).start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, TOPIC, partitions=2)
        eventually(lambda: wire.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0].error_code == 0)
        commit(wire, "readers", 0, 7, retention_ms=1)
        commit(wire, "readers", 1, 8, retention_ms=NO_RETENTION_OF_ITS_OWN)
        commit(wire, "passers-by", 0, 9, retention_ms=1)
        eventually(lambda: committed(wire, "readers") == [-1, 8])
        eventually(lambda: listed(wire) == ["readers"])
    with killed_and_started_without(broker, OFFSETS_SOON) as wire:
        assert committed(wire, "readers") == [-1, 8]
        assert committed(wire, "passers-by") == [-1, -1]
        assert listed(wire) == ["readers"]


# --- transactional ids


def state_of(wire: Wire, transactional_id: str) -> str | int:
    """Or the error."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = eventually(lambda: _loaded(wire.call(request, 0).transaction_states[0]))
    return int(answer.error_code) or str(answer.transaction_state)


def producer_id_of(wire: Wire, transactional_id: str) -> int:
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    eventually(lambda: wire.call(find, 4).coordinators[0].error_code == OK)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)

    def answered() -> Any:
        answer = wire.call(request, 5)
        return answer if answer.error_code == OK else None

    return int(eventually(answered).producer_id)


def test_a_transactional_id_at_rest_is_forgotten_and_one_with_an_open_transaction_is_not(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker(settings=ONE_PARTITION).start()
    busy = ProducerV2(PatientWire(broker.bootstrap_servers), "busy")
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, TOPIC)
        busy.init()
        busy.produce(topic, {0: [b"half a letter"]})
        before = producer_id_of(wire, "idle")
        assert [state_of(wire, "idle"), state_of(wire, "busy")] == ["Empty", "Ongoing"]
    broker.settings.update(IDS_SOON)
    broker.restart(kill=True)
    with Wire(broker.bootstrap_servers) as wire:
        eventually(lambda: state_of(wire, "idle") == TRANSACTIONAL_ID_NOT_FOUND)
        assert state_of(wire, "busy") == "Ongoing"
    with killed_and_started_without(broker, IDS_SOON) as wire:
        assert [state_of(wire, "idle"), state_of(wire, "busy")] == [TRANSACTIONAL_ID_NOT_FOUND, "Ongoing"]
        assert producer_id_of(wire, "idle") > before, "nobody knows that it had one"
        busy.end(is_commit=True)
