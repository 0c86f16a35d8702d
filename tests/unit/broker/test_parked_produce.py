"""Produces that wait for their flush: answered when it is there, told when it is not, forgotten when nobody listens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headpond.broker.handlers.produce.wire import ProducePrefix, Result
from headpond.broker.replicas.parked_produces import SWEEP_SECONDS, ParkedOne, ParkedProduce, ParkedProduces
from headpond.model import ErrorCode
from headpond.protocol.apis import response_decoder
from simulation.harness.clock import ManualClock


class Place:
    """Stands in for a slot, or for the connection of one: keeps what it was completed with."""

    def __init__(self) -> None:
        self.on_abandoned: Callable[[], None] | None = None
        self.parts: Sequence[bytes] | None = None

    def answer_parked(self, slot: ParkedOne, answer: bytes) -> None:
        self.complete([answer])

    def complete(self, parts: Sequence[bytes]) -> None:
        assert self.parts is None, "answered twice"
        self.parts = parts


class Waiters:
    """Stands in for a replica."""

    def __init__(self) -> None:
        self.produce_waiters: deque[tuple[int, Any, int]] = deque()


PREFIX = ProducePrefix(7, b"", -1, 1_000, b"\0\5topic")


def parked_one(parked: ParkedProduces, timeout_ms: int = 1_000) -> tuple[ParkedOne, Place]:
    place = Place()
    one = ParkedOne(place, b"the answer", PREFIX, 42, 3, parked)  # type: ignore[arg-type]
    parked.park(one, timeout_ms)
    return one, place


def code_of(place: Place) -> int:
    assert place.parts is not None
    (frame,) = place.parts
    message, _ = response_decoder(0, 7)(frame[8:], 0)
    (partition,) = message.responses[0].partition_responses
    assert (message.responses[0].name, partition.index) == ("topic", 3)
    return int(partition.error_code)


def test_the_answer_leaves_when_the_high_watermark_has_passed() -> None:
    parked = ParkedProduces(ManualClock())  # type: ignore[arg-type]
    one, place = parked_one(parked)
    assert len(parked) == 1
    one.reached(0)
    assert place.parts == [b"the answer"]
    assert len(parked) == 0


@pytest.mark.parametrize("timeout_ms", [50, 1_000, 30_000])
def test_a_produce_that_waits_too_long_is_told_so_and_its_late_flush_changes_nothing(timeout_ms: int) -> None:
    clock = ManualClock()
    parked = ParkedProduces(clock)  # type: ignore[arg-type]
    one, place = parked_one(parked, timeout_ms)
    clock.advance(timeout_ms / 1_000 - 0.001)
    assert place.parts is None
    clock.advance(3 * SWEEP_SECONDS)
    assert code_of(place) == ErrorCode.REQUEST_TIMED_OUT
    one.reached(0)
    assert len(parked) == 0


def test_a_partition_that_goes_away_is_told_as_lost() -> None:
    one, place = parked_one(ParkedProduces(ManualClock()))  # type: ignore[arg-type]
    one.lost(0)
    assert code_of(place) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_nothing_stays_parked_for_a_client_that_has_left() -> None:
    parked = ParkedProduces(ManualClock())  # type: ignore[arg-type]
    one, place = parked_one(parked)
    one.abandon()
    assert len(parked) == 0
    one.reached(0)
    assert place.parts is None


def test_the_sweep_ends_when_nothing_is_parked() -> None:
    clock = ManualClock()
    parked = ParkedProduces(clock)  # type: ignore[arg-type]
    one, _ = parked_one(parked)
    one.reached(0)
    clock.advance(3 * SWEEP_SECONDS)
    assert clock.next_timer_s() is None
    _, place = parked_one(parked, 0)
    clock.advance(3 * SWEEP_SECONDS)
    assert code_of(place) == ErrorCode.REQUEST_TIMED_OUT, "it starts again with the next one"


def test_a_request_for_several_partitions_is_answered_once_with_what_became_of_each() -> None:
    clock = ManualClock()
    parked = ParkedProduces(clock)  # type: ignore[arg-type]
    place = Place()
    replicas = [Waiters(), Waiters(), Waiters()]
    results = [[Result(0, 0, 10), Result(1, 3)], [Result(0, 0, 20), Result(1, 0, 30)]]
    answered: list[list[list[Result]]] = []

    def respond(final: list[list[Result]]) -> bytes:
        answered.append(final)
        return b"done"

    waits = [(replicas[0], 11, 0, 0), (replicas[1], 21, 1, 0), (replicas[2], 31, 1, 1)]
    request = ParkedProduce(place, respond, results, waits, parked)  # type: ignore[arg-type]
    parked.park(request, 1_000)
    assert [replica.produce_waiters[0][0] for replica in replicas] == [11, 21, 31]
    request.reached(0)
    request.lost(1)
    assert place.parts is None
    clock.advance(1.5)
    assert place.parts == (b"done",)
    (final,) = answered
    assert final[0] == [Result(0, 0, 10), Result(1, 3)]
    assert [row.code for row in final[1]] == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
