"""Asks a real Apache Kafka and writes down, byte by byte, what was asked and answered: golden_bytes.json.

    PYTHONPATH=src python tests/unit/protocol/record_golden_bytes.py HOST:PORT

Creates a topic called headpond-golden there and deletes it again.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from kafka.record.memory_records import MemoryRecordsBuilder

from headpond.protocol import apis, header
from headpond.protocol.apis import request_encoder
from headpond.protocol.schema.api_versions import ApiVersionsRequest
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.describe_cluster import DescribeClusterRequest
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest
from headpond.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headpond.protocol.schema.fetch import FetchRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.init_producer_id import InitProducerIdRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from headpond.protocol.schema.produce import ProduceRequest
from headpond.protocol.types import Message

TOPIC = "headpond-golden"


class Recorder:
    def __init__(self, host: str, port: int) -> None:
        self.connection = socket.create_connection((host, port))
        self.recorded: list[dict[str, Any]] = []

    def ask(self, request: Message, version: int, *, keep: bool = True) -> Any:
        key = type(request).KEY
        head = header.encode_request_header(key, version, len(self.recorded), "golden")
        asked = head + request_encoder(key, version)(request)
        self.connection.sendall(struct.pack(">i", len(asked)) + asked)
        answered = self._receive(struct.unpack(">i", self._receive(4))[0])
        if keep:
            name = apis.APIS[key].name
            self.recorded.append({"api": name, "version": version, "request": asked.hex(), "response": answered.hex()})
        _, position = header.decode_response_header(answered, key, version)
        return apis.response_decoder(key, version)(answered, position)[0]

    def _receive(self, size_bytes: int) -> bytes:
        data = b""
        while len(data) < size_bytes:
            data += self.connection.recv(size_bytes - len(data))
        return data


def record(recorder: Recorder) -> None:
    ask = recorder.ask
    ask(DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=5000), 5, keep=False)
    for version in (0, 2, 3, 4):
        ask(ApiVersionsRequest(client_software_name="golden", client_software_version="1"), version)
    config = CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="3600000")
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1, configs=[config])
    bad = CreateTopicsRequest.CreatableTopic(name="no spaces", num_partitions=1, replication_factor=1)
    for version in (4, 7):
        ask(CreateTopicsRequest(topics=[topic, bad], timeout_ms=5000, validate_only=True), version)
    ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
    time.sleep(2)
    metadata = None
    for version in (1, 8, 9, 13):
        metadata = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)]), version)
    topic_id = metadata.topics[0].topic_id
    record_data(recorder, topic_id)
    for version in (0, 2):
        ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms", "cleanup.policy"]
    )
    for version in (1, 4):
        ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), version)
    ask(DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsRequest.TopicRequest(TOPIC)]), 0)
    ask(FindCoordinatorRequest(key="golden-group"), 3)
    ask(FindCoordinatorRequest(coordinator_keys=["golden-group"]), 6)
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=3)
    ask(CreatePartitionsRequest(topics=[grown], timeout_ms=5000, validate_only=True), 3)
    ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=TOPIC)], timeout_ms=5000), 6)


def record_data(recorder: Recorder, topic_id: bytes) -> None:
    ask = recorder.ask
    for version in (0, 5):
        ask(InitProducerIdRequest(transaction_timeout_ms=60000), version)
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1000)
    builder.append(timestamp=1_700_000_000_000, key=b"key", value=b"value", headers=[("header", b"1")])
    builder.close()
    for version in (3, 9, 13):
        partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.buffer()))
        wrong = ProduceRequest.PartitionProduceData(index=1, records=b"garbage")
        name = TOPIC if version < 13 else ""
        topic = ProduceRequest.TopicProduceData(name=name, partition_data=[partition, wrong])
        topic.topic_id = topic_id if version >= 13 else bytes(16)
        ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), version)
    for version in (4, 11, 12, 18):
        partitions = [FetchRequest.FetchPartition(partition=p, partition_max_bytes=1000) for p in (0, 1)]
        fetched = FetchRequest.FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=partitions)
        ask(FetchRequest(max_wait_ms=100, min_bytes=1, topics=[fetched]), version)
    for version in (1, 11):
        latest = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        by_time = ListOffsetsRequest.ListOffsetsPartition(partition_index=1, timestamp=0)
        offsets = [latest, by_time]
        ask(ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(TOPIC, offsets)]), version)
    epoch = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    ask(OffsetForLeaderEpochRequest(topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(TOPIC, [epoch])]), 4)
    deleted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
    ask(DeleteRecordsRequest(topics=[DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [deleted])], timeout_ms=5000), 2)


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    recorder = Recorder(host, int(port))
    record(recorder)
    place = Path(__file__).with_name("golden_bytes.json")
    place.write_text("[\n" + ",\n".join(json.dumps(one) for one in recorder.recorded) + "\n]\n")
    print(f"{len(recorder.recorded)} exchanges")
