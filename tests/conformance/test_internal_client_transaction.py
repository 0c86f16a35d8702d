"""Transactions of the internal client: seen by others when they are committed, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.admin import Admin
from headpond.client.finished import BatchProducer
from headpond.client.group_admin import GroupOffset, Groups
from headpond.client.transaction import Transaction
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.record import Record
from spark.audit import values
from support.internal_client import run_with_client

TIMEOUT_MS = 60_000
PARTITIONS = 3


def finished(*texts: str) -> tuple[bytearray, int]:
    records = [Record(offset, 1_000, None, text.encode()) for offset, text in enumerate(texts)]
    return bytearray(build_batch(records, base_offset=0)), len(records)


async def begun(client: Client, topic: str) -> Transaction:
    """The topic's name is the transactional id, and the group."""
    transaction = Transaction(client, topic, timeout_ms=TIMEOUT_MS)
    await transaction.begin()
    return transaction


async def produce(client: Client, transaction: Transaction, topic: str, *texts: str) -> None:
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    await transaction.add(partitions)
    async with BatchProducer(client, transaction=transaction) as producer:
        for text in texts:
            await producer.send([(tp, *finished(f"{text}/{tp.partition}")) for tp in partitions])
        await producer.flush()


def scenario_with_topic(bootstrap: str, topic: str, scenario: Any) -> None:
    async def run(client: Client) -> None:
        await Admin(client).create_topic(topic, PARTITIONS, 1)
        await scenario(client)

    run_with_client(bootstrap, run)


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        for text, is_kept in (("kept", True), ("dropped", False), ("kept too", True)):
            transaction = await begun(client, topic_name)
            await produce(client, transaction, topic_name, text)
            await (transaction.commit() if is_kept else transaction.abort())

    scenario_with_topic(bootstrap, topic_name, scenario)
    assert values(bootstrap, topic_name) == [f"{text}/{n}" for text in ("kept too", "kept") for n in range(PARTITIONS)]


def test_who_begins_ends_what_was_left_open_and_fences_who_left_it(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        old = await begun(client, topic_name)
        await produce(client, old, topic_name, "left")
        new = await begun(client, topic_name)
        await produce(client, new, topic_name, "new")
        with pytest.raises(ClientError) as caught:
            await produce(client, old, topic_name, "late")
        assert caught.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
        with pytest.raises(ClientError) as caught:
            await old.commit()
        assert caught.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
        await new.commit()

    scenario_with_topic(bootstrap, topic_name, scenario)
    assert values(bootstrap, topic_name) == [f"new/{n}" for n in range(PARTITIONS)]


def test_offsets_are_the_groups_when_the_transaction_is_committed(bootstrap: str, topic_name: str) -> None:
    place = TopicPartition(topic_name, 0)

    async def scenario(client: Client) -> None:
        groups = Groups(client)
        for number, is_kept in ((1, True), (2, False)):
            transaction = await begun(client, topic_name)
            await produce(client, transaction, topic_name, f"{number}")
            await transaction.commit_offsets(topic_name, {place: GroupOffset(number, -1, f"note {number}")})
            before = (await groups.offsets(topic_name)).get(place)
            assert before is None or before.offset == 1
            await (transaction.commit() if is_kept else transaction.abort())
        found = await groups.offsets(topic_name, require_stable=True)
        assert found == {place: GroupOffset(1, -1, "note 1")}

    scenario_with_topic(bootstrap, topic_name, scenario)


def test_who_wants_stable_offsets_waits_for_the_transactions_end(bootstrap: str, topic_name: str) -> None:
    place = TopicPartition(topic_name, 0)

    async def scenario(client: Client) -> None:
        await Groups(client).commit(topic_name, {place: 1})
        transaction = await begun(client, topic_name)
        await transaction.commit_offsets(topic_name, {place: GroupOffset(2, -1, "")})
        with pytest.raises(ClientError) as caught:
            await Groups(client, timeout_s=0.3).offsets(topic_name, require_stable=True)
        assert caught.value.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        waiting: Coroutine[Any, Any, Any] = Groups(client).offsets(topic_name, require_stable=True)
        found, _ = await asyncio.gather(waiting, transaction.commit())
        assert found[place].offset == 2

    scenario_with_topic(bootstrap, topic_name, scenario)


def test_a_partition_that_does_not_exist_is_refused(bootstrap: str, topic_name: str) -> None:
    async def scenario(client: Client) -> None:
        transaction = await begun(client, topic_name)
        with pytest.raises(ClientError) as caught:
            await transaction.add([TopicPartition(topic_name, 0), TopicPartition(topic_name, 77)])
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    scenario_with_topic(bootstrap, topic_name, scenario)
