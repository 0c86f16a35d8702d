"""A fetch gets what is appended and not flushed.

Promise  nothing is visible that a power cut could take back (headpond.flush=ack).
Found    a consumer that reads to the end, and a power cut before the sync.
"""

from __future__ import annotations

from headpond.broker.handlers.fetch.read import FetchReader
from headpond.broker.handlers.fetch.wanted import Fetch
from headpond.broker.handlers.fetch.wire import PartitionData
from headpond.broker.replicas.replicas import Replica
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(
    workloads=("plain", "idempotent", "consumers"),
    kinds=("power cut", "crash at operation", "slow disk"),
    topics=("lasting",),
    partitions=1,
)


def plant(patch: Patch) -> None:
    prepare = FetchReader._prepare

    def indiscreet(self: FetchReader, fetch: Fetch, data: PartitionData, replica: Replica) -> int:
        limit = prepare(self, fetch, data, replica)
        return limit if fetch.read_committed else replica.partition.log.log_end_offset

    patch.set(FetchReader, "_prepare", indiscreet)
