"""EndTxn v5 of a fenced producer was taken for a retry if the one that fenced it had ended with v4.

Only an end of version 2 raises the epoch. After one of version 1 the epoch before is that of a fenced producer: it was
told that its transaction had ended, and got the identity of the other one.
"""

from __future__ import annotations

import pytest

from headpond.client.transaction import Transaction
from headpond.model import ErrorCode, TopicPartition
from simulation.regressions.script import Scene, act
from simulation.site import Topic
from simulation.workloads.producer_v2 import ProducerV2, StepFailed

pytestmark = pytest.mark.simulation

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize("is_killed", [False, True], ids=["goes on", "is killed meanwhile"])
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_a_fenced_producer_has_no_share_in_what_a_version_1_client_has_ended(is_commit: bool, is_killed: bool) -> None:
    async def script(scene: Scene) -> None:
        async with scene.client() as client:
            fenced = ProducerV2(client, "copy", timeout_ms=60_000, patience_s=10)
            await fenced.init()
            present = Transaction(client, "copy", timeout_ms=60_000)
            await present.begin()
            await present.add([ORDERS])
            await (present.commit() if is_commit else present.abort())
            if is_killed:
                await scene.killed()
            with pytest.raises(StepFailed) as refused:
                await fenced.end(is_commit=is_commit)
            assert refused.value.code == ErrorCode.PRODUCER_FENCED
            await present.add([ORDERS])
            await present.commit()

    act(script, Topic("orders", 1))
