"""Consumers of both protocols as their libraries behave: what they hold, and what they say next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headpond.model import ErrorCode
from headpond.protocol.schema.join_group import JoinGroupResponse
from unit.coordination.consumer_world import Held, read_assignment
from unit.coordination.conversion_world import REBALANCE_MS, Asked, ConversionWorld, TopicPartition, read_subscription

AGAIN = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
"""Nothing is known of what was asked for: it is asked for again."""


def by_topic(partitions: set[TopicPartition]) -> Held:
    found: Held = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def flat(held: Held) -> set[TopicPartition]:
    return {(topic, each) for topic, partitions in held.items() for each in partitions}


class Client:
    is_classic: bool

    def __init__(self, world: ConversionWorld, topics: Sequence[str], instance_id: str | None) -> None:
        self.world = world
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        """Or epoch; as it was told."""
        self.held: set[TopicPartition] = set()
        self.is_alive = True
        self.refused: ErrorCode | None = None
        """Why its application was told that it can't go on."""

    def listen(self) -> None:
        """Take the answers that have come."""
        raise NotImplementedError

    def act(self) -> None:
        """The next thing to do, unless it waits for an answer."""
        raise NotImplementedError

    def lose_answer(self) -> None:
        """The connection broke before it came."""
        raise NotImplementedError

    def subscribe(self, topics: Sequence[str]) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    @property
    def is_settled(self) -> bool:
        raise NotImplementedError

    def end(self, refused: ErrorCode | None = None) -> None:
        self.is_alive = False
        self.refused = refused
        self.held.clear()


class ClassicClient(Client):
    """Eager: gives everything up before it joins. Cooperative: says what it holds, gives up what it is not given again,
    and joins once more if there was such."""

    is_classic = True

    def __init__(
        self, world: ConversionWorld, topics: Sequence[str], instance_id: str | None, names: Sequence[str]
    ) -> None:
        super().__init__(world, topics, instance_id)
        self.names = names
        self.is_eager = names[0] != "cooperative-sticky"
        self.must_join = True
        self.must_sync = False
        self.joining: Asked | None = None
        self.syncing: Asked | None = None
        self.joined: JoinGroupResponse | None = None
        self.joined_with = topics
        self.last_beat: ErrorCode | None = None
        self.seen_partitions = -1
        """As many as there were when it last led: leaders watch the topics of all, as the Java consumer does."""

    @property
    def is_settled(self) -> bool:
        return not self.must_join and not self.must_sync and self.last_beat is ErrorCode.NONE

    def lose_answer(self) -> None:
        if self.joining is not None or self.syncing is not None:
            self.joining = self.syncing = None
            self.must_join, self.must_sync = True, False

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = topics
        self.must_join = True

    def act(self) -> None:
        if self.joining is not None or self.syncing is not None:
            return
        self.last_beat = None
        if self.must_join:
            self._join()
        elif self.must_sync:
            self._sync()
        elif self._leads and self.seen_partitions != self._partitions_of_group():
            self.must_join = True
        else:
            self._beat()

    def leave(self) -> None:
        if self.member_id:
            self.world.leave(self.member_id, self.instance_id)
        self.end()

    @property
    def _leads(self) -> bool:
        return self.joined is not None and self.joined.leader == self.member_id != ""

    # --- joining

    def _join(self) -> None:
        if self.is_eager:
            self.held.clear()
        self.must_sync = False
        self.joined_with = self.topics
        self.joining = self.world.join(
            self.member_id, self.topics, by_topic(self.held), names=self.names, instance_id=self.instance_id
        )

    def listen(self) -> None:
        if self.joining is not None and not self.joining.is_open:
            asked, self.joining = self.joining, None
            self._heard_of_join(asked)
        if self.syncing is not None and not self.syncing.is_open:
            asked, self.syncing = self.syncing, None
            self._heard_of_sync(asked)

    def _heard_of_join(self, asked: Asked) -> None:
        error = asked.error
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = asked.answer.member_id
        elif error == ErrorCode.NONE:
            self.joined = asked.answer
            self.member_id, self.generation = asked.answer.member_id, asked.answer.generation_id
            self.must_join, self.must_sync = self.topics != self.joined_with, True
        else:
            self._failed(error)

    # --- syncing

    def _sync(self) -> None:
        joined = self.joined
        assert joined is not None
        given = self._given(joined) if self._leads and not joined.skip_assignment else {}
        self.seen_partitions = self._partitions_of_group()
        self.syncing = self.world.sync(
            self.member_id,
            self.generation,
            given,
            name=joined.protocol_name or "",
            instance_id=self.instance_id,
        )

    def _heard_of_sync(self, asked: Asked) -> None:
        if asked.error != ErrorCode.NONE:
            self._failed(asked.error)
            return
        assigned = flat(read_assignment(asked.answer.assignment)[1]) if asked.answer.assignment else set()
        self.must_sync = False
        self.must_join |= bool(self.held - assigned) and not self.is_eager
        self.held = assigned

    def _given(self, joined: JoinGroupResponse) -> dict[str, Held]:
        """In turn; what somebody still holds goes to nobody else yet."""
        subscriptions = {each.member_id: read_subscription(each.metadata) for each in joined.members}
        holders = {partition: each for each, (_, held) in subscriptions.items() for partition in flat(held)}
        topics = {topic for names, _ in subscriptions.values() for topic in names}
        given: dict[str, set[TopicPartition]] = {each: set() for each in subscriptions}
        for at, partition in enumerate(sorted(self.world.partitions_of(sorted(topics)))):
            wanting = sorted(each for each, (names, _) in subscriptions.items() if partition[0] in names)
            to = wanting[at % len(wanting)]
            if holders.get(partition, to) == to:
                given[to].add(partition)
        return {each: by_topic(held) for each, held in given.items()}

    def _partitions_of_group(self) -> int:
        """As far as it knows: only leaders are told who else is there."""
        members = [] if self.joined is None else self.joined.members
        topics = {topic for each in members for topic in read_subscription(each.metadata)[0]}
        return len(self.world.partitions_of(sorted(topics)))

    # --- staying

    def _beat(self) -> None:
        self.last_beat = self.world.classic_beat(self.member_id, self.generation, self.instance_id)
        if self.last_beat != ErrorCode.NONE:
            self._failed(self.last_beat)

    def _failed(self, error: ErrorCode) -> None:
        if error in AGAIN:
            return
        self.must_join, self.must_sync = True, False
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            return
        if error == ErrorCode.ILLEGAL_GENERATION:
            self.held.clear()
        elif error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.held.clear()
            self.member_id = ""
        else:
            self.end(error)


