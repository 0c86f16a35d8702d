"""Which brokers hold a new partition. Pure: chance comes in as a port.

Goals, in this order: replicas of one partition on different racks; load even over brokers, leaders first of all;
brokers that are up before fenced ones. The leader is always a broker that is up. The idea is Kafka's striping:
partition after partition starts one rack further, and within a rack one broker further; after a full turn the brokers
are shuffled, so that not always the same ones share a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from headpond.model import BrokerError, ErrorCode
from headpond.ports import Random

T = TypeVar("T")


class Candidate(NamedTuple):
    id: int
    rack: str | None
    fenced: bool


class _Rack:
    def __init__(self) -> None:
        self.up: list[int] = []
        self.fenced: list[int] = []

    def turned(self, by: int) -> list[int]:
        return _turned(self.up, by) + _turned(self.fenced, by)


def place(
    brokers: Iterable[Candidate], *, partitions: int, replication_factor: int, random: Random
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, leader first; INVALID_REPLICATION_FACTOR when there are too few brokers."""
    candidates = sorted(brokers, key=lambda broker: broker.id)
    up_count = sum(not broker.fenced for broker in candidates)
    _check(replication_factor, len(candidates), up_count)
    if len(candidates) == 1:
        return [(candidates[0].id,)] * partitions
    racks: dict[str, _Rack] = {}
    for broker in candidates:
        rack = racks.setdefault(broker.rack or "", _Rack())
        (rack.fenced if broker.fenced else rack.up).append(broker.id)
    order = [racks[name] for name in sorted(racks)]
    first_rack, first_broker = random.random_int(len(order)), random.random_int(len(candidates))
    placed = []
    for number in range(partitions):
        if number and number % up_count == 0:
            for rack in order:
                _shuffle(rack.up, random)
        stripe = _turned(order, first_rack + number)
        turn = first_broker + number // len(order)
        placed.append(_pick([rack.turned(turn) for rack in stripe], stripe, replication_factor))
    return placed


def _check(replication_factor: int, registered: int, up: int) -> None:
    problem = None
    if replication_factor <= 0:
        problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif replication_factor > registered:
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because only {registered} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    elif up == 0:
        problem = "All brokers are currently fenced."
    if problem is not None:
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)


def _pick(queues: list[list[int]], stripe: list[_Rack], replication_factor: int) -> tuple[int, ...]:
    leader_rack = next(index for index, rack in enumerate(stripe) if rack.up)
    leader = queues[leader_rack].pop(0)
    followers = _round_robin(queues[leader_rack + 1 :] + queues[:leader_rack] + [queues[leader_rack]])
    return (leader, *(next(followers) for _ in range(replication_factor - 1)))


def _round_robin(queues: list[list[int]]) -> Iterator[int]:
    for depth in range(max(map(len, queues))):
        for queue in queues:
            if depth < len(queue):
                yield queue[depth]


def _turned(items: list[T], by: int) -> list[T]:
    if not items:
        return []
    by %= len(items)
    return items[by:] + items[:by]


def _shuffle(items: list[int], random: Random) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = random.random_int(last + 1)
        items[last], items[other] = items[other], items[last]
