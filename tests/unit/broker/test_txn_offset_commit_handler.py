"""TxnOffsetCommit between two coordinators: what is true of the transaction when the offsets are written counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from headpond.broker.handlers.groups import find_coordinator
from headpond.broker.handlers.transactions import add_offsets_to_txn, list_transactions, txn_offset_commit
from headpond.coordination.home import KeyValue, Producer
from headpond.model import ErrorCode
from headpond.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.list_transactions import ListTransactionsRequest
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest
from unit.broker.test_transaction_handlers import ID, Coordinated, coordinated, settle
from unit.coordination.test_coordinator_runtime import Home

GROUP = "readers"
Row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic


class SlowHome(Home):
    """The log of the offsets has no room at first; something happens while that is made."""

    def __init__(self, broker: Coordinated) -> None:
        super().__init__()
        self._broker = broker
        self.ends: Producer | None = None
        self.written: list[Producer | None] = []

    async def make_room(self, partition: int) -> None:
        if self.ends is not None:
            assert (await self._broker.end(self.ends, commit=False, version=4))[0] is ErrorCode.NONE
            await settle()  # the markers, too
        await super().make_room(partition)

    def append(self, partition: int, records: Sequence[KeyValue], producer: Producer | None) -> int:
        self.written.append(producer)
        return super().append(partition, records, producer)


async def begin(broker: Coordinated) -> tuple[SlowHome, Producer]:
    """A transaction with the offsets' partition in it, and the coordinator of the group."""
    home = SlowHome(broker)
    broker.broker.groups.runtime._home = home
    await broker.ask(find_coordinator, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
    for partition in range(50):
        broker.broker.groups.runtime.lead(partition, 0)
    await settle()
    _, producer = await broker.init()
    request = AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id=GROUP
    )
    assert (await broker.ask(add_offsets_to_txn, 4, request)).error_code == 0
    return home, producer


async def commit(broker: Coordinated, producer: Producer, version: int) -> ErrorCode:
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id=GROUP,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[Topic(name="payments", partitions=[Row(partition_index=0, committed_offset=7)])],
    )
    answer = await broker.ask(txn_offset_commit, version, request)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("version", range(6))
def test_offsets_are_written_on_behalf_of_their_transaction(version: int) -> None:
    async def scenario(broker: Coordinated) -> None:
        home, producer = await begin(broker)
        home.rooms_missing = 1
        assert await commit(broker, producer, version) is ErrorCode.NONE
        assert home.written == [producer]

    coordinated(scenario)


@pytest.mark.parametrize(
    ("version", "expected"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_offsets_of_a_transaction_that_ended_while_room_was_made_are_refused(version: int, expected: ErrorCode) -> None:
    """Nobody would ever end them: they would be pending for ever."""

    async def scenario(broker: Coordinated) -> None:
        home, producer = await begin(broker)
        home.rooms_missing, home.ends = 1, producer
        assert await commit(broker, producer, version) is expected
        assert home.written == []

    coordinated(scenario)


@pytest.mark.parametrize("version", [3, 5])
def test_clients_are_believed_where_the_setting_says_so_until_they_leave_it_to_us(version: int) -> None:
    async def scenario(broker: Coordinated) -> None:
        home, producer = await begin(broker)
        assert (await broker.end(producer, commit=True, version=4))[0] is ErrorCode.NONE
        await settle()
        settings = broker.transactions.settings()
        broker.transactions.settings = lambda: msgspec.structs.replace(settings, verifies_partitions=False)  # type: ignore[method-assign]
        assert await commit(broker, producer, version) is ErrorCode.NONE
        assert home.written == [producer]
        listed = await broker.ask(list_transactions, 1, ListTransactionsRequest())
        states = {each.transactional_id: each.transaction_state for each in listed.transaction_states}
        assert states == {ID: "Ongoing" if version == 5 else "CompleteCommit"}

    coordinated(scenario)
