"""Transactional batches: the coordinator is asked once per transaction and partition, before anything is appended, and
what it says is answered in the codes that the client's version understands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headpond.broker.security.authorizer import ResourceType
from headpond.config.transactions import TransactionSettings
from headpond.coordination.home import Producer
from headpond.model import ErrorCode
from unit.broker.transaction_rig import PARTITIONS, World, data


def run(test: Callable[[World], Awaitable[None]]) -> None:
    async def start() -> None:
        world = await World().start()
        await test(world)
        await world.rig.tasks.cancel_all()

    asyncio.run(start())


@pytest.mark.parametrize(("version", "what"), [(3, "verify"), (11, "verify"), (12, "add")])
def test_the_coordinator_is_asked_before_the_first_batch_only(version: int, what: str) -> None:
    async def test(world: World) -> None:
        for sequence in range(3):
            (row,) = await world.send(data(sequence), version=version)
            assert (row.error_code, row.base_offset) == (0, sequence)
        assert world.coordinator.questions == [(what, "shop", Producer(5, 0), PARTITIONS[:1])]
        assert world.replica().partition.last_stable_offset == 0 < world.replica().partition.high_watermark

    run(test)


def test_the_next_transaction_is_asked_about_again() -> None:
    async def test(world: World) -> None:
        await world.send(data(), version=11)
        assert await world.end(epoch=0, is_commit=True, version=1) == 0
        assert (await world.send(data(1), version=11))[0].error_code == 0
        assert len(world.coordinator.questions) == 2

    run(test)


def test_several_partitions_are_asked_about_at_once() -> None:
    async def test(world: World) -> None:
        rows = await world.send(data(), data())
        assert [row.error_code for row in rows] == [0, 0]
        assert [question[3] for question in world.coordinator.questions] == [PARTITIONS[:2]]

    run(test)


@pytest.mark.parametrize(
    ("said", "version", "answered"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_what_the_coordinator_refuses_is_not_appended(said: ErrorCode, version: int, answered: ErrorCode) -> None:
    async def test(world: World) -> None:
        world.coordinator.answers = [said]
        (row,) = await world.send(data(), version=version)
        assert (row.error_code, row.base_offset, row.log_start_offset) == (answered, -1, -1)
        if answered is ErrorCode.NOT_ENOUGH_REPLICAS:
            assert row.error_message.endswith(f"Underlying error: {said.name}")
        assert world.replica().partition.log.log_end_offset == 0
        assert (await world.send(data(), version=version))[0].error_code == 0

    run(test)


def test_a_transaction_whose_last_one_is_still_ending_waits_a_moment() -> None:
    async def test(world: World) -> None:
        world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
        sent = asyncio.ensure_future(world.send(data()))
        await world.rig.clock.run_until(sent)
        assert sent.result()[0].error_code == 0 and len(world.coordinator.questions) == 3

    run(test)


def test_the_marker_of_the_last_transaction_does_not_end_the_next_one() -> None:
    """In the second version of the protocol a client goes on while the markers are still on their way; they have the
    epoch of what it writes next."""

    async def test(world: World) -> None:
        assert (await world.send(data(epoch=0)))[0].error_code == 0
        world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS]
        world.coordinator.was_asked.clear()
        sent = asyncio.ensure_future(world.send(data(epoch=1)))
        await world.coordinator.was_asked.wait()
        assert await world.end(epoch=1, is_commit=True) == 0
        await world.rig.clock.run_until(sent)
        assert (sent.result()[0].error_code, sent.result()[0].base_offset) == (0, 2)
        assert world.replica().partition.last_stable_offset == 2

    run(test)


def test_the_wait_for_the_last_transaction_is_a_short_one() -> None:
    async def test(world: World) -> None:
        world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 100
        sent = asyncio.ensure_future(world.send(data()))
        await world.rig.clock.run_until(sent)
        assert sent.result()[0].error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert len(world.coordinator.questions) == 6  # 20 ms apart, for 100 ms

    run(test)


def test_how_long_and_how_often_the_coordinator_is_asked_again_is_a_setting() -> None:
    async def test(world: World) -> None:
        world.settings = TransactionSettings(add_retry_ms=300, add_retries_for_ms=1_000)
        world.coordinator.answers = [ErrorCode.CONCURRENT_TRANSACTIONS] * 100
        began_s = world.rig.clock.monotonic()
        sent = asyncio.ensure_future(world.send(data()))
        await world.rig.clock.run_until(sent)
        assert (len(world.coordinator.questions), round(world.rig.clock.monotonic() - began_s, 3)) == (5, 1.2)

    run(test)


def test_a_word_about_a_transaction_that_ended_meanwhile_counts_for_nothing() -> None:
    async def test(world: World) -> None:
        gate = world.coordinator.gate = asyncio.Event()
        sent = asyncio.ensure_future(world.send(data(), version=11))
        await world.coordinator.was_asked.wait()
        assert await world.end(epoch=0, is_commit=False, version=1) == 0  # it timed out
        gate.set()
        (row,) = await sent
        assert (row.error_code, row.base_offset) == (ErrorCode.INVALID_TXN_STATE, -1)
        partition = world.replica().partition
        assert partition.last_stable_offset == partition.high_watermark == partition.log.log_end_offset == 1
        assert (await world.send(data(), version=11))[0].error_code == 0  # a retry asks again

    run(test)


def test_a_batch_that_failed_comes_before_those_behind_it() -> None:
    async def test(world: World) -> None:
        world.coordinator.answers = [ErrorCode.NOT_COORDINATOR]
        assert (await world.send(data(0), version=11))[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await world.send(data(1), version=11))[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [(await world.send(data(n), version=11))[0].error_code for n in (0, 1)] == [0, 0]

    run(test)


def test_an_unknown_producer_starts_at_sequence_0_in_the_second_version_of_the_protocol() -> None:
    async def test(world: World) -> None:
        (row,) = await world.send(data(3), version=12)
        assert (row.error_code, row.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
        assert (await world.send(b"", data(3), version=11))[0].error_code == 0  # as it always was

    run(test)


def test_an_old_epoch_is_refused_by_the_log_itself() -> None:
    async def test(world: World) -> None:
        await world.send(data(epoch=0))
        await world.end(epoch=1, is_commit=True)
        (row,) = await world.send(data(1, epoch=0))
        assert row.error_code == ErrorCode.INVALID_PRODUCER_EPOCH

    run(test)


def test_a_batch_outside_the_open_transaction_is_refused() -> None:
    async def test(world: World) -> None:
        await world.send(data())
        (row,) = await world.send(data(1, attributes=0))
        assert (row.error_code, row.log_start_offset) == (ErrorCode.INVALID_TXN_STATE, 0)

    run(test)


def test_a_duplicate_is_answered_with_the_first_ones_offset() -> None:
    async def test(world: World) -> None:
        assert [(await world.send(data()))[0].base_offset for _ in range(2)] == [0, 0]
        assert world.replica().partition.log.log_end_offset == 1

    run(test)


@pytest.mark.parametrize("version", [3, 11, 12])
def test_a_request_without_a_transactional_id_is_refused_as_a_whole(version: int) -> None:
    async def test(world: World) -> None:
        plain = data(producer_id=-1, epoch=-1, sequence=-1, attributes=0)
        rows = await world.send(data(), plain, version=version, transactional_id=None)
        assert {row.error_code for row in rows} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        assert not world.coordinator.questions and world.replica(1).partition.log.log_end_offset == 0

    run(test)


def test_two_producers_in_one_request_are_refused_as_a_whole() -> None:
    async def test(world: World) -> None:
        rows = await world.send(data(producer_id=5), data(producer_id=6))
        assert [row.error_code for row in rows] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert world.replica().partition.log.log_end_offset == 0

    run(test)


def test_who_may_not_use_the_transactional_id_writes_nothing() -> None:
    class Nobody:
        def allows(self, principal: object, host: str, operation: object, kind: ResourceType, name: str) -> bool:
            return kind is not ResourceType.TRANSACTIONAL_ID

    async def test() -> None:
        world = await World().start(authorizer=Nobody())  # type: ignore[arg-type]
        (row,) = await world.send(data())
        assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await world.send(data(attributes=0)))[0].error_code == 0
        await world.rig.tasks.cancel_all()

    asyncio.run(test())


def test_an_open_transaction_is_no_way_in_for_who_may_not_use_its_id() -> None:
    class OnlyFor:
        name = "shop"

        def allows(self, principal: object, host: str, operation: object, kind: ResourceType, name: str) -> bool:
            return kind is not ResourceType.TRANSACTIONAL_ID or name == self.name

    async def test() -> None:
        world = await World().start(authorizer=OnlyFor())  # type: ignore[arg-type]
        assert (await world.send(data()))[0].error_code == 0
        (row,) = await world.send(data(1), transactional_id="another")
        assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        (row,) = await world.send(data(1), transactional_id=None)
        assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await world.send(data(1)))[0].base_offset == 1
        await world.rig.tasks.cancel_all()

    asyncio.run(test())


def test_the_batches_that_follow_the_first_one_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: World) -> None:
        await world.send(data())
        monkeypatch.setattr(world.handler, "_append", None)
        assert [(await world.send(data(sequence)))[0].base_offset for sequence in (1, 2)] == [1, 2]

    run(test)


def test_batches_without_a_transaction_ask_nobody() -> None:
    async def test(world: World) -> None:
        await world.send(data(attributes=0), transactional_id=None)
        await world.send(data(1, attributes=0), transactional_id="shop")
        assert not world.coordinator.questions
        assert world.replica().partition.last_stable_offset == 2

    run(test)


def test_verification_can_be_turned_off_for_the_first_version_of_the_protocol() -> None:
    async def test(world: World) -> None:
        world.settings = TransactionSettings(verifies_partitions=False)
        assert (await world.send(data(), version=11))[0].error_code == 0
        assert not world.coordinator.questions
        assert (await world.send(b"", data(), version=12))[0].error_code == 0
        assert len(world.coordinator.questions) == 1

    run(test)
