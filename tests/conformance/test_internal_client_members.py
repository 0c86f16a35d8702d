"""Members of groups with the internal client: among themselves, beside another client, while a broker restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

from headpond.client import Client, ClientError
from headpond.client.admin import Admin
from headpond.client.coordinators import Coordinated
from headpond.client.group.classic import ClassicMember
from headpond.client.group.consumer import ConsumerMember
from headpond.client.group.member import Member, MemberSettings
from headpond.client.group.offsets import Identity, commit_offsets
from headpond.client.group_admin import GroupOffset
from headpond.model import ErrorCode, TopicPartition
from support.broker import BrokerProcess
from support.internal_client import run_with_client

E = ErrorCode
DEADLINE_S = 30.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 200,
}
TIMES = MemberSettings(
    session_timeout_ms=30_000, rebalance_timeout_ms=20_000, heartbeat_interval_ms=200, metadata_max_age_ms=500
)
KINDS: list[type[Member]] = [ClassicMember, ConsumerMember]
STALE = {ClassicMember: E.ILLEGAL_GENERATION, ConsumerMember: E.STALE_MEMBER_EPOCH}


@pytest.fixture
def broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    return make_broker(settings=SETTINGS).start()


@pytest.fixture
def bootstrap(broker: BrokerProcess) -> str:
    return broker.bootstrap_servers


@pytest.fixture(params=KINDS, ids=["classic", "consumer"])
def kind(request: pytest.FixtureRequest) -> type[Member]:
    chosen: type[Member] = request.param
    return chosen


class Ledger:
    """Nobody may be given what another still owns; what was assigned is revoked or lost, once."""

    def __init__(self, client: Client, topic: str, kind: type[Member]) -> None:
        self.client, self.topic, self.kind = client, topic, kind
        self.held: set[tuple[str, TopicPartition]] = set()
        self.members: dict[str, Member] = {}

    def member(self, name: str, times: MemberSettings = TIMES, **options: Any) -> Member:
        def take(partitions: tuple[TopicPartition, ...]) -> None:
            for tp in partitions:
                others = [other for other in self.members if other != name and tp in self.members[other].assignment]
                assert not others and (name, tp) not in self.held, f"{name}, {others}: {tp}"
                self.held.add((name, tp))

        callbacks: dict[str, Any] = {
            "on_assigned": take,
            "on_revoked": lambda partitions: self.drop(name, partitions),
            "on_lost": lambda partitions: self.drop(name, partitions),
            **options,
        }
        self.members[name] = self.kind(self.client, "readers", [self.topic], settings=times, **callbacks)
        return self.members[name]

    def drop(self, name: str, partitions: tuple[TopicPartition, ...]) -> None:
        for tp in partitions:
            self.held.remove((name, tp))

    def partitions(self, *numbers: int) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(self.topic, number) for number in numbers)


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0.02)


def run(bootstrap: str, topic: str, kind: type[Member], scenario: Callable[[Ledger], Any]) -> None:
    async def with_topic(client: Client) -> None:
        await Admin(client).create_topic(topic, 4, 1)
        await scenario(Ledger(client, topic, kind))

    run_with_client(bootstrap, with_topic)


def test_two_members_share_a_topic_and_when_one_leaves_the_other_has_it_all(
    bootstrap: str, topic_name: str, kind: type[Member]
) -> None:
    async def scenario(ledger: Ledger) -> None:
        async with ledger.member("a") as a:
            await eventually(lambda: a.assignment == ledger.partitions(0, 1, 2, 3))
            async with ledger.member("b") as b:
                await eventually(lambda: (len(a.assignment), len(b.assignment)) == (2, 2))
                assert sorted(a.assignment + b.assignment) == list(ledger.partitions(0, 1, 2, 3))
                tp = b.assignment[0]
                assert await b.commit({tp: GroupOffset(5, 0, "note")}) == {tp: E.NONE}
            await eventually(lambda: a.assignment == ledger.partitions(0, 1, 2, 3))
            assert await a.committed([tp]) == {tp: GroupOffset(5, 0, "note")}
        assert ledger.held == set() and (a.failure, b.failure) == (None, None)

    run(bootstrap, topic_name, kind, scenario)


def test_a_commit_of_a_generation_that_is_over_is_refused(bootstrap: str, topic_name: str, kind: type[Member]) -> None:
    async def scenario(ledger: Ledger) -> None:
        async with ledger.member("a") as a:
            await eventually(lambda: len(a.assignment) == 4)
            before = Identity(a.member_id, a.epoch, None)
            async with ledger.member("b") as b:
                await eventually(lambda: len(b.assignment) == 2)
                tp = b.assignment[0]
                assert await b.commit({tp: GroupOffset(9)}) == {tp: E.NONE}
                late = await commit_offsets(
                    ledger.client, Coordinated("group", "readers"), before, {tp: GroupOffset(3)}
                )
                assert late == {tp: STALE[kind]}
                assert await b.committed([tp]) == {tp: GroupOffset(9)}

    run(bootstrap, topic_name, kind, scenario)


def test_a_member_that_gives_up_too_slowly_is_removed_and_comes_back(
    bootstrap: str, topic_name: str, kind: type[Member]
) -> None:
    times = MemberSettings(session_timeout_ms=30_000, rebalance_timeout_ms=1_500, heartbeat_interval_ms=200)
    seen: list[Any] = []

    async def scenario(ledger: Ledger) -> None:
        async def dawdle(partitions: tuple[TopicPartition, ...]) -> None:
            ledger.drop("slow", partitions)
            if not seen:
                seen.append(None)
                await eventually(lambda: not slow.assignment)
                seen.append(await slow.commit({partitions[0]: GroupOffset(3)}))
                await eventually(lambda: len(quick.assignment) == 4)

        slow = ledger.member("slow", times, on_revoked=dawdle)
        quick = ledger.member("quick", times)
        async with slow:
            await eventually(lambda: len(slow.assignment) == 4)
            async with quick:
                await eventually(lambda: len(seen) == 2)
                assert set(seen[1].values()) == {E.UNKNOWN_MEMBER_ID}
                await eventually(lambda: (len(slow.assignment), len(quick.assignment)) == (2, 2))

    run(bootstrap, topic_name, kind, scenario)


def test_members_stay_when_the_broker_restarts(
    broker: BrokerProcess, bootstrap: str, topic_name: str, kind: type[Member]
) -> None:
    async def scenario(ledger: Ledger) -> None:
        async with ledger.member("a") as a, ledger.member("b") as b:
            await eventually(lambda: (len(a.assignment), len(b.assignment)) == (2, 2))
            await asyncio.sleep(0.5)  # nothing is on its way any more
            before = (a.member_id, a.epoch, a.assignment)
            await asyncio.to_thread(broker.stop)
            await asyncio.to_thread(broker.start)
            await asyncio.sleep(1)
            assert (a.member_id, a.epoch, a.assignment) == before
            tp = a.assignment[0]
            assert await a.commit({tp: GroupOffset(1)}) == {tp: E.NONE}

    run(bootstrap, topic_name, kind, scenario)


def test_partitions_that_a_topic_gains_are_assigned(bootstrap: str, topic_name: str, kind: type[Member]) -> None:
    async def scenario(ledger: Ledger) -> None:
        async with ledger.member("a") as a, ledger.member("b") as b:
            await eventually(lambda: (len(a.assignment), len(b.assignment)) == (2, 2))
            await Admin(ledger.client).create_partitions(ledger.topic, 6)
            await eventually(lambda: (len(a.assignment), len(b.assignment)) == (3, 3))

    run(bootstrap, topic_name, kind, scenario)


def test_a_static_member_finds_its_partitions_again(bootstrap: str, topic_name: str, kind: type[Member]) -> None:
    async def scenario(ledger: Ledger) -> None:
        async with ledger.member("a", instance_id="a") as a:
            await eventually(lambda: len(a.assignment) == 4)
            async with ledger.member("b", instance_id="b") as b:
                await eventually(lambda: (len(a.assignment), len(b.assignment)) == (2, 2))
                await asyncio.sleep(0.5)
                before = a.assignment, b.assignment
            async with ledger.member("b", instance_id="b") as again:
                await eventually(lambda: bool(again.assignment))
                assert (a.assignment, again.assignment) == before
                assert again.member_id != b.member_id

    run(bootstrap, topic_name, kind, scenario)


def test_of_two_members_with_one_instance_id_one_ends(bootstrap: str, topic_name: str, kind: type[Member]) -> None:
    async def scenario(ledger: Ledger) -> None:
        def ignore(partitions: tuple[TopicPartition, ...]) -> None:
            """The classic protocol replaces at once: the first finds out later."""

        quiet = {"on_assigned": ignore, "on_revoked": ignore, "on_lost": ignore}
        async with ledger.member("first", instance_id="one", **quiet) as first:
            await eventually(lambda: len(first.assignment) == 4)
            async with ledger.member("second", instance_id="one", **quiet) as second:
                ended, stays = (first, second) if kind is ClassicMember else (second, first)
                await eventually(lambda: ended.failure is not None and len(stays.assignment) == 4)
                code = E.FENCED_INSTANCE_ID if kind is ClassicMember else E.UNRELEASED_INSTANCE_ID
                assert isinstance(ended.failure, ClientError) and ended.failure.code is code
                assert ended.assignment == () and stays.failure is None

    run(bootstrap, topic_name, kind, scenario)


@pytest.mark.parametrize("leads", [True, False], ids=["leading", "following"])
def test_a_classic_member_shares_a_group_with_another_client(bootstrap: str, topic_name: str, leads: bool) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "readers",
        "partition.assignment.strategy": "range",
        "heartbeat.interval.ms": 200,
    }

    async def scenario(ledger: Ledger) -> None:
        other = Consumer(config)
        ours = ledger.member("ours")

        async def is_shared(count: int) -> None:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    await asyncio.to_thread(other.poll, 0.1)
                    theirs = [TopicPartition(one.topic, one.partition) for one in other.assignment()]
                    together = sorted([*theirs, *ours.assignment])
                    if len(ours.assignment) == count and together == list(ledger.partitions(0, 1, 2, 3)):
                        return

        try:
            if not leads:
                other.subscribe([ledger.topic])
                await is_shared(0)
            async with ours:
                if leads:
                    await eventually(lambda: len(ours.assignment) == 4)
                    other.subscribe([ledger.topic])
                await is_shared(2)
            await is_shared(0)
        finally:
            await asyncio.to_thread(other.close)

    run(bootstrap, topic_name, ClassicMember, scenario)
