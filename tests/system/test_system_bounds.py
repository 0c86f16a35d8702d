"""Promises with a number in them: how much a start after a crash reads, and who waits for a slow request."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

from crc32c import crc32c

from headpond.config.log import LogConfig
from headpond.model import TopicId, TopicPartition
from headpond.protocol.schema.api_versions import ApiVersionsRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.runtime.clock import SystemClock
from headpond.runtime.files import DiskFileSystem
from headpond.runtime.random import SystemRandom
from headpond.runtime.tasks import LoopTasks
from headpond.runtime.workers import ThreadWorkers
from headpond.storage.manager import LogManager, StorageConfig
from headpond.storage.ports import StoragePorts
from support.batches import build, now_ms
from support.broker import BrokerProcess
from support.verbs import Topic, append, create_topic, produce_request
from support.wire import Wire

MIB = 1 << 20
SCANNED_BYTES_MAX = 64 * MIB
CRC_AT, CRC_FROM, MAX_TIMESTAMP_AT = 17, 21, 35


def scanned_bytes(data_dir: Path, topic: Topic) -> int:
    """What a start on that folder has to read."""

    async def recover() -> int:
        workers, tasks = ThreadWorkers(), LoopTasks()
        ports = StoragePorts(
            fs=DiskFileSystem(), clock=SystemClock(), workers=workers, tasks=tasks, random=SystemRandom()
        )
        manager = LogManager(str(data_dir), ports, StorageConfig(), on_fatal=lambda error: None)
        await manager.lock()
        assert manager.cluster_id is not None
        known = {TopicPartition(topic.name, 0): TopicId(topic.id)}
        await manager.open(known, lambda _: LogConfig(), manager.cluster_id, 1)
        await manager.close()
        await tasks.cancel_all()
        await workers.close()
        return manager.scanned_bytes

    return asyncio.run(recover())


def test_a_start_after_a_crash_reads_at_most_64_mib_of_a_partition(fresh_broker: BrokerProcess) -> None:
    batch = build([bytes(MIB - 1_000)])
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "large")
        for _ in range(200):
            append(wire, topic, batch)
    fresh_broker.kill()
    size_bytes = sum(file.stat().st_size for file in fresh_broker.log_folder("large").glob("*.log"))
    assert size_bytes > 3 * SCANNED_BYTES_MAX
    assert 0 < scanned_bytes(fresh_broker.data_dir, topic) <= SCANNED_BYTES_MAX


def test_a_request_that_takes_long_holds_its_own_connection_only(fresh_broker: BrokerProcess) -> None:
    many = build([b"x"] * 400_000)  # looked at one by one, in a process
    with Wire(fresh_broker.bootstrap_servers) as slow, Wire(fresh_broker.bootstrap_servers) as quick:
        configs = {"max.message.bytes": str(16 * MIB), "headpond.validate.records": "true"}
        topic = create_topic(slow, "slow", configs=configs)
        slow.send(produce_request(topic, many, version=9), 9)
        slow.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
        for _ in range(5):
            quick.call(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
        slow.socket.setblocking(False)
        try:
            early = slow.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            early = b""
        assert early == b"", "the slow one was not slow: this test shows nothing"
        slow.socket.setblocking(True)
        _, answer = slow.receive()
        assert answer.responses[0].partition_responses[0].error_code == 0
        _, versions = slow.receive()
        assert versions.error_code == 0, "and its next request waited its turn"


def test_searches_by_time_in_batches_that_lie_hold_up_no_acks_all_and_find_nothing(fresh_broker: BrokerProcess) -> None:
    partitions = 8  # more than there are threads for files
    now = now_ms()
    batch = bytearray(build([b""] * 300_000, codec="zstd", timestamp_ms=now))
    struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, now + 1_000)
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CRC_FROM:]))
    by_time = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=now + 500)
        for index in range(partitions)
    ]
    with Wire(fresh_broker.bootstrap_servers) as slow, Wire(fresh_broker.bootstrap_servers) as quick:
        topic = create_topic(slow, "lying", partitions=partitions)
        other = create_topic(slow, "other")
        for index in range(partitions):
            append(slow, topic, bytes(batch), partition=index)
        slow.send(
            ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=by_time)]), 7
        )
        for _ in range(5):
            append(quick, other, build([b"x"]))  # acks=all
        slow.socket.setblocking(False)
        try:
            early = slow.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            early = b""
        assert early == b"", "the search was not slow: this test shows nothing"
        slow.socket.setblocking(True)
        _, answer = slow.receive()
        assert [(row.error_code, row.offset) for row in answer.topics[0].partitions] == [(0, -1)] * partitions
