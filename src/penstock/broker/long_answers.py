"""What is done with an answer that took long to put together, in slices: encoded, its errors counted, let go.

Each is a generator for ``Slices.finish``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from penstock.broker.pacing import ANSWER_BYTES_MAX, AnswerTooLarge
from penstock.broker.response_errors import all_codes
from penstock.broker.routes import Route
from penstock.coordination.slices import Work
from penstock.ports import Part
from penstock.protocol.facts import struct_fields

PIECE_BYTES = 131_072
"""A large answer leaves in pieces of about this size: none of it is copied in one go."""
CODES_AT_ONCE = 10_000
DROPPED_AT_ONCE = 10_000
"""About 2 ms each."""


def encoded(route: Route, correlation_id: int, response: Any) -> Work[list[Part]]:
    """Raises ``AnswerTooLarge``."""
    pieces: list[Part] = [b""]
    size_bytes = 0
    out = bytearray()
    for _ in route.append_in_slices(out, response):
        if len(out) >= PIECE_BYTES:
            size_bytes += len(out)
            if size_bytes > ANSWER_BYTES_MAX:
                raise AnswerTooLarge(f"more than {ANSWER_BYTES_MAX} bytes")
            pieces.append(bytes(out))
            out.clear()
        yield None
    pieces.append(bytes(out))
    pieces[0] = route.head(correlation_id, size_bytes + len(out))
    return pieces


def counted(response: Any) -> Work[dict[int, int]]:
    """How often the answer has which error."""
    times: dict[int, int] = {}
    for number, code in enumerate(all_codes(response), start=1):
        if code:
            times[code] = times.get(code, 0) + 1
        if number % CODES_AT_ONCE == 0:
            yield None
    return times


def let_go(last_reference: list[Any]) -> Work[None]:
    """A message in a list of its own, which nothing else refers to: to free a million objects at once takes long. What
    others refer to as well stays as it is."""
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


@cache
def _fields_with_more(kind: Any, message_type: Any) -> tuple[str, ...]:
    """Those that hold lists or structs, of a struct; none of anything else."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple(each.name for each in struct_fields(kind, message_type) if each.is_list or each.struct is not None)
