"""What the code in an answer says of the outcome, where several codes leave it open."""

from __future__ import annotations

from headpond.model import ErrorCode
from simulation.history import Operation
from simulation.site import Site

PERHAPS_DONE = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Also said by whoever wrote a change, and then lost the log or the store, or waited too long for them."""


def told(site: Site, operation: Operation, error: int) -> None:
    """End an operation that was asked for once, with the code of the answer."""
    if not error:
        site.ok(operation)
        return
    site.refused(operation, error)
    if error in PERHAPS_DONE:
        operation.outcome = "unknown"
