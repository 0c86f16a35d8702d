"""``uniform`` where members are subscribed to different topics.

      1. everybody keeps what it holds of topics that it is still subscribed to
      2. what nobody holds goes, topic by topic, to the subscriber with the fewest partitions; topics with many
         partitions per subscriber first: their members have least choice
      3. topic by topic, again and again: while one subscriber has two more than another, it hands one over

The third step ends when nothing can be improved by moving one partition, or after ``ROUNDS_MAX``: where subscriptions
overlap without being the same, balance comes closer with every round, but slowly.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from headpond.coordination.groups.consumer.assignment import Target
from headpond.coordination.groups.consumer.assignors.spec import GroupSpec
from headpond.model import TopicId

ROUNDS_MAX = 16
"""Each about halves what is uneven; most groups need one, and another to see that it was enough."""


def assign_mixed(spec: GroupSpec) -> dict[str, Target]:
    return _Balance(spec).result()


class _Balance:
    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._held: dict[str, dict[TopicId, set[int]]] = {member_id: {} for member_id in sorted(spec.members)}
        self._load = dict.fromkeys(self._held, 0)
        self._subscribers: dict[TopicId, list[str]] = {}
        for member_id in self._held:
            for topic_id in spec.members[member_id].topics:
                self._subscribers.setdefault(topic_id, []).append(member_id)

    def result(self) -> dict[str, Target]:
        topics = sorted(self._subscribers, key=self._urgency)
        for topic_id, unassigned in [(topic_id, self._keep(topic_id)) for topic_id in topics]:
            self._hand_out(topic_id, unassigned)
        shared = [topic_id for topic_id in topics if len(self._subscribers[topic_id]) > 1]
        for _ in range(ROUNDS_MAX):
            if not sum([self._level(topic_id) for topic_id in shared]):
                break
        return {
            member_id: {topic_id: frozenset(held[topic_id]) for topic_id in sorted(held) if held[topic_id]}
            for member_id, held in self._held.items()
        }

    def _urgency(self, topic_id: TopicId) -> tuple[float, int, TopicId]:
        subscribers = len(self._subscribers[topic_id])
        return (-self._spec.partition_counts[topic_id] / subscribers, subscribers, topic_id)

    def _keep(self, topic_id: TopicId) -> list[int]:
        """Returns what nobody holds."""
        unassigned = set(range(self._spec.partition_counts[topic_id]))
        for member_id in self._subscribers[topic_id]:
            kept = unassigned & self._spec.members[member_id].target.get(topic_id, frozenset())
            unassigned -= kept
            self._held[member_id][topic_id] = kept
            self._load[member_id] += len(kept)
        return sorted(unassigned)

    def _hand_out(self, topic_id: TopicId, unassigned: list[int]) -> None:
        if not unassigned:
            return
        fewest = [(self._load[member_id], member_id) for member_id in self._subscribers[topic_id]]
        heapify(fewest)
        for partition in unassigned:
            load, member_id = heappop(fewest)
            self._held[member_id][topic_id].add(partition)
            self._load[member_id] = load + 1
            heappush(fewest, (load + 1, member_id))

    def _level(self, topic_id: TopicId) -> int:
        """How many partitions were moved."""
        members = self._subscribers[topic_id]
        fewest = [(self._load[member_id], member_id) for member_id in members]
        most = [(-self._load[member_id], member_id) for member_id in members if self._held[member_id][topic_id]]
        heapify(fewest)
        heapify(most)
        moved = 0
        while most:
            load, receiver = heappop(fewest)
            if load != self._load[receiver]:  # it has changed since it was put there
                heappush(fewest, (self._load[receiver], receiver))
                continue
            negative_load, giver = heappop(most)
            if -negative_load != self._load[giver]:
                heappush(fewest, (load, receiver))
                heappush(most, (-self._load[giver], giver))
                continue
            if self._load[giver] - load < 2:
                break
            self._move(topic_id, giver, receiver)
            moved += 1
            heappush(fewest, (load + 1, receiver))
            if self._held[giver][topic_id]:
                heappush(most, (-self._load[giver], giver))
        return moved

    def _move(self, topic_id: TopicId, giver: str, receiver: str) -> None:
        partition = max(self._held[giver][topic_id])
        self._held[giver][topic_id].remove(partition)
        self._held[receiver][topic_id].add(partition)
        self._load[giver] -= 1
        self._load[receiver] += 1
