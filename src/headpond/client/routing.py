"""Work on many partitions, each done by its leader, again where leadership has moved.

A partition whose topic is unknown gets a few seconds' patience (a topic that was just created is not known everywhere
at once); every other retriable answer is tried again until time is up. One partition's failure never fails the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from headpond.client.client import Client
from headpond.client.errors import STALE_METADATA, ClientError
from headpond.client.waiting import JitteredBackoff
from headpond.model import ErrorCode, TopicPartition

UNKNOWN_TOPIC_PATIENCE_S = 3.0

W = TypeVar("W")
R = TypeVar("R")
Asks = Callable[[int, dict[TopicPartition, W]], Awaitable[dict[TopicPartition, R | ClientError]]]


async def ask_leaders(
    client: Client, wanted: Mapping[TopicPartition, W], ask: Asks[W, R], timeout_s: float
) -> dict[TopicPartition, R | ClientError]:
    """``ask(node_id, part of wanted)`` for each leader, side by side; results in the order of ``wanted``.

    ``ask`` answers for each of its partitions, and is repeated for those with a retriable error: it must not matter
    that a thing is asked twice.
    """
    started_s = client.clock.monotonic()
    backoff = JitteredBackoff(client.random)
    results: dict[TopicPartition, R | ClientError] = {}
    left = dict(wanted)
    stale = {tp.topic for tp in left if client.cluster.leader(tp) is None}
    while left:
        if stale:
            await client.metadata(sorted(stale), started_s + timeout_s - client.clock.monotonic())
        round_results = await _ask_once(client, left, ask)
        pause_s = backoff.next_s()
        waited_s = client.clock.monotonic() + pause_s - started_s
        stale = set()
        for tp, result in round_results.items():
            if isinstance(result, ClientError) and is_worth_waiting(result.code, waited_s, timeout_s):
                if result.code in STALE_METADATA:
                    stale.add(tp.topic)
                continue
            results[tp] = result
            del left[tp]
        if left:
            await client.clock.sleep(pause_s)
    return {tp: results[tp] for tp in wanted}


def is_worth_waiting(code: ErrorCode, waited_s: float, timeout_s: float) -> bool:
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return waited_s < min(UNKNOWN_TOPIC_PATIENCE_S, timeout_s)
    return ClientError(code).is_retriable and waited_s < timeout_s


async def _ask_once(
    client: Client, wanted: dict[TopicPartition, W], ask: Asks[W, R]
) -> dict[TopicPartition, R | ClientError]:
    by_node: dict[int, dict[TopicPartition, W]] = {}
    results: dict[TopicPartition, R | ClientError] = {}
    for tp, what in wanted.items():
        leader = client.cluster.leader(tp)
        if leader is None:
            results[tp] = no_leader(client, tp)
        else:
            by_node.setdefault(leader.leader, {})[tp] = what
    answers = await asyncio.gather(*(_ask_node(ask, node_id, part) for node_id, part in sorted(by_node.items())))
    for answer in answers:
        results.update(answer)
    return results


async def _ask_node(
    ask: Asks[W, R], node_id: int, part: dict[TopicPartition, W]
) -> dict[TopicPartition, R | ClientError]:
    try:
        answer = await ask(node_id, part)
    except ClientError as error:
        return dict.fromkeys(part, error)
    return {tp: answer[tp] if tp in answer else _left_out(tp) for tp in part}


def _left_out(tp: TopicPartition) -> ClientError:
    return ClientError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{tp}: the broker's answer leaves it out")


def no_leader(client: Client, tp: TopicPartition) -> ClientError:
    """Why ``cluster.leader`` knows none."""
    topic = client.cluster.topic(tp.topic)
    if topic is None:
        return ClientError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {tp.topic}")
    if topic.partition(tp.partition) is None:
        return ClientError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no partition {tp.partition} in {tp.topic}, which has {len(topic.partitions)}",
        )
    return ClientError(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader at the moment")


def topics_of(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """By topic, in order."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp)
    return by_topic
