"""A read_committed fetch does not say which transactions were aborted.

Promise  who reads committed never sees a record of an aborted transaction.
Found    an aborted transaction, and a consumer.
"""

from __future__ import annotations

from headpond.broker.handlers.fetch import read
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2", "consumers"), topics=("lasting",), partitions=1)


def plant(patch: Patch) -> None:
    patch.set(read, "_list_aborted", lambda data, replica, end_offset: None)
