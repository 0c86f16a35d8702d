"""Handlers that refuse some topics themselves and have the others answered elsewhere: how both become one answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar


class TopicAnswer(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=TopicAnswer)


def merged(refused: list[T], answered: Iterable[T]) -> list[T]:
    """A topic comes once, its refused partitions first."""
    by_name = {topic.name: topic for topic in refused}
    for topic in answered:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            refused.append(topic)
    return refused
