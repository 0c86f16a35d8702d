"""Fifty members of one group over two hundred partitions that come, leave, crash and stall past their session time-out,
while the broker is killed, too: no partition has two owners, no commit is lost, and in the end everything is owned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.broker import BrokerProcess
from support.chaos import Chaos
from support.churn.classic import COOPERATIVE, EAGER, ClassicMember
from support.churn.consumer import ConsumerMember
from support.churn.ledger import Ledger
from support.churn.member import ChurnMember, Scene
from support.variants import kinds
from support.verbs import create_topic
from support.wire import Wire

SESSION_MS = 1_500
DEADLINE_S = 60.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": 200,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 250,
    "group.consumer.heartbeat.interval.ms": 250,
    "group.consumer.assignment.interval.ms": 50,
    "offsets.topic.num.partitions": 3,
}


class Kind(NamedTuple):
    make: Callable[[str, Scene], ChurnMember]
    members: int = 50
    partitions: int = 200


def either(name: str, scene: Scene) -> ChurnMember:
    is_new = scene.random.random() < 0.5
    return ConsumerMember(name, scene) if is_new else ClassicMember(name, scene, COOPERATIVE)


KINDS = {
    "eager": Kind(lambda name, scene: ClassicMember(name, scene, EAGER)),
    "cooperative": Kind(lambda name, scene: ClassicMember(name, scene, COOPERATIVE)),
    "consumer": Kind(ConsumerMember),
    # So few that at times all are of one protocol: the group is converted from one to the other and back.
    "mixed": Kind(either, members=5, partitions=20),
}


class Crowd:
    def __init__(self, scene: Scene, chaos: Chaos, kind: Kind) -> None:
        self._scene, self._chaos, self._kind = scene, chaos, kind
        self._count = 0
        self.members: list[ChurnMember] = []
        self._everybody: list[ChurnMember] = []

    def add(self) -> None:
        self._count += 1
        member = self._kind.make(f"m{self._count}", self._scene)
        self.members.append(member)
        self._everybody.append(member)
        member.start()

    def check(self) -> None:
        for member in self._everybody:
            if member.failure is not None:
                raise member.failure

    async def stir(self) -> None:
        """Something happens to a few of them."""
        chance = self._chaos.random
        for _ in range(chance.randrange(1, 8)):
            if not self.members:
                break
            member = chance.choice(self.members)
            match chance.choice(("crash", "leave", "stall", "stall", "come", "come")):
                case "crash":
                    self.members.remove(member)
                    await member.crash()
                case "leave":
                    self.members.remove(member)
                    await member.leave()
                case "stall":
                    member.stall(chance.uniform(0.5, 2.0) * SESSION_MS / 1_000)
                case _ if len(self.members) < self._kind.members:
                    self.add()
        while len(self.members) < self._kind.members // 2:
            self.add()

    async def settle(self) -> None:
        """Everything is owned, by those that are there."""
        ledger, deadline = self._scene.ledger, time.monotonic() + DEADLINE_S
        while True:
            self.check()
            owners = set(ledger.owners.values())
            if (
                len(ledger.owners) == ledger.partitions
                and owners <= {member.name for member in self.members}
                and all(member.is_settled and None not in member.positions.values() for member in self.members)
            ):
                return
            assert time.monotonic() < deadline, f"{len(ledger.owners)} partitions are owned, by {len(owners)} members"
            await asyncio.sleep(0.05)

    async def go_home(self) -> None:
        for member in self.members:
            await member.leave()
        self.check()


def committed(wire: Wire, scene: Scene) -> list[int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(
        name=scene.topic, partition_indexes=list(range(scene.ledger.partitions))
    )
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=scene.group, topics=[topic])
    answer = wire.call(OffsetFetchRequest(groups=[group]), 9).groups[0]
    assert answer.error_code == 0, answer.error_code
    return [row.committed_offset for row in sorted(answer.topics[0].partitions, key=lambda row: row.partition_index)]


@pytest.mark.parametrize("name", kinds(KINDS, ordinary={"consumer", "mixed"}))
def test_members_that_come_and_go_never_share_a_partition_and_lose_no_commit(
    make_broker: Callable[..., BrokerProcess], name: str
) -> None:
    kind = KINDS[name]
    broker = make_broker(settings=SETTINGS).start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "letters", partitions=kind.partitions)
        assert wire.call(FindCoordinatorRequest(coordinator_keys=["readers"]), 4).coordinators[0].error_code == 0
    chaos = Chaos(short_s=3.0)
    ledger = Ledger(kind.partitions)
    scene = Scene(broker.bootstrap_servers, "readers", topic.name, topic.id, ledger, chaos.random, SESSION_MS)

    async def run() -> None:
        crowd = Crowd(scene, chaos, kind)
        for _ in range(kind.members):
            crowd.add()
        await crowd.settle()
        while chaos.is_on:
            await crowd.stir()
            if chaos.random.random() < 0.15:
                await asyncio.to_thread(broker.restart, kill=True)
            await asyncio.sleep(chaos.random.uniform(0.0, 0.8))
            crowd.check()
        await crowd.settle()
        await crowd.go_home()

    asyncio.run(run())
    print(f"{ledger.commits} commits, {ledger.takeovers} takeovers, {ledger.fenced} fenced")
    with Wire(broker.bootstrap_servers) as wire:
        for offset, acknowledged, attempted in zip(
            committed(wire, scene), ledger.acknowledged, ledger.attempted, strict=True
        ):
            assert acknowledged <= offset <= attempted
