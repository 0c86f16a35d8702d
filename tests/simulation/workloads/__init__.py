"""The programs that use the broker, by name; see ``site.py`` for what they get."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from simulation.site import Site
from simulation.workloads.consumers import consume
from simulation.workloads.idempotent import produce_idempotently
from simulation.workloads.plain import produce_plainly

WORKLOADS: dict[str, Callable[[Site], Coroutine[Any, Any, None]]] = {
    "plain": produce_plainly,
    "idempotent": produce_idempotently,
    "consumers": consume,
}
