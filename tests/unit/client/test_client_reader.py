"""The internal client's reader: every record once, in order, none that it should not see."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from headpond.client import Client, ClientError
from headpond.client.consumer import EARLIEST, LATEST, Reader
from headpond.client.fetched import cut_batches
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.control import build_end_txn_marker
from headpond.protocol.records.header import TRANSACTIONAL_BIT
from headpond.protocol.records.record import Record
from headpond.protocol.schema.fetch import FetchResponse
from support.other_side import stamp
from unit.client.memory_cluster import DROP_AFTER, DROP_BEFORE, SWALLOW, Fault, Log, MemoryCluster

TP = TopicPartition("t", 0)


def fill(log: Log, count: int, *, per_batch: int = 2, codec: int = 0) -> None:
    """Records whose values are their offsets."""
    for start in range(log.end_offset, log.end_offset + count, per_batch):
        rows = [Record(index, 1_000 + index, None, b"%d" % (start + index)) for index in range(per_batch)]
        log.append(build_batch(rows, codec=codec))


async def offsets_read(client: Client, starts: dict[TopicPartition, int], **options: Any) -> list[int]:
    found = []
    async with Reader(client, starts, **options) as reader:
        async for batch in reader:
            for record in batch.records:
                assert record.value == b"%d" % record.offset
                found.append(record.offset)
    return found


@pytest.mark.parametrize("codec", range(5))
def test_reading_stops_at_the_end_that_the_partition_had(codec: int) -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 20, codec=codec)
    assert cluster.run(lambda client: offsets_read(client, {TP: EARLIEST})) == list(range(20))
    assert cluster.run(lambda client: offsets_read(client, {TP: LATEST})) == []


def test_reading_may_begin_and_end_inside_a_batch() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 20, per_batch=4)
    found = cluster.run(lambda client: offsets_read(client, {TP: 3}, end_offsets={TP: 9}, follow=True))
    assert found == [3, 4, 5, 6, 7, 8]


def test_a_follower_sees_what_is_written_later_and_knows_its_position() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 2)

    async def scenario(client: Client) -> None:
        async with Reader(client, {TP: LATEST}, follow=True) as reader:
            waiting = asyncio.ensure_future(anext(reader))
            await client.clock.sleep(5)
            assert not waiting.done()
            assert reader.position(TP) == 2
            fill(log, 4)
            assert [record.offset for record in (await waiting).records] == [2, 3]
            assert reader.position(TP) == 4
            assert [record.offset for record in (await anext(reader)).records] == [4, 5]

    cluster.run(scenario)


def test_partitions_of_all_leaders_are_read_side_by_side_and_none_starves() -> None:
    cluster = MemoryCluster(nodes=3)
    logs = cluster.add_topic("t", 6)
    for log in logs:
        fill(log, 40)
    starts = {TopicPartition("t", index): 0 for index in range(6)}
    # An answer holds one batch of one partition: only turns bring the second partition of a leader forward.
    found = cluster.run(lambda client: offsets_read(client, starts, max_bytes=1, partition_max_bytes=80))
    assert sorted(found) == sorted([*range(40)] * 6)
    assert {node for node, message, _ in cluster.requests if type(message).__name__ == "FetchRequest"} == {1, 2, 3}
    first = [message.topics[0].partitions[0].partition for message in cluster.asked("Fetch")[:12]]
    assert len(set(first)) == 6, "each partition is soon the first of its leader's"


def test_no_fetch_is_sent_while_enough_is_waiting_to_be_taken() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 200)

    async def scenario(client: Client) -> None:
        async with Reader(client, {TP: 0}, partition_max_bytes=500, buffer_bytes_max=1_000) as reader:
            await anext(reader)
            await client.clock.sleep(10)
            before = len(cluster.asked("Fetch"))
            assert before <= 4
            await client.clock.sleep(10)
            assert len(cluster.asked("Fetch")) == before
            assert sum([len(batch.records) async for batch in reader]) == 198

    cluster.run(scenario)


def test_an_offset_that_is_not_in_the_log_is_an_error_that_says_where_the_log_begins() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 20)
    log.start_offset = 10

    async def scenario(client: Client) -> None:
        with pytest.raises(ClientError, match="t-0: offset 5 is not in the log, which begins at 10") as caught:
            await offsets_read(client, {TP: 5})
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    cluster.run(scenario)
    assert cluster.run(lambda c: offsets_read(c, {TP: 5}, offset_reset="earliest")) == list(range(10, 20))
    assert cluster.run(lambda c: offsets_read(c, {TP: 5}, offset_reset="latest")) == []


def test_a_topic_that_does_not_exist_is_an_error_within_seconds() -> None:
    cluster = MemoryCluster()

    async def scenario(client: Client) -> float:
        with pytest.raises(ClientError, match="there is no topic t"):
            await offsets_read(client, {TP: 0}, follow=True)
        return client.clock.monotonic()

    assert cluster.run(scenario) < 4


def test_a_topic_made_anew_under_the_same_name_is_an_error() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 2)

    async def scenario(client: Client) -> None:
        async with Reader(client, {TP: 0}, follow=True) as reader:
            assert (await anext(reader)).next_offset == 2
            (again,) = cluster.add_topic("t")
            fill(again, 4)
            with pytest.raises(ClientError, match="deleted and made anew"):
                await anext(reader)

    cluster.run(scenario)


def test_the_leader_is_followed_when_it_moves_and_when_its_broker_dies() -> None:
    cluster = MemoryCluster(nodes=3)
    (log,) = cluster.add_topic("t")
    fill(log, 2)

    async def scenario(client: Client) -> list[int]:
        found = []
        async with Reader(client, {TP: 0}, follow=True) as reader:
            async for batch in reader:
                found += [record.offset for record in batch.records]
                if len(found) == 2:
                    cluster.move_leader(log, 2)
                    fill(log, 2)
                elif len(found) == 4:
                    cluster.stop(2)
                    cluster.move_leader(log, 3)
                    fill(log, 2)
                elif len(found) == 6:
                    break
        return found

    assert cluster.run(scenario) == list(range(6))


def test_a_broker_that_stays_away_is_an_error_after_the_time_out_and_what_was_read_comes_first() -> None:
    cluster = MemoryCluster()
    (log,) = cluster.add_topic("t")
    fill(log, 4)

    async def scenario(client: Client) -> None:
        async with Reader(client, {TP: 0}, follow=True) as reader:
            await anext(reader)
            cluster.stop(1)
            await client.clock.sleep(20)
            assert [record.offset for record in (await anext(reader)).records] == [2, 3]
            with pytest.raises(ClientError, match="could not reach a broker at b:1"):
                await anext(reader)

    cluster.run(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_a_storm_of_faults_neither_loses_nor_repeats_nor_reorders(seed: int) -> None:
    chance = random.Random(seed)
    cluster = MemoryCluster(nodes=3)
    logs = cluster.add_topic("t", 3)
    for log in logs:
        fill(log, 100)

    def faults(node: int, request: Any) -> Fault:
        if chance.random() < 0.1:
            cluster.move_leader(chance.choice(logs), chance.choice(cluster.nodes))
        if cluster.clock.monotonic() > 60 or chance.random() > 0.3:
            return None
        return chance.choice([DROP_BEFORE, DROP_AFTER, SWALLOW])

    cluster.faults = faults

    async def scenario(client: Client) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        starts = {TopicPartition("t", index): 0 for index in range(3)}
        async with Reader(client, starts, partition_max_bytes=300, timeout_s=1_000) as reader:
            async for batch in reader:
                found[batch.tp.partition] += [record.offset for record in batch.records]
        return found

    assert cluster.run(scenario) == {index: list(range(100)) for index in range(3)}


# ---- what is in an answer


def answer(records: bytes, **fields: Any) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(records=records, high_watermark=100, **fields)


def batch_at(offset: int, producer_id: int = -1, *, is_transactional: bool = False) -> bytes:
    return bytes(
        build_batch(
            [Record(offset, 0, None, b"%d" % offset)],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            attributes=TRANSACTIONAL_BIT if is_transactional else 0,
        )
    )


def marker_at(offset: int, producer_id: int, *, is_abort: bool) -> bytes:

    batch = build_end_txn_marker(
        producer_id=producer_id, producer_epoch=0, is_abort=is_abort, coordinator_epoch=0, timestamp=0
    )
    stamp(batch, 0, offset, 0)
    return bytes(batch)


def visible(records: bytes, aborted: list[tuple[int, int]], *, is_read_committed: bool = True) -> list[int]:
    rows = [FetchResponse.AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in aborted]
    data = answer(records, aborted_transactions=rows)
    cut = cut_batches(TP, data, from_offset=0, is_read_committed=is_read_committed)
    return [record.offset for batch in cut.batches for record in batch.records]


def test_aborted_transactions_are_hidden_up_to_their_marker_and_markers_always() -> None:
    records = (
        batch_at(0, 7, is_transactional=True)
        + batch_at(1, 8, is_transactional=True)
        + batch_at(2)
        + marker_at(3, 7, is_abort=True)
        + batch_at(4, 7, is_transactional=True)
        + marker_at(5, 8, is_abort=False)
        + marker_at(6, 7, is_abort=False)
        + batch_at(7, 8, is_transactional=True)
        + marker_at(8, 8, is_abort=True)
    )
    aborted = [(8, 7), (7, 0)]
    assert visible(records, aborted) == [1, 2, 4]
    assert visible(records, aborted, is_read_committed=False) == [0, 1, 2, 4, 7]


def test_a_producers_plain_batches_are_seen_beside_its_aborted_transaction() -> None:
    records = batch_at(0, 7, is_transactional=True) + batch_at(1, 7) + marker_at(2, 7, is_abort=True)
    assert visible(records, [(7, 0)]) == [1]


def test_hidden_batches_move_the_position_on() -> None:
    cut = cut_batches(TP, answer(marker_at(5, 7, is_abort=True)), from_offset=5, is_read_committed=True)
    assert (cut.batches, cut.next_offset) == ([], 6)


def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    whole, next_one = batch_at(0), batch_at(1)
    for size in range(1, len(next_one)):
        cut = cut_batches(TP, answer(whole + next_one[:size]), from_offset=0)
        assert (len(cut.batches), cut.next_offset) == (1, 1)


@pytest.mark.parametrize("position", [17, 21, 40, -1])
def test_a_flipped_bit_is_found_and_named(position: int) -> None:
    damaged = bytearray(batch_at(3))
    damaged[position] ^= 1
    with pytest.raises(ClientError, match="t-0: the batch at offset 3 is damaged: its checksum is wrong"):
        cut_batches(TP, answer(bytes(damaged)), from_offset=3)


def test_lengths_and_formats_that_make_no_sense_are_refused() -> None:
    negative = bytearray(batch_at(0))
    negative[8:12] = b"\xff\xff\xff\xff"
    with pytest.raises(ClientError, match="claims a length of -1 bytes"):
        cut_batches(TP, answer(bytes(negative)), from_offset=0)
    old = bytearray(batch_at(0))
    old[16] = 1
    with pytest.raises(ClientError, match=r"before Kafka 0\.11"):
        cut_batches(TP, answer(bytes(old)), from_offset=0)
