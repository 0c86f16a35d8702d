"""What raw tests say all the time: make a topic, produce a batch, fetch, list offsets, at any version of the API.

Each verb hides one thing only: that newer versions name a topic by its id and older ones by its name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.fetch import FetchRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.produce import ProduceRequest
from support.batches import Batch, split
from support.waiting import eventually
from support.wire import Wire

PRODUCE_WITH_ID = 13
FETCH_WITH_ID = 13
EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -3, -4, -5


class Topic(NamedTuple):
    name: str
    id: bytes


def create_topic(
    wire: Wire, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None, version: int = 7
) -> Topic:
    creatable = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )
    result = wire.call(CreateTopicsRequest(topics=[creatable], timeout_ms=30_000), version).topics[0]
    assert result.error_code == 0, (name, result.error_code, result.error_message)
    topic = eventually(lambda: describe_topic(wire, name), retry_on=(AssertionError,))
    # Apache Kafka answers before the partitions lead. Clients retry; raw tests want to start clean.
    for partition in range(partitions):
        eventually(lambda at=partition: list_offset(wire, topic, LATEST, partition=at).error_code == 0)
    return topic


def describe_topic(wire: Wire, name: str) -> Topic:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    found = wire.call(request, 12).topics[0]
    assert found.error_code == 0, (name, found.error_code)
    return Topic(name, found.topic_id)


def produce_request(
    topic: Topic, records: bytes | None, *, version: int, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=partition, records=records)
    named = {"topic_id": topic.id} if version >= PRODUCE_WITH_ID else {"name": topic.name}
    entry = ProduceRequest.TopicProduceData(partition_data=[data], **named)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[entry])


def produce(
    wire: Wire, topic: Topic, records: bytes | None, *, version: int = 12, partition: int = 0, acks: int = -1
) -> Any:
    """The partition's part of the response."""
    request = produce_request(topic, records, version=version, partition=partition, acks=acks)
    return wire.call(request, version).responses[0].partition_responses[0]


def append(wire: Wire, topic: Topic, records: bytes, *, partition: int = 0, acks: int = -1) -> int:
    """Produce what must succeed; the offset that it got."""
    answer = produce(wire, topic, records, partition=partition, acks=acks)
    assert answer.error_code == 0, (answer.error_code, answer.error_message)
    return int(answer.base_offset)


def fetch_partition(partition: int = 0, offset: int = 0, *, bytes_max: int = 1 << 20, **fields: Any) -> Any:
    return FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max, **fields
    )


def fetch_request(
    topics: dict[Topic, list[Any]], *, version: int, max_wait_ms: int = 0, min_bytes: int = 1, **fields: Any
) -> FetchRequest:
    """``topics`` maps a topic to its ``fetch_partition``s. Epoch -1 of a session: no session is wanted."""
    entries = [
        FetchRequest.FetchTopic(
            partitions=partitions, **({"topic_id": t.id} if version >= FETCH_WITH_ID else {"topic": t.name})
        )
        for t, partitions in topics.items()
    ]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=entries, **fields)


def fetch(
    wire: Wire,
    topic: Topic,
    offset: int = 0,
    *,
    partition: int = 0,
    version: int = 17,
    bytes_max: int = 1 << 20,
    partition_fields: dict[str, Any] | None = None,
    **fields: Any,
) -> Any:
    """The partition's part of the response; ``batches`` reads its records."""
    wanted = fetch_partition(partition, offset, bytes_max=bytes_max, **(partition_fields or {}))
    response = wire.call(fetch_request({topic: [wanted]}, version=version, **fields), version)
    assert response.error_code == 0, response.error_code
    return response.responses[0].partitions[0]


def batches(partition_data: Any) -> list[Batch]:
    return list(split(partition_data.records))


def stored(wire: Wire, topic: Topic, *, partition: int = 0, offset: int = 0) -> list[Batch]:
    """Every committed batch of a small partition from ``offset`` on."""
    found: list[Batch] = []
    while True:
        answer = fetch(wire, topic, offset, partition=partition, bytes_max=8 << 20)
        assert answer.error_code == 0, answer.error_code
        more = batches(answer)
        found += more
        if not more:
            return found
        offset = more[-1].last_offset + 1


def list_offset(
    wire: Wire, topic: Topic, timestamp: int, *, partition: int = 0, version: int = 9, **fields: Any
) -> Any:
    """The partition's part of the response."""
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **fields)
    entry = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[wanted])
    return wire.call(ListOffsetsRequest(replica_id=-1, topics=[entry]), version).topics[0].partitions[0]


def end_offset(wire: Wire, topic: Topic, *, partition: int = 0) -> int:
    return int(list_offset(wire, topic, LATEST, partition=partition).offset)


def new_producer(wire: Wire, *, version: int = 4) -> tuple[int, int]:
    """(producer id, epoch) of a fresh idempotent producer."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def answered() -> Any:
        # Apache Kafka answers COORDINATOR_LOAD_IN_PROGRESS while it fetches its next block of ids.
        answer = wire.call(request, version)
        assert answer.error_code in (0, 14), answer.error_code
        return answer if answer.error_code == 0 else None

    answer = eventually(answered)
    return answer.producer_id, answer.producer_epoch
