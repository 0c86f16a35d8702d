"""A read_committed fetch gets everything up to the high watermark.

Promise  who reads committed sees no record of a transaction before that is committed.
Found    a consumer that reads while a transaction is open, or before one that is aborted later.
"""

from __future__ import annotations

from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.wanted import Fetch
from headpond.broker.handlers.fetch.wire import PartitionData
from headpond.broker.replicas.replicas import Replica
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("transactions", "transactions v2", "consumers"), topics=("lasting",), partitions=1)


def plant(patch: Patch) -> None:
    prepare = FetchReader._prepare

    def indiscreet(self: FetchReader, fetch: Fetch, data: PartitionData, replica: Replica) -> int:
        limit = prepare(self, fetch, data, replica)
        return data.high_watermark if fetch.read_committed else limit

    patch.set(FetchReader, "_prepare", indiscreet)
