"""Why folders that were found can't become a topic."""

from __future__ import annotations

import tracemalloc

from headpond.broker.start.adoption import why_not
from headpond.model import TopicPartition
from headpond.storage.recovery.inspection import Inspected


def found(*partitions: int) -> list[Inspected]:
    return [Inspected(TopicPartition("orders", number), f"orders-{number}", None) for number in partitions]


def test_a_topic_with_all_its_partitions_is_taken() -> None:
    assert why_not(found(0, 1, 2)) is None


def test_the_first_partitions_that_are_missing_are_named() -> None:
    assert "missing: orders-0, orders-2;" in (why_not(found(1, 3)) or "")
    assert "missing: orders-1, orders-2, orders-3, orders-4, orders-5;" in (why_not(found(0, 100)) or "")


def test_a_number_that_is_a_date_costs_no_memory() -> None:
    tracemalloc.start()
    try:
        assert "missing: orders-0, " in (why_not(found(20_261_117)) or "")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
