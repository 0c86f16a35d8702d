"""A static member that came back to a stable classic group with other topics got its former partitions.

It took its place over without a rebalance, whatever it had subscribed to: topics new to the group had no reader.
"""

from __future__ import annotations

import pytest

from headpond.client.group.classic import ClassicMember
from headpond.client.group.member import MemberSettings
from headpond.model import TopicPartition
from simulation.regressions.script import Scene, act
from simulation.site import Topic

pytestmark = pytest.mark.simulation

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)
SETTINGS = MemberSettings(session_timeout_ms=20_000)


@pytest.mark.parametrize("is_killed", [False, True], ids=["goes on", "is killed meanwhile"])
@pytest.mark.parametrize(
    ("topics", "owned"),
    [
        pytest.param(["orders", "payments"], (ORDERS, PAYMENTS), id="one more"),
        pytest.param(["payments"], (PAYMENTS,), id="another"),
    ],
)
def test_a_static_member_that_is_back_reads_the_topics_that_it_asks_for_now(
    topics: list[str], owned: tuple[TopicPartition, ...], is_killed: bool
) -> None:
    async def script(scene: Scene) -> None:
        async with scene.client() as client:
            async with ClassicMember(client, "billing", ["orders"], instance_id="pod", settings=SETTINGS) as before:
                await scene.until_owned(before, ORDERS)
            if is_killed:
                await scene.killed()
            async with ClassicMember(client, "billing", topics, instance_id="pod", settings=SETTINGS) as member:
                await scene.until_owned(member, *owned)

    act(script, Topic("orders", 1), Topic("payments", 1))
