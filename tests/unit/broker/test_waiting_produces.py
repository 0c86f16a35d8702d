"""Produces that wait for their flush: answered when it is there, told when it is not, forgotten when nobody listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from headpond.broker.handlers.produce.waiting import Wait, Waiting, WaitingAnswer, WaitingAnswers
from headpond.broker.handlers.produce.wire import ProducePrefix, Result
from headpond.model import ErrorCode, NotLeader
from headpond.model.waits import OffsetWaits, Waiter
from headpond.protocol.apis import response_decoder
from headpond.replication.deadlines import SWEEP_SECONDS, Deadlines
from headpond.telemetry.requests import RequestMeters
from simulation.harness.clock import ManualClock


class Place:
    """Stands in for a slot, or for the connection of one: keeps what it was completed with."""

    def __init__(self) -> None:
        self.on_abandoned: Callable[[], None] | None = None
        self.parts: Sequence[bytes] | None = None

    def answer_parked(self, slot: WaitingAnswer, answer: bytes) -> None:
        self.complete([answer])

    def complete(self, parts: Sequence[bytes]) -> None:
        assert self.parts is None, "answered twice"
        self.parts = parts


class Uncommitted:
    """Stands in for a partition: who waits there."""

    def __init__(self) -> None:
        self.waits = OffsetWaits()

    def when_committed(self, end_offset: int, waiter: Waiter) -> None:
        self.waits.add(end_offset, waiter)


LOST = NotLeader()
PREFIX = ProducePrefix(7, b"", -1, 1_000, b"\0\5topic")


def waiting_on(clock: ManualClock | None = None) -> Waiting:
    return Waiting(Deadlines(clock or ManualClock()), RequestMeters().of("Produce"))


def waiting_one(waiting: Waiting, timeout_ms: int = 1_000) -> tuple[WaitingAnswer, Place]:
    place = Place()
    one = WaitingAnswer(place, b"the answer", PREFIX, 42, 3, waiting)  # type: ignore[arg-type]
    waiting.deadlines.begin(one, timeout_ms)
    return one, place


def code_of(place: Place) -> int:
    assert place.parts is not None
    (frame,) = place.parts
    message, _ = response_decoder(0, 7)(frame[8:], 0)
    (partition,) = message.responses[0].partition_responses
    assert (message.responses[0].name, partition.index) == ("topic", 3)
    return int(partition.error_code)


def test_the_answer_leaves_when_the_high_watermark_has_passed() -> None:
    waiting = waiting_on()
    one, place = waiting_one(waiting)
    assert waiting.count == 1
    one.reached()
    assert place.parts == [b"the answer"]
    assert waiting.count == 0


@pytest.mark.parametrize("timeout_ms", [50, 1_000, 30_000])
def test_a_produce_that_waits_too_long_is_told_so_and_its_late_flush_changes_nothing(timeout_ms: int) -> None:
    clock = ManualClock()
    waiting = waiting_on(clock)
    one, place = waiting_one(waiting, timeout_ms)
    clock.advance(timeout_ms / 1_000 - 0.001)
    assert place.parts is None
    clock.advance(3 * SWEEP_SECONDS)
    assert code_of(place) == ErrorCode.REQUEST_TIMED_OUT
    one.reached()
    assert waiting.count == 0


def test_a_partition_that_goes_away_is_told_as_lost() -> None:
    one, place = waiting_one(waiting_on())
    one.failed(LOST)
    assert code_of(place) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_nothing_stays_parked_for_a_client_that_has_left() -> None:
    waiting = waiting_on()
    one, place = waiting_one(waiting)
    one.abandon()
    assert waiting.count == 0
    one.reached()
    assert place.parts is None


def test_the_sweep_ends_when_nothing_is_parked() -> None:
    clock = ManualClock()
    waiting = waiting_on(clock)
    one, _ = waiting_one(waiting)
    waiting.deadlines.end(one)
    clock.advance(3 * SWEEP_SECONDS)
    assert clock.next_timer_s() is None
    _, place = waiting_one(waiting, 0)
    clock.advance(3 * SWEEP_SECONDS)
    assert code_of(place) == ErrorCode.REQUEST_TIMED_OUT, "it starts again with the next one"


def test_a_request_for_several_partitions_is_answered_once_with_what_became_of_each() -> None:
    clock = ManualClock()
    waiting = waiting_on(clock)
    place = Place()
    partitions = [Uncommitted(), Uncommitted(), Uncommitted()]
    results = [[Result(0, 0, 10), Result(1, 3)], [Result(0, 0, 20), Result(1, 0, 30)]]
    answered: list[list[list[Result]]] = []

    def respond(final: list[list[Result]]) -> bytes:
        answered.append(final)
        return b"done"

    waits = [Wait(partitions[0], 11, 0, 0), Wait(partitions[1], 21, 1, 0), Wait(partitions[2], 31, 1, 1)]  # type: ignore[arg-type]
    request = WaitingAnswers(place, respond, results, waiting)  # type: ignore[arg-type]
    request.wait_for(waits)
    request.has_all(1_000)
    assert [partition.waits[0][0] for partition in partitions] == [11, 21, 31]
    partitions[0].waits.reach(11)
    partitions[1].waits.fail(LOST)
    assert place.parts is None
    clock.advance(1.5)
    assert place.parts == (b"done",)
    (final,) = answered
    assert final[0] == [Result(0, 0, 10), Result(1, 3)]
    assert [row.code for row in final[1]] == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT]
