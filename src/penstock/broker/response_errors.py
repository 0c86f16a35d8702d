"""The error codes that a response carries, wherever they are in it: what the metrics count.

Works on every message of the schema: which fields lead to an ``error_code`` is found out once per message class.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from penstock.protocol.facts import struct_fields
from penstock.protocol.types import Message

_Plan = tuple[bool, tuple[tuple[str, bool, Any], ...]]
"""Whether the struct has a code itself; the fields under which there are more: name, is a list, their plan."""


def error_codes(response: Message) -> Iterator[int]:
    """Every code in it but 0, in the order of the message."""
    return _codes(response, _plan(type(response), type(response)))


def _codes(struct: Any, plan: _Plan) -> Iterator[int]:
    has_code, fields = plan
    if has_code and struct.error_code:
        yield struct.error_code
    for name, is_list, inner_plan in fields:
        inner = getattr(struct, name)
        if inner is None:
            continue
        if not is_list:
            yield from _codes(inner, inner_plan)
        elif not inner_plan[1]:  # the leaves: thousands of partitions, perhaps
            for each in inner:
                if each.error_code:
                    yield each.error_code
        else:
            for each in inner:
                yield from _codes(each, inner_plan)


@cache
def _plan(struct: type[msgspec.Struct], message: type[Message]) -> _Plan:
    has_code, fields = False, []
    for field in struct_fields(struct, message):
        if field.name == "error_code":
            has_code = True
        elif field.struct is not None:
            inner = _plan(field.struct, message)
            if inner[0] or inner[1]:
                fields.append((field.name, field.is_list, inner))
    return has_code, tuple(fields)
