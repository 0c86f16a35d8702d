"""Partitions that a topic gained before a classic group became a consumer group (KIP-848) were read by nobody.

The group's hash of its topics was taken when it changed its protocol, so that no later look found the growth; and a
static member that comes back with another protocol and the same topics is no reason for a rebalance by itself.
"""

from __future__ import annotations

import pytest

from headpond.client.admin import Admin
from headpond.client.group.classic import ClassicMember
from headpond.client.group.consumer import ConsumerMember
from headpond.client.group.member import MemberSettings
from headpond.model import TopicPartition
from simulation.regressions.script import Scene, act
from simulation.site import Topic

pytestmark = pytest.mark.simulation

SETTINGS = MemberSettings(session_timeout_ms=20_000)


def orders(count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("orders", partition) for partition in range(count))


@pytest.mark.parametrize("is_killed", [False, True], ids=["goes on", "is killed meanwhile"])
def test_a_topic_that_has_grown_is_read_whole_when_a_static_member_changes_its_protocol(is_killed: bool) -> None:
    async def script(scene: Scene) -> None:
        async with scene.client() as client:
            async with ClassicMember(client, "billing", ["orders"], instance_id="pod", settings=SETTINGS) as classic:
                await scene.until_owned(classic, *orders(2))
            await Admin(client).create_partitions("orders", 4)
            if is_killed:
                await scene.killed()
            async with ConsumerMember(client, "billing", ["orders"], instance_id="pod") as member:
                await scene.until_owned(member, *orders(4))

    act(script, Topic("orders", 2))
