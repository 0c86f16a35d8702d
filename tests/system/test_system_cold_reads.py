"""Data that is not in memory: read by a worker, whole and in order, while the broker serves others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.batches import build, split
from support.broker import BrokerProcess
from support.verbs import append, create_topic, fetch_partition, fetch_request, stored
from support.wire import Wire

MIB = 1 << 20
BATCHES = 6
PARTITIONS = 3


def forget(segment: Path, *, from_byte: int) -> None:
    """Drop a file's pages from memory, from there on."""
    with segment.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # the reads below must not bring the rest back
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if from_byte:
            os.pread(file.fileno(), from_byte, 0)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system has no way to drop a file's pages")
@pytest.mark.parametrize("warm_bytes", [0, 4_096], ids=["all-cold", "headers-warm"])
def test_cold_data_comes_whole_and_in_order(fresh_broker: BrokerProcess, warm_bytes: int) -> None:
    payloads = [os.urandom(900_000) for _ in range(BATCHES)]
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "cold", partitions=PARTITIONS, configs={"segment.bytes": str(2 * MIB)})
        for partition in range(PARTITIONS):
            for payload in payloads:
                append(wire, topic, build([payload]), partition=partition)
    for partition in range(PARTITIONS):
        for segment in fresh_broker.log_folder("cold", partition).glob("*.log"):
            forget(segment, from_byte=warm_bytes)
    with Wire(fresh_broker.bootstrap_servers) as wire, Wire(fresh_broker.bootstrap_servers) as other:
        request = fetch_request(
            {topic: [fetch_partition(partition=p, bytes_max=2 * MIB) for p in range(PARTITIONS)]}, version=12
        )
        wire.send(request, 12)  # answered in order, although the first has to wait for the disk
        wire.send(request, 12)
        for _ in range(2):
            _, answer = wire.receive()
            for data in answer.responses[0].partitions:
                assert data.error_code == 0
                batches = list(split(data.records))
                assert batches and all(batch.crc_is_right for batch in batches)
                assert batches[0].base_offset == 0
        for partition in range(PARTITIONS):
            kept = stored(other, topic, partition=partition)
            assert [batch.base_offset for batch in kept] == list(range(BATCHES))
            assert all(batch.crc_is_right for batch in kept)
