"""Promises with a number in them: how much a start after a crash reads, and who waits for a slow request."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from penstock.config.log import LogConfig
from penstock.model import TopicId, TopicPartition
from penstock.protocol.schema.api_versions import ApiVersionsRequest
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import DiskFileSystem
from penstock.runtime.random import SystemRandom
from penstock.runtime.tasks import LoopTasks
from penstock.runtime.workers import ThreadWorkers
from penstock.storage.manager import LogManager, StorageConfig
from support.batches import build
from support.broker import BrokerProcess
from support.verbs import Topic, append, create_topic, produce_request
from support.wire import Wire

MIB = 1 << 20
SCANNED_BYTES_MAX = 64 * MIB


def scanned_bytes(data_dir: Path, topic: Topic) -> int:
    """What a start on that folder has to read."""

    async def recover() -> int:
        workers, tasks = ThreadWorkers(), LoopTasks()
        manager = LogManager(
            str(data_dir),
            fs=DiskFileSystem(),
            clock=SystemClock(),
            workers=workers,
            tasks=tasks,
            random=SystemRandom(),
            config=StorageConfig(),
            on_fatal=lambda error: None,
        )
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
    many = build([b"x"] * 400_000)  # looked at one by one, in a worker
    with Wire(fresh_broker.bootstrap_servers) as slow, Wire(fresh_broker.bootstrap_servers) as quick:
        configs = {"max.message.bytes": str(16 * MIB), "penstock.validate.records": "true"}
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
