"""What ``headpond bench`` does: a topic for the time of the test, the load, the summary."""

from __future__ import annotations

import argparse
import asyncio
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headpond.cli.bench.load import Load, Result, check_load
from headpond.cli.common.connection import find_topic, sentence
from headpond.cli.common.failures import OK, CommandFailed
from headpond.cli.common.output import Column, note, print_json, print_line, print_table
from headpond.cli.common.progress import Progress
from headpond.client import Client, ClientError, TopicView
from headpond.client.admin import EARLIEST, Admin, ConfigResource
from headpond.client.consumer import Reader
from headpond.model import TopicPartition

READ_BYTES_MAX = 64 * 1024 * 1024
PARTITION_READ_BYTES_MAX = 4 * 1024 * 1024
HERE_ALREADY_S = 0.00005
"""A batch that comes sooner was part of an answer that had brought others: nobody waited for it."""


async def bench_produce(client: Client, options: argparse.Namespace) -> int:
    check_load(options)
    async with _topic(client, options) as topic:
        result = await _load(client, topic, options, "producing")
    _show("produce", result, topic, options)
    return OK


async def bench_consume(client: Client, options: argparse.Namespace) -> int:
    check_load(options)
    options.rate = None
    async with _topic(client, options) as topic:
        if options.topic is None:
            await _load(client, topic, options, "filling")
        result = await _read(client, topic, options)
        if options.topic is None:
            result = result._replace(size_bytes=result.records * options.record_size)
        if not result.records:
            raise CommandFailed(f"topic {topic.name} is empty: leave --topic out and a topic is made and filled")
    _show("consume", result, topic, options)
    return OK


@asynccontextmanager
async def _topic(client: Client, options: argparse.Namespace) -> AsyncIterator[TopicView]:
    """The topic to use. One that we made goes with us, whatever happened."""
    if options.topic is not None:
        yield await find_topic(client, options.topic)
        return
    name = f"headpond-bench-{client.random.random_bytes(4).hex()}"
    admin = Admin(client)
    may_exist = True
    try:
        try:
            await admin.create_topic(name, options.partitions)
        except ClientError as error:
            may_exist = error.is_outcome_unknown
            raise
        yield await find_topic(client, name)
    finally:
        if may_exist:
            await _delete(admin, name)


async def _delete(admin: Admin, name: str) -> None:
    try:
        error = (await admin.delete_topics([name])).get(name)
    except ClientError as failure:
        error = failure
    if error is not None:
        note(f"headpond: {name} could not be deleted: {sentence(error)}; `headpond topics delete {name}` does it")


async def _load(client: Client, topic: TopicView, options: argparse.Namespace, what: str) -> Result:
    is_keyed = await _is_compacted(client, topic)
    with Progress(what, options.records, clock=client.clock) as bar:
        load = Load(client, topic, options, bar, is_keyed=is_keyed)
        try:
            return await load.run()
        except asyncio.CancelledError:
            so_far = load.result()
            note(f"headpond: stopped after {so_far.records:,} records, {so_far.mb_per_s:,.1f} MB/s")
            raise


async def _is_compacted(client: Client, topic: TopicView) -> bool:
    """Then it takes no records without a key."""
    try:
        configs = await Admin(client).describe_configs(ConfigResource("topic", topic.name), ["cleanup.policy"])
    except ClientError:  # who may write to a topic need not be allowed to look at its settings
        return False
    return any("compact" in (one.value or "") for one in configs)


async def _read(client: Client, topic: TopicView, options: argparse.Namespace) -> Result:
    """Batches are checked and counted, not taken apart: that would measure Python."""
    clock = client.clock
    starts = {TopicPartition(topic.name, partition.index): EARLIEST for partition in topic.partitions}
    records = size_bytes = 0
    waits_s = array("d")
    reader = Reader(client, starts, max_bytes=READ_BYTES_MAX, partition_max_bytes=PARTITION_READ_BYTES_MAX)
    async with reader:
        with Progress("consuming", options.records, clock=clock) as bar:
            started_s = before_s = now_s = clock.monotonic()
            async for batch in reader:
                now_s = clock.monotonic()
                if now_s - before_s >= HERE_ALREADY_S:
                    waits_s.append(now_s - before_s)
                before_s = now_s
                count = min(batch.header.count, options.records - records)  # of the last one only what was asked for
                records += count
                size_bytes += len(batch.data) * count // batch.header.count
                bar.advance(count, f"{size_bytes / 1e6 / (now_s - started_s):,.1f} MB/s")
                if records >= options.records:
                    break
    return Result(records, size_bytes, now_s - started_s, waits_s)


def _show(action: str, result: Result, topic: TopicView, options: argparse.Namespace) -> None:
    latency_ms = result.latency_ms()
    facts = {
        "records": result.records,
        "bytes": result.size_bytes,
        "seconds": round(result.seconds, 3),
        "records_per_s": round(result.records_per_s, 1),
        "mb_per_s": round(result.mb_per_s, 2),
    }
    load = {
        "partitions": len(topic.partitions),
        "record_size": options.record_size,
        "batch_size": options.batch_size,
        "in_flight": options.in_flight,
        "acks": options.acks,
        "compression": options.compression,
    }
    if options.json:
        print_json({"action": action, **facts, "latency_ms": latency_ms, "retries": result.retries, "load": load})
        return
    print_line(
        f"{action}: {result.records:,} records, {result.size_bytes / 1e6:,.1f} MB in {result.seconds:.2f} s: "
        f"{result.mb_per_s:,.1f} MB/s, {result.records_per_s:,.0f} records/s"
    )
    print_table([Column(f"{name} ms", True) for name in latency_ms], [[f"{ms:.2f}" for ms in latency_ms.values()]])
