"""A produce that is held back keeps a view of the receive memory that all connections share.

Promise  what is stored is what was sent.
Found    a request that has to wait (for a new segment, for a transaction's coordinator): meanwhile the memory is
         somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence

from headpond.broker.handlers.produce.held import Prepared
from headpond.broker.handlers.produce.transactional import Admitted
from headpond.broker.handlers.produce.wire import Result
from simulation.ablations.planting import Patch, Scenario

SCENARIO = Scenario(workloads=("plain", "idempotent", "transactions"))


def plant(patch: Patch) -> None:
    def keep(self: Prepared, outcomes: Sequence[Sequence[Result | Admitted]], first: int = 0) -> None:
        for topic_number, outcome in enumerate(outcomes, first):
            for number, one in enumerate(outcome):
                if not isinstance(one, Result):
                    self.looked_at[topic_number, number] = (one[1], one[2])

    patch.set(Prepared, "keep_rewritten", keep)
