"""A disk that refused the mark of a clean shutdown ended the stop in the middle: files and the lock stayed open.

The mark is worth one recovery less: without it everything else is closed, and the next start recovers.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headpond.client.admin import Admin
from headpond.client.consumer import LATEST
from headpond.client.producer import Producer, Record
from headpond.model import TopicPartition
from headpond.storage.folder.names import CLEAN_SHUTDOWN
from simulation.final import DATA_DIR
from simulation.harness.faults import Faults
from simulation.regressions.script import Scene, act
from simulation.site import Topic

pytestmark = pytest.mark.simulation

ORDERS = TopicPartition("orders", 0)
MARK = f"{DATA_DIR}/{CLEAN_SHUTDOWN}"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda faults: faults.fail_next_write(MARK), id="its write fails"),
        pytest.param(lambda faults: faults.fail_syncs(MARK), id="its sync fails"),
    ],
)
def test_a_broker_stops_in_order_and_recovers_if_the_disk_refuses_the_mark(fault: Callable[[Faults], None]) -> None:
    async def script(scene: Scene) -> None:
        disk = scene.broker.disk
        async with scene.client() as client:
            async with Producer(client) as producer:
                await (await producer.send("orders", 0, Record(None, b"kept")))
            fault(disk.faults)
            await scene.stopped()
            assert MARK not in disk.paths()
            await scene.serves_again()
            assert (await Admin(client).list_offsets({ORDERS: LATEST}))[ORDERS].offset == 1
            disk.faults.heal()
            await scene.stopped()
            assert MARK in disk.paths()

    act(script, Topic("orders", 1))
