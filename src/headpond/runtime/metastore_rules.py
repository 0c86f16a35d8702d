"""What every metadata store demands of a transaction, so that code written on one works on the others."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.model import invariant
from headpond.ports import STORE_OPERATIONS_MAX, STORE_REQUEST_BYTES_MAX, Compare, Delete, Put


def check_transaction(compares: Sequence[Compare], writes: Sequence[Put | Delete]) -> None:
    """Raises ``InvariantBroken``: whoever composes a transaction knows the limits and splits it."""
    count = len(compares) + len(writes)
    invariant(count <= STORE_OPERATIONS_MAX, "a transaction has too many operations", count, STORE_OPERATIONS_MAX)
    size_bytes = sum(len(compare.key.encode()) for compare in compares)
    keys: set[str] = set()
    for write in writes:
        invariant(write.key != "", "a key is never empty")
        invariant(write.key not in keys, "a transaction writes a key once", write.key)
        keys.add(write.key)
        size_bytes += len(write.key.encode()) + (len(write.value) if isinstance(write, Put) else 0)
    invariant(size_bytes <= STORE_REQUEST_BYTES_MAX, "a transaction is too large", size_bytes, STORE_REQUEST_BYTES_MAX)


def prefix_end(prefix: str) -> str | None:
    """The smallest string greater than all that start with ``prefix``, in the order of code points (which is that of
    their UTF-8 bytes); None when there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if 0xD800 <= code <= 0xDFFF:  # half characters can't be stored
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[:index] + chr(code)
    return None
