"""What is done with an answer that took long to put together, in slices: encoded, and its errors counted.

Each is a generator for ``Slices.finish``.
"""

from __future__ import annotations

from typing import Any

from headpond.broker.requests.pacing import ANSWER_BYTES_MAX, AnswerTooLarge
from headpond.broker.requests.response_errors import all_codes
from headpond.broker.requests.routes import Route
from headpond.coordination.slices import Work
from headpond.ports import Part

PIECE_BYTES = 131_072
"""A large answer leaves in pieces of about this size: none of it is copied in one go."""
CODES_AT_ONCE = 10_000
"""About 2 ms."""


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
