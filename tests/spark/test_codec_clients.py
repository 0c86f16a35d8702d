"""What other clients wrote through a broker, fetched by the internal client, comes out as columns."""

from __future__ import annotations

import asyncio

import pytest

from headpond.client import Client
from headpond.client.admin import EARLIEST, Admin
from headpond.client.consumer import Reader
from headpond.model import TopicPartition
from spark.codec_support import codec
from support.clients.base import Sent
from support.clients.confluent import ConfluentClient
from support.internal_client import run_with_client

WANTED = ("key", "value", "topic", "offset", "timestamp", "headers")


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_librdkafka_wrote_in_every_codec_is_decoded(bootstrap: str, topic_name: str, compression: str) -> None:
    sent = [Sent(b"v%d" % n * 30, b"k%d" % n, [("h", b"%d" % n)], 1_600_000_000_000 + n) for n in range(300)]

    async def scenario(client: Client):
        await Admin(client).create_topic(topic_name, 1, 1)
        await asyncio.to_thread(ConfluentClient(bootstrap).produce, topic_name, sent, codec=compression)
        async with Reader(client, {TopicPartition(topic_name, 0): EARLIEST}) as reader:
            return [batch async for batch in reader]

    fetched = run_with_client(bootstrap, scenario)
    rows = [row for batch in codec.decode_batches(fetched, columns=WANTED) for row in batch.to_pylist()]
    assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
        (one.key, one.value, n) for n, one in enumerate(sent)
    ]
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == [one.timestamp_ms for one in sent]
    assert [row["headers"] for row in rows] == [[{"key": "h", "value": b"%d" % n}] for n in range(300)]
    assert {row["topic"] for row in rows} == {topic_name}
