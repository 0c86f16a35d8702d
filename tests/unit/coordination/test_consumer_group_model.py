"""Consumer groups under members that come, go, stall, crash, lose answers and come back: nothing has two owners.

What is watched is what the clients hold, not what the coordinator thinks: a client holds a partition from the answer
that brought it until it has said that it gave it up, or until it is fenced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.consumer import ConsumerGroup
from headpond.coordination.groups.consumer.assignment import partitions_of
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from unit.coordination.consumer_world import GROUP, World

TOPICS = ("orders", "payments", "events")
TopicPartition = tuple[str, int]


class Client:
    def __init__(self, member_id: str, topics: list[str], instance_id: str | None, assignor: str | None) -> None:
        self.member_id = member_id
        self.topics = topics
        self.instance_id = instance_id
        self.assignor = assignor
        self.epoch = 0
        self.held: set[TopicPartition] = set()
        self.wanted: set[TopicPartition] = set()
        """The last assignment that it was told."""
        self.is_alive = True
        self.must_say_all = True

    @property
    def owned(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for topic, partition in sorted(self.held):
            found.setdefault(topic, []).append(partition)
        return found

    def take(self, world: World, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        self.must_say_all = False
        assignment = world.held(response)
        if assignment is not None:
            self.wanted = {(topic, each) for topic, partitions in assignment.items() for each in partitions}
            self.held |= self.wanted

    def give_up(self) -> None:
        self.held &= self.wanted

    def fenced(self) -> None:
        self.epoch = 0
        self.held.clear()
        self.wanted.clear()
        self.must_say_all = True


class ConsumerGroupModel(RuleBasedStateMachine):
    clients: Bundle[Client] = Bundle("clients")

    @initialize(interval_ms=st.sampled_from([0, 1_000]))
    def start(self, interval_ms: int) -> None:
        self.world = World(GroupSettings(consumer_assignment_interval_ms=interval_ms), orders=3, payments=2)
        self.all: list[Client] = []
        self.away: list[Client] = []
        self.epoch = 0
        self.member_epochs: dict[str, int] = {}

    # --- what clients do

    @rule(
        target=clients,
        topics=st.lists(st.sampled_from(TOPICS), unique=True),
        is_static=st.booleans(),
        assignor=st.sampled_from([None, "uniform", "range"]),
    )
    def join(self, topics: list[str], is_static: bool, assignor: str | None) -> Client:
        number = len(self.all)
        client = Client(f"m{number}", topics, f"pod-{number}" if is_static else None, assignor)
        self.all.append(client)
        self.beat(client)
        return client

    @rule(client=clients, gives_up=st.booleans(), is_lost=st.booleans())
    def heartbeat(self, client: Client, gives_up: bool, is_lost: bool) -> None:
        if client.is_alive:
            if gives_up:
                client.give_up()
            self.beat(client, is_lost=is_lost)

    @rule(client=clients, topics=st.lists(st.sampled_from(TOPICS), unique=True))
    def subscribe(self, client: Client, topics: list[str]) -> None:
        if client.is_alive:
            client.topics = topics
            client.must_say_all = True
            self.beat(client)

    @rule(client=clients)
    def join_anew(self, client: Client) -> None:
        if client.is_alive and client.instance_id is None:
            client.fenced()
            self.beat(client)

    @rule(target=clients, client=consumes(clients), is_for_now=st.booleans())
    def leave(self, client: Client, is_for_now: bool) -> Any:
        if not client.is_alive:
            return multiple(client)
        epoch = -2 if is_for_now and client.instance_id is not None else -1
        try:
            self.world.leave(client.member_id, epoch, instance_id=client.instance_id)
        except BrokerError as refused:
            assert refused.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
        client.held.clear()
        client.is_alive = False
        if epoch == -2:
            self.away.append(client)
        return multiple()

    @rule(target=clients, has_new_id=st.booleans())
    def come_back(self, has_new_id: bool) -> Any:
        if not self.away:
            return multiple()
        client = self.away.pop(0)
        number = len(self.all)
        member_id = f"m{number}" if has_new_id else client.member_id
        back = Client(member_id, client.topics, client.instance_id, client.assignor)
        self.member_epochs.pop(member_id, None)
        self.all.append(back)
        self.beat(back)
        return back

    @rule(client=clients)
    def crash(self, client: Client) -> None:
        client.is_alive = False

    # --- what happens around them

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def grow(self, topic: str, more: int) -> None:
        facts = self.world.topics.facts(topic)
        self.world.put_topic(topic, more + (0 if facts is None else facts.partition_count))

    @rule(seconds=st.sampled_from([0.2, 1.0, 12.0, 31.0, 46.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    # --- inside

    def beat(self, client: Client, *, is_lost: bool = False) -> None:
        fields: dict[str, Any] = {"instance_id": client.instance_id}
        if client.must_say_all or client.epoch == 0:
            fields |= {
                "rebalance_timeout_ms": 30_000,
                "subscribed_topic_names": client.topics,
                "server_assignor": client.assignor,
            }
        self.forget_fenced()
        try:
            response = self.world.beat(client.member_id, client.epoch, owned=client.owned, **fields)
        except BrokerError as refused:
            if refused.code is ErrorCode.UNRELEASED_INSTANCE_ID:
                return  # the answer to its first join was lost: it waits until its session ends
            assert refused.code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ), refused
            client.fenced()
            return
        if is_lost:
            client.must_say_all = True
        else:
            client.take(self.world, response)

    def forget_fenced(self) -> None:
        """Who is out of the group learns it late; what it holds is its session's to end, as Kafka's clients do."""
        members = self.world.group().members if GROUP in self.world.groups else {}
        for client in self.all:
            if client.member_id not in members:
                client.held.clear()

    @invariant()
    def nothing_has_two_owners(self) -> None:
        self.forget_fenced()
        owners: dict[TopicPartition, str] = {}
        for client in self.all:
            for partition in client.held:
                assert partition not in owners, f"{partition} is held by {client.member_id} and {owners[partition]}"
                owners[partition] = client.member_id

    @invariant()
    def the_coordinator_agrees_with_itself(self) -> None:
        for group in self.group():
            seen = set()
            for member in group.members.values():
                for held in (member.assigned, member.revoking):
                    for partition in partitions_of(held):
                        assert partition not in seen
                        assert group.owners[partition] == member.member_id
                        seen.add(partition)
            assert group.owners.keys() == seen

    @invariant()
    def epochs_only_grow(self) -> None:
        for group in self.group():
            assert group.epoch >= self.epoch
            self.epoch = group.epoch
            assert group.target_epoch <= group.epoch
            for member_id, member in group.members.items():
                if member.epoch >= 0:
                    assert self.member_epochs.get(member_id, 0) <= member.epoch <= group.target_epoch
                    self.member_epochs[member_id] = member.epoch
        for member_id in list(self.member_epochs):
            if not any(member_id in group.members for group in self.group()):
                del self.member_epochs[member_id]

    @invariant()
    def the_log_holds_everything(self) -> None:
        for group in self.group():
            rebuilt = ConsumerGroup(GROUP, lambda: self.world.topics)
            for key, value in self.world.log:
                record = GROUP_CODEC.decode(key, value)
                assert record is not None
                rebuilt.apply(record)
            soft = {"metadata_is_due", "_topics"}
            assert {k: v for k, v in vars(rebuilt).items() if k not in soft} == {
                k: v for k, v in vars(group).items() if k not in soft
            }

    def group(self) -> Iterator[ConsumerGroup]:
        if hasattr(self, "world") and GROUP in self.world.groups:
            yield self.world.group()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        staying = [client for client in self.all if client.is_alive]
        for round_number in range(40):
            self.world.advance(5)  # those who crashed or stay away are fenced meanwhile
            for client in staying:
                client.give_up()
                self.beat(client)
                self.nothing_has_two_owners()
            if round_number > 20 and self.is_settled(staying):
                return
        assert not staying, "members that cooperate did not settle"

    def is_settled(self, staying: list[Client]) -> bool:
        subscribed = {topic for client in staying for topic in client.topics}
        facts = {topic: self.world.topics.facts(topic) for topic in subscribed}
        everything = {(topic, each) for topic, found in facts.items() if found for each in range(found.partition_count)}
        held = {partition for client in staying for partition in client.held}
        stable = all(group.state == "Stable" for group in self.group())
        return stable and held == everything and all(client.held == client.wanted for client in staying)


ConsumerGroupModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConsumerGroupModel = ConsumerGroupModel.TestCase
