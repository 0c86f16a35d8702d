"""Groups that change between the classic and the new protocol (KIP-848) while consumers of both come, go, crash, lose
answers and come back with the other, under any ``group.consumer.migration.policy``, over restarts of the coordinator.

What must hold after every step: no partition has two owners whose commits would be accepted; generations and epochs
only grow; what was committed stays committed; a coordinator that reads the log finds the same group; the policy
decides what becomes of it. And in the end, when everybody does what the protocol says: each partition has a reader.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import ClassicGroup, Phase
from headpond.coordination.groups.consumer import ConsumerGroup
from headpond.coordination.groups.consumer.assignment import partitions_of
from headpond.coordination.groups.group import CommittedPartition
from headpond.model import BrokerError, ErrorCode
from unit.coordination.conversion_clients import ClassicClient, Client, NewClient
from unit.coordination.conversion_world import GROUP, SESSION_MS, Asked, ConversionWorld, TopicPartition

TOPICS = ("orders", "payments")
POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")
UP, DOWN = ("upgrade", "bidirectional"), ("downgrade", "bidirectional")
SOFT = {"metadata_is_due", "_topics"}
"""What no record holds of a consumer group."""

some_topics = st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)
some_policy = st.sampled_from([*POLICIES, "bidirectional"])


class GroupConversions(RuleBasedStateMachine):
    clients: Bundle[Client] = Bundle("clients")

    @initialize(
        target=clients,
        policy=some_policy,
        names=st.sampled_from([("range",), ("range", "roundrobin"), ("cooperative-sticky",)]),
        interval_ms=st.sampled_from([0, 1_000]),
        classic_max=st.sampled_from([100, 100, 100, 2]),
        consumer_max=st.sampled_from([100, 100, 100, 3]),
        delay_ms=st.sampled_from([0, 1_000]),
        first=st.lists(st.booleans(), max_size=3),
    )
    def start(
        self,
        policy: str,
        names: tuple[str, ...],
        interval_ms: int,
        classic_max: int,
        consumer_max: int,
        delay_ms: int,
        first: list[bool],
    ) -> Any:
        """``first``: who is there already, and is classic or not."""
        self.names = names
        self.sizes = {"members_max": classic_max, "consumer_members_max": consumer_max}
        self.times = {"consumer_assignment_interval_ms": interval_ms, "initial_rebalance_delay_ms": delay_ms}
        self.world = ConversionWorld(self.with_policy(policy), orders=3, payments=2)
        self.all: list[Client] = []
        self.committed: dict[TopicPartition, int] = {}
        self.committing: list[tuple[Asked, TopicPartition, int]] = []
        self.kind: str | None = None
        self.has_new_members = False
        self.generation = 0
        for is_classic in first:
            self.comes(is_classic=is_classic, topics=["orders"])
        self.everybody_goes_on(12)
        return multiple(*self.all)

    def with_policy(self, policy: str) -> GroupSettings:
        return GroupSettings(
            consumer_migration_policy=policy,
            consumer_session_timeout_ms=SESSION_MS,
            **self.times,
            **self.sizes,
        )

    @property
    def policy(self) -> str:
        return self.world.settings.consumer_migration_policy

    # --- what consumers do

    @rule(target=clients, topics=some_topics)
    def a_classic_one_comes(self, topics: list[str]) -> Client:
        return self.comes(is_classic=True, topics=topics)

    @rule(target=clients, topics=some_topics)
    def a_new_one_comes(self, topics: list[str]) -> Client:
        return self.comes(is_classic=False, topics=topics)

    @rule(target=clients, topics=some_topics, is_classic=st.booleans(), number=st.integers(1, 2))
    def an_instance_comes(self, topics: list[str], is_classic: bool, number: int) -> Client:
        """Whoever had its name before is gone, or is fenced."""
        instance_id = f"pod-{number}"
        for client in self.all:
            if client.instance_id == instance_id and client.is_alive:
                client.end()
        return self.comes(is_classic=is_classic, topics=topics, instance_id=instance_id)

    @rule(client=clients)
    def does_what_is_next(self, client: Client) -> None:
        self.act(client)

    @rule(client=clients)
    def cannot_write_what_is_next(self, client: Client) -> None:
        self.world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.act(client)
        self.world.append_error = None

    @rule(rounds=st.integers(1, 12))
    def everybody_goes_on(self, rounds: int) -> None:
        self.commits_come()
        for _ in range(rounds):
            self.go_on()

    @rule(client=clients)
    def loses_an_answer(self, client: Client) -> None:
        client.lose_answer()

    @rule(client=clients, topics=some_topics)
    def subscribes_to(self, client: Client, topics: list[str]) -> None:
        client.subscribe(topics)

    @rule(target=clients, client=consumes(clients))
    def is_restarted_with_the_other_protocol(self, client: Client) -> Any:
        if not client.is_alive:
            return multiple()
        if client.instance_id is None:
            client.leave()
        elif isinstance(client, NewClient):
            client.leave(is_for_now=True)
        else:
            client.end()  # static classic members don't leave
        self.generations_and_epochs_only_grow()
        self.the_policy_decides_what_becomes_of_it()
        return self.comes(is_classic=not client.is_classic, topics=list(client.topics), instance_id=client.instance_id)

    @rule(client=consumes(clients))
    def leaves(self, client: Client) -> None:
        if client.is_alive:
            client.leave()

    @rule(client=clients)
    def is_put_out(self, client: Client) -> None:
        if client.member_id and not self.world.holds_commits:
            self.world.leave(client.member_id, client.instance_id)

    @rule(client=consumes(clients))
    def crashes(self, client: Client) -> None:
        client.end()

    @rule(client=clients, offset=st.integers(0, 1_000))
    def commits(self, client: Client, offset: int) -> None:
        for partition in sorted(client.held):
            asked = self.world.commit(
                partition, offset, client.member_id, client.generation, group_instance_id=client.instance_id
            )
            self.committing.append((asked, partition, offset))

    @rule(offset=st.integers(0, 1_000))
    def commits_from_outside(self, offset: int) -> None:
        is_empty = self.world.group is None or self.world.group.is_empty
        asked = self.world.commit(("orders", 0), offset)
        assert is_empty or asked.error == ErrorCode.UNKNOWN_MEMBER_ID
        self.committing.append((asked, ("orders", 0), offset))

    # --- what happens around them

    @rule(topic=st.sampled_from(TOPICS))
    def grows(self, topic: str) -> None:
        self.world.grow(topic, 1)

    @rule(seconds=st.sampled_from([0.2, 4.0, 11.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def commits_take_time(self) -> None:
        self.world.holds_commits = True

    @rule()
    def commits_come(self) -> None:
        self.world.holds_commits = False
        self.world.commit_log()

    @rule(policy=some_policy, loses_uncommitted=st.booleans())
    def restarts(self, policy: str, loses_uncommitted: bool) -> None:
        if loses_uncommitted and self.world.committed_end < len(self.world.log):
            self.generation, self.kind = 0, None
        elif self.kind == "classic":
            self.generation = 0  # one that was never written may be given again
        self.world.settings = self.with_policy(policy)
        self.world.restart(loses_uncommitted=loses_uncommitted)
        self.find_out_what_became_of_commits()

    # --- inside

    def go_on(self) -> None:
        self.world.advance(0.5)
        for client in self.all:
            self.act(client)
        self.no_partition_has_two_owners()
        self.the_policy_decides_what_becomes_of_it()

    def find_out_what_became_of_commits(self) -> None:
        """That were not answered: each may have been kept."""
        found = self.world.offsets()
        for partition in self.committed.keys() | found.keys():
            kept = {offset for _, each, offset in self.committing if each == partition}
            assert found.get(partition) in {self.committed.get(partition), *kept}
        self.committed, self.committing = found, []

    def comes(self, *, is_classic: bool, topics: list[str], instance_id: str | None = None) -> Client:
        client: Client
        if is_classic:
            client = ClassicClient(self.world, topics, instance_id, self.names)
        else:
            client = NewClient(self.world, topics, instance_id, f"new-{len(self.all)}")
        self.all.append(client)
        self.act(client)
        return client

    def act(self, client: Client) -> None:
        self.listen()
        if not client.is_alive:
            return
        if isinstance(client, ClassicClient):
            expected = self.expected_beat(client)
            client.act()
            if client.last_beat is not None and expected is not None:
                assert client.last_beat is expected
        else:
            client.act()

    def listen(self) -> None:
        for client in self.all:
            if client.is_alive:
                before = client.generation, client.member_id
                client.listen()
                if client.refused is not None:
                    self.check_refusal(client, client.refused)
                elif client.member_id == before[1] and client.generation > 0 and not client.is_classic:
                    assert client.generation >= before[0]

    def expected_beat(self, client: ClassicClient) -> ErrorCode | None:
        """Of a member of a consumer group: whether there is something to give up, or all that it lacks is free. None:
        it does not matter."""
        group = self.world.consumer_group
        member = None if group is None else group.members.get(client.member_id)
        if group is None or member is None or not member.is_classic or member.epoch != client.generation:
            return None
        if all(each.is_classic for each in group.members.values()):
            return None  # they have to notice more: whether they do, the end shows
        wanted = {self.world.topics.facts(name).topic_id for name in member.topic_names}
        targets = {each: held for each, held in group.target_of(member.member_id).items() if each in wanted}
        lacking = set(partitions_of(targets)) - set(partitions_of(member.assigned))
        can_get = lacking and not lacking & group.owners.keys()
        is_behind = member.epoch < group.target_epoch
        return ErrorCode.REBALANCE_IN_PROGRESS if is_behind or member.revoking or can_get else ErrorCode.NONE

    def check_refusal(self, client: Client, refused: ErrorCode) -> None:
        """Said to an application that can't go on: there must be a reason."""
        client.refused = None
        limits = self.world.settings
        if refused == ErrorCode.GROUP_MAX_SIZE_REACHED:
            assert min(limits.members_max, limits.consumer_members_max) < 100
        elif refused == ErrorCode.FENCED_INSTANCE_ID:
            assert client.instance_id is not None
        elif client.is_classic:
            assert refused == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, refused
            assert self.policy == "disabled"
        else:
            assert refused == ErrorCode.GROUP_ID_NOT_FOUND, refused
            assert self.policy not in UP or limits.consumer_members_max < 100

    # --- what must hold

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        if not hasattr(self, "world") or self.world.group is None:
            return
        self.listen()
        owners: dict[TopicPartition, str] = {}
        for client in self.all:
            for partition in client.held:
                if self.may_commit(client, partition):
                    assert partition not in owners, f"{partition} is of {client.member_id} and {owners[partition]}"
                    owners[partition] = client.member_id

    def may_commit(self, client: Client, partition: TopicPartition) -> bool:
        group = self.world.group
        assert group is not None
        if not client.member_id or client.generation < 0:
            return False
        try:
            group.check_commit(
                member_id=client.member_id,
                group_instance_id=client.instance_id,
                generation_or_epoch=client.generation,
                is_transactional=False,
                request_version=9,
                partitions=[CommittedPartition(*partition)],
            )
        except BrokerError:
            return False
        return True

    @invariant()
    def generations_and_epochs_only_grow(self) -> None:
        group = getattr(self, "world", None) and self.world.group
        if group is None or group.is_empty:
            self.generation = 0  # the next kind begins anew, as in Kafka
        else:
            assert isinstance(group, ClassicGroup | ConsumerGroup)
            generation = group.epoch if isinstance(group, ConsumerGroup) else group.generation
            assert generation >= self.generation
            self.generation = generation

    @invariant()
    def the_policy_decides_what_becomes_of_it(self) -> None:
        if not hasattr(self, "world"):
            return
        group, kind = self.world.group, self.kind
        self.kind = None if group is None or group.is_empty else group.kind
        had_new_members = self.has_new_members
        new_members = [each for each in self.world.members.values() if not getattr(each, "is_classic", True)]
        self.has_new_members = bool(new_members)
        if (kind, self.kind) == ("classic", "consumer"):
            assert self.policy in UP and new_members
        elif (kind, self.kind) == ("consumer", "classic"):
            assert self.policy in DOWN
        elif (kind, self.kind) == ("consumer", "consumer") and had_new_members and not new_members:
            assert self.policy not in DOWN or len(self.world.members) > self.world.settings.members_max

    @invariant()
    def what_was_committed_stays_committed(self) -> None:
        if not hasattr(self, "world"):
            return
        waiting = []
        for asked, partition, offset in self.committing:
            if asked.is_open:
                waiting.append((asked, partition, offset))
            elif asked.refused is None and asked.answer.topics[0].partitions[0].error_code == 0:
                self.committed[partition] = offset
        self.committing = waiting
        if not waiting and not self.world.holds_commits:
            assert self.world.offsets() == self.committed

    @invariant()
    def the_log_holds_the_group(self) -> None:
        if not hasattr(self, "world"):
            return
        group, rebuilt = self.world.group, self.world.rebuilt()
        assert self.world.offsets(rebuilt) == self.world.offsets()
        found = rebuilt.groups.get(GROUP)
        if group is None:
            assert found is None
            return
        assert found is not None and found.kind == group.kind
        if isinstance(group, ConsumerGroup):
            assert hard(found) == hard(group)
        elif isinstance(group, ClassicGroup) and group.phase is Phase.STABLE:
            assert isinstance(found, ClassicGroup) and found.phase is Phase.STABLE
            assert (found.generation, found.protocol_name) == (group.generation, group.protocol_name)
            assert assignments(found) == assignments(group)

    @invariant()
    def the_log_holds_nothing_of_the_other_kind(self) -> None:
        """When it is compacted."""
        if hasattr(self, "world") and self.world.group is not None:
            kinds = self.world.kinds_in_log()
            assert kinds <= {self.world.group.kind}, f"{self.world.group.kind} and {kinds}"

    # --- the end

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.commits_come()
        for _ in range(300):
            self.go_on()
            if self.is_settled():
                return
        raise AssertionError("members that cooperate did not settle")

    def is_settled(self) -> bool:
        staying = [client for client in self.all if client.is_alive]
        group = self.world.group
        if not staying:
            return group is None or group.is_empty
        if self.policy == "disabled" and self.kind == "consumer" and not self.has_new_members:
            return True  # classic members may go on with what they have, and not join for more
        held = [partition for client in staying for partition in client.held]
        wanted = self.world.partitions_of(sorted({topic for client in staying for topic in client.topics}))
        is_quiet = group is not None and group.state == "Stable" and all(client.is_settled for client in staying)
        return is_quiet and len(self.world.members) == len(staying) and sorted(held) == sorted(wanted)


def hard(group: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(group).items() if name not in SOFT}


def assignments(group: ClassicGroup) -> dict[str, bytes]:
    return {member_id: member.assignment for member_id, member in group.members.items()}


GroupConversions.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestGroupConversions = GroupConversions.TestCase
