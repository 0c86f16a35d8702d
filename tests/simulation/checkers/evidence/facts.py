"""What several checkers derive from a history: who sent a value, and when an operation's effect had come about."""

from __future__ import annotations

from math import inf
from typing import TypeVar

from simulation.history import Batch, History, Operation, Place, Seen, Send

O = TypeVar("O", bound=Operation)  # noqa: E741 (an operation)
INTERNAL = "__"
"""How the names of the broker's own topics begin."""


def of_kind(history: History, kind: type[O]) -> list[O]:
    return [operation for operation in history.operations if type(operation) is kind]


def succeeded(history: History, kind: type[O]) -> list[O]:
    return [each for each in history.operations if type(each) is kind and each.outcome == "ok"]


def effect_end_s(operation: Operation) -> float:
    """From when on the effect of an operation that did not fail is certainly there; never, if its outcome is
    unknown."""
    if operation.outcome != "ok" or operation.ended_s is None:
        return inf
    return operation.ended_s


def answered_s(operation: Operation) -> float:
    return inf if operation.ended_s is None else operation.ended_s


def sends_by_value(history: History) -> dict[bytes, Send]:
    """Without tombstones, which can't be told apart."""
    return {each.value: each for each in history.operations if type(each) is Send and each.value is not None}


def data_of(batches: tuple[Batch, ...], *, from_offset: int = 0) -> list[Seen]:
    """The records that clients sent, in their order. A batch may begin before ``from_offset``."""
    return [seen for batch in batches if not batch.control for seen in batch.records if seen.offset >= from_offset]


def data_at(history: History) -> dict[Place, dict[int, Seen]]:
    """What the final logs hold at each offset, as a client read it."""
    return {
        place: {seen.offset: seen for seen in data_of(log.fetched, from_offset=log.log_start_offset)}
        for place, log in history.final_logs.items()
    }
