"""What has many parts is let go in slices: to free a million objects at once takes long.

Each is a generator for ``Slices.finish``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from headpond.coordination.slices import Work
from headpond.protocol.facts import struct_fields

DROPPED_AT_ONCE = 10_000
"""About 2 ms."""


def let_go(last_reference: list[Any]) -> Work[None]:
    """A message in a list of its own, which nothing else refers to. What others refer to as well stays as it is."""
    message_type: Any = type(last_reference[0])
    lists = [last_reference.copy()]
    last_reference.clear()
    left = DROPPED_AT_ONCE
    while lists:
        own = list(lists.pop())  # whose list it was may be gone with this line, but not what is in it
        while own:
            kind: Any = type(own[-1])
            names = _fields_with_more(kind, message_type)
            if names:
                element = own.pop()
                lists += [
                    more if isinstance(more, list) else [more] for name in names if (more := getattr(element, name))
                ]
                left -= 1
            else:
                step = min(left, len(own))
                del own[-step:]
                left -= step
            if left <= 0:
                left = DROPPED_AT_ONCE
                yield None


def emptied(collections: list[Any]) -> Work[None]:
    """Lists and dicts, in place, whoever refers to them. More may come while it pauses."""
    left = DROPPED_AT_ONCE
    while collections:
        items = collections[-1]
        if isinstance(items, dict):
            step = min(-(-left // 2), len(items))
            for _ in range(step):
                items.popitem()
            left -= 2 * step
        else:
            step = min(left, len(items))
            del items[len(items) - step :]
            left -= step
        if not items:
            collections.pop()
        left -= 1
        if left <= 0:
            left = DROPPED_AT_ONCE
            yield None


@cache
def _fields_with_more(kind: Any, message_type: Any) -> tuple[str, ...]:
    """Those that hold lists or structs, of a struct; none of anything else."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple(each.name for each in struct_fields(kind, message_type) if each.is_list or each.struct is not None)