class NewClient(Client):
    is_classic = False

    def __init__(self, world: ConversionWorld, topics: Sequence[str], instance_id: str | None, member_id: str) -> None:
        super().__init__(world, topics, instance_id)
        self.member_id = member_id
        self.generation = 0
        self.wanted: set[TopicPartition] = set()
        """The last assignment that it was told."""
        self.must_say_all = True
        self.asked: Asked | None = None

    @property
    def is_settled(self) -> bool:
        return self.generation > 0 and self.held == self.wanted and not self.must_say_all

    def lose_answer(self) -> None:
        if self.asked is not None:
            self.asked = None
            self.must_say_all = True

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = topics
        self.must_say_all = True

    def act(self) -> None:
        if self.asked is None:
            self.held &= self.wanted
            fields: dict[str, Any] = {"instance_id": self.instance_id}
            if self.must_say_all:
                fields |= {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": list(self.topics)}
            self.must_say_all = False
            self.asked = self.world.beat(self.member_id, self.generation, by_topic(self.held), **fields)

    def listen(self) -> None:
        if self.asked is None or self.asked.is_open:
            return
        asked, self.asked = self.asked, None
        if asked.error == ErrorCode.NONE:
            self.generation = asked.answer.member_epoch
            if asked.answer.assignment is not None:
                self.wanted = self.world.named(asked.answer.assignment.topic_partitions)
                self.held |= self.wanted
            return
        self.must_say_all = True
        fencing = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
        if self.generation > 0:
            fencing.add(ErrorCode.GROUP_ID_NOT_FOUND)
        if asked.error in fencing:
            self._fenced()
        elif asked.error not in AGAIN and asked.error != ErrorCode.UNRELEASED_INSTANCE_ID:
            self.end(asked.error)

    def _fenced(self) -> None:
        self.generation = 0
        self.held.clear()
        self.wanted.clear()

    def leave(self, *, is_for_now: bool = False) -> None:
        if self.generation > 0:
            self.world.beat(self.member_id, -2 if is_for_now else -1, instance_id=self.instance_id)
        self.end()
