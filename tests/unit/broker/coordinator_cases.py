"""Every request to a coordinator of groups or transactions that would be answered if it were not for something, and a
broker with both coordinators to send it to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from headpond.broker.requests.routes import handle_of
from headpond.broker.security.authorizer import ResourceType
from headpond.cluster.topics import NewTopic
from headpond.coordination.runtime import CoordinatorRuntime, ShardState
from headpond.model import BrokerError, ErrorCode
from headpond.model.waits import Waiter
from headpond.protocol.apis import APIS, SERVED
from support.wire import API_KEYS
from unit.broker.asking import Asker
from unit.cluster.small_cluster import SmallCluster, with_cluster
from unit.coordination.test_coordinator_runtime import Home

GROUP, ID, TOPIC = "readers", "orders", "payments"
CLUSTER = (ResourceType.CLUSTER, "kafka-cluster")
THE_GROUP = (ResourceType.GROUP, GROUP)
THE_ID = (ResourceType.TRANSACTIONAL_ID, ID)
THE_TOPIC = (ResourceType.TOPIC, TOPIC)


class Case(NamedTuple):
    """A request that would be answered, if it were not for something."""

    api: str
    fields: dict[str, Any]
    version: int | None = None  # the newest


PARTITION = [{"partition_index": 0}]
COMMITTED = [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
OF_PRODUCER = {"transactional_id": ID, "producer_id": 0, "producer_epoch": 0}
OF_BROKER = [{**OF_PRODUCER, "topics": [{"name": TOPIC, "partitions": [0]}]}]

JOIN = Case("JoinGroup", {"group_id": GROUP, "session_timeout_ms": 10_000, "protocol_type": "consumer"})
FIRST_JOIN = JOIN._replace(fields={**JOIN.fields, "protocols": [{"name": "range", "metadata": b""}]}, version=3)
SYNC = Case("SyncGroup", {"group_id": GROUP, "member_id": "m", "protocol_type": "consumer", "protocol_name": "range"})
HEARTBEAT = Case("Heartbeat", {"group_id": GROUP, "member_id": "m"})
LEAVE = Case("LeaveGroup", {"group_id": GROUP, "members": [{"member_id": "m"}]})
COMMIT = Case("OffsetCommit", {"group_id": GROUP, "topics": COMMITTED}, 9)
FETCH = Case("OffsetFetch", {"groups": [{"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]}, 9)
DELETE_OFFSETS = Case("OffsetDelete", {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": PARTITION}]})
DESCRIBE = Case("DescribeGroups", {"groups": [GROUP]})
LIST = Case("ListGroups", {})
DELETE = Case("DeleteGroups", {"groups_names": [GROUP]})
BEAT = Case(
    "ConsumerGroupHeartbeat",
    {
        "group_id": GROUP,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": [TOPIC],
        "topic_partitions": [],
    },
)
DESCRIBE_CONSUMERS = Case("ConsumerGroupDescribe", {"group_ids": [GROUP]})
FIND_GROUP = Case("FindCoordinator", {"key_type": 0, "coordinator_keys": [GROUP]})
FIND_ID = Case("FindCoordinator", {"key_type": 1, "coordinator_keys": [ID]})
INIT = Case("InitProducerId", {"transactional_id": ID, "transaction_timeout_ms": 1_000})
INIT_IDEMPOTENT = Case("InitProducerId", {"transactional_id": None})
ADD = Case(
    "AddPartitionsToTxn",
    {
        "v3_and_below_transactional_id": ID,
        "v3_and_below_producer_id": 0,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}],
    },
    3,
)
ADD_FOR_CLIENTS = Case("AddPartitionsToTxn", {"transactions": OF_BROKER})
VERIFY_FOR_CLIENTS = Case("AddPartitionsToTxn", {"transactions": [{**OF_BROKER[0], "verify_only": True}]})
ADD_OFFSETS = Case("AddOffsetsToTxn", {**OF_PRODUCER, "group_id": GROUP})
END = Case("EndTxn", {**OF_PRODUCER, "committed": True})
TXN_COMMIT = Case("TxnOffsetCommit", {**OF_PRODUCER, "group_id": GROUP, "topics": COMMITTED})
TXN_COMMIT_OLD = TXN_COMMIT._replace(version=3)
MARKERS = Case(
    "WriteTxnMarkers", {"markers": [{"producer_id": 7, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]}
)
DESCRIBE_IDS = Case("DescribeTransactions", {"transactional_ids": [ID]})
LIST_IDS = Case("ListTransactions", {})
PRODUCERS = Case("DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]})

OF_GROUPS = [JOIN, SYNC, LEAVE, COMMIT, FETCH, DELETE_OFFSETS, DESCRIBE, DELETE, BEAT, DESCRIBE_CONSUMERS]
OF_IDS = [INIT, ADD, ADD_FOR_CLIENTS, VERIFY_FOR_CLIENTS, ADD_OFFSETS, END, TXN_COMMIT, TXN_COMMIT_OLD, DESCRIBE_IDS]


def name_of(value: object) -> str | None:
    if isinstance(value, Case):
        return value.api if value.version is None else f"{value.api} v{value.version}"
    return value.name if isinstance(value, ErrorCode) else None


async def loaded(runtime: CoordinatorRuntime[Any]) -> None:
    """Of the fifty partitions each takes a few turns of the loop."""
    for _ in range(500):
        if not runtime.is_loading:
            return
        await asyncio.sleep(0)
    raise AssertionError("still loading")


class RefusingHome(Home):
    """``commit_error``: what is appended from now on is never known to be durable."""

    commit_error: BrokerError | None = None

    async def committed(self, partition: int, end_offset: int) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        await super().committed(partition, end_offset)

    def when_committed(self, partition: int, end_offset: int, waiter: Waiter) -> None:
        if self.commit_error is not None:
            waiter.failed(self.commit_error)
        else:
            super().when_committed(partition, end_offset, waiter)


class Coordinators(Asker):
    """A broker that coordinates every group and every transactional id, with both logs in memory."""

    async def start(self, *, leads: bool = True) -> Coordinators:
        await self.cluster.metadata_writer.create_topic(NewTopic(TOPIC, 1, 1), timeout_ms=1_000)
        self.homes: dict[str, RefusingHome] = {}
        for coordinator, key in ((self.broker.groups, GROUP), (self.broker.transactions, ID)):
            self.homes[key] = coordinator.runtime._home = RefusingHome()
            assert await coordinator.topic.leader_for(key) == 1
            for partition in range(50 if leads else 0):
                coordinator.runtime.lead(partition, 0)
            await loaded(coordinator.runtime)
        return self

    async def answer(self, case: Case) -> Any:
        key = API_KEYS[case.api]
        assert key in SERVED
        request = msgspec.convert(case.fields, APIS[key].request)
        version = APIS[key].versions[-1] if case.version is None else case.version
        return await self.ask(handle_of(key), version, request)

    async def codes(self, case: Case) -> set[ErrorCode]:
        """Everything but 0 that the answer says."""
        return set(_codes(await self.answer(case)))


def _codes(value: Any) -> Iterator[ErrorCode]:
    if isinstance(value, list):
        for each in value:
            yield from _codes(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if name.endswith("error_code") and inner:
                yield ErrorCode(inner)
            else:
                yield from _codes(inner)


def with_coordinators(
    scenario: Callable[[Coordinators], Awaitable[None]], *, leads: bool = True, authorizer: Any = None
) -> None:
    async def run(cluster: SmallCluster) -> None:
        await scenario(await Coordinators(cluster, authorizer=authorizer).start(leads=leads))

    with_cluster(run)


def set_loading(runtime: CoordinatorRuntime[Any]) -> None:
    for shard in runtime._shards.values():
        shard.state = ShardState.LOADING
