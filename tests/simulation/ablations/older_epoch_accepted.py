"""Producers of an older epoch are not fenced, neither by partitions nor by the coordinator.

Promise  from InitProducerId on, nothing of an earlier epoch of that id is accepted.
Found    two programs with one transactional id, one of which was paused or cut off when the other came.
"""

from __future__ import annotations

from typing import Any

from headpond.coordination.home import Producer
from headpond.coordination.transactions import machine
from headpond.coordination.transactions.state import Transaction
from headpond.storage.producers.producers import ProducerStates
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("transactions", "transactions v2", "copying"), kinds=("pause client", "cut", "slow link")
)


def plant(patch: Patch) -> None:
    require_current = machine._require_current

    def lenient(found: Transaction, producer: Producer) -> None:
        if producer.epoch < found.producer_epoch:
            producer = producer._replace(epoch=found.producer_epoch)
        require_current(found, producer)

    patch.set(ProducerStates, "_check_epoch", lambda self, header, state: None)
    patch.set(machine, "_require_current", lenient)
    for name in ("ends_v1", "ends_v2"):
        patch.set(machine, name, _lenient_end(getattr(machine, name)))


def _lenient_end(ends: Any) -> Any:
    def lenient(was: Transaction, producer_id: int, epoch: int, *, is_commit: bool, is_busy: bool) -> bool:
        may_have = min(epoch, was.producer_epoch) if was.state.name != "ONGOING" else was.producer_epoch
        return bool(ends(was, producer_id, may_have, is_commit=is_commit, is_busy=is_busy))

    return lenient
