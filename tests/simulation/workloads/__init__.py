"""The programs that use the broker, by name; see ``site.py`` for what they get."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from simulation.site import Site
from simulation.workloads.admin import administrate
from simulation.workloads.consumer_members import be_consumer_members
from simulation.workloads.consumers import consume
from simulation.workloads.copying import copy
from simulation.workloads.idempotent import produce_idempotently
from simulation.workloads.members import be_classic_members
from simulation.workloads.offsets import commit_offsets
from simulation.workloads.plain import produce_plainly
from simulation.workloads.transactions import write_transactions
from simulation.workloads.transactions_v2 import write_transactions_v2

WORKLOADS: dict[str, Callable[[Site], Coroutine[Any, Any, None]]] = {
    "plain": produce_plainly,
    "idempotent": produce_idempotently,
    "consumers": consume,
    "transactions": write_transactions,
    "transactions v2": write_transactions_v2,
    "copying": copy,
    "members": be_classic_members,
    "consumer members": be_consumer_members,
    "offsets": commit_offsets,
    "admin": administrate,
}
