"""Handlers that refuse some topics themselves and have the others answered elsewhere: how both become one answer.

A request with very many partitions is served in parts, each as if it were a request of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import SLICE_COST
from headpond.coordination.slices import Work

PARTITIONS_AT_ONCE = 500
"""What is written to a coordinator's log at a stretch: some milliseconds."""


TOPICS_AT_ONCE = 5_000
"""Put together at a stretch."""


class TopicAnswer(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)
A = TypeVar("A", bound=TopicAnswer)


async def answered_in_parts(
    ctx: Context,
    topics: Sequence[T],
    part_of: Callable[[T, list[Any]], T],
    serve: Callable[[list[T]], Awaitable[tuple[list[A], list[A]]]],
) -> list[A]:
    """``serve`` is given some of the topics, perhaps with some of their partitions (``part_of``), and says what is
    refused and what else is answered."""
    refused: list[A] = []
    answered: list[A] = []
    async for part in _parts(ctx, topics, part_of):
        refused_here, answered_here = await serve(part)
        _go_on(refused, refused_here)
        _go_on(answered, answered_here)
    return await ctx.finish(merged(refused, answered))


def merged(refused: list[A], answered: Sequence[A]) -> Work[list[A]]:
    """A topic comes once, its refused partitions first."""
    by_name: dict[str, A] = {}
    for number, topic in enumerate(refused, start=1):
        by_name[topic.name] = topic
        if number % TOPICS_AT_ONCE == 0:
            yield None
    for number, topic in enumerate(answered, start=1):
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            refused.append(topic)
        if number % TOPICS_AT_ONCE == 0:
            yield None
    return refused


async def _parts(ctx: Context, topics: Sequence[T], part_of: Callable[[T, list[Any]], T]) -> AsyncIterator[list[T]]:
    part: list[T] = []
    room = PARTITIONS_AT_ONCE
    for topic in topics:
        start, count = 0, len(topic.partitions)
        while True:
            end = min(count, start + room)
            part.append(topic if end - start == count else part_of(topic, topic.partitions[start:end]))
            room -= max(1, end - start)
            start = end
            if room <= 0:
                yield part
                part, room = [], PARTITIONS_AT_ONCE
                await ctx.spend(SLICE_COST)
            if start == count:
                break
    yield part


def _go_on(answers: list[A], more: list[A]) -> None:
    """A topic that the parts were cut in is one again."""
    if answers and more and _is_same(answers[-1], more[0]):
        answers[-1].partitions += more[0].partitions
        more = more[1:]
    answers += more


def _is_same(one: TopicAnswer, other: TopicAnswer) -> bool:
    return one.name == other.name and getattr(one, "topic_id", None) == getattr(other, "topic_id", None)
