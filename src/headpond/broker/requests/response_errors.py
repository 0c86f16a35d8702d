"""The error codes that a response carries, wherever they are in it: what the metrics count.

Works on every message of the schema: which fields lead to an ``error_code`` is found out once per message class. One
message, AddPartitionsToTxn, calls it ``partition_error_code`` in places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from headpond.protocol.facts import struct_fields
from headpond.protocol.types import Message

_NAMES = ("error_code", "partition_error_code")
_Plan = tuple[str, tuple[tuple[str, bool, Any], ...]]
"""The field with the struct's own code, if it has one; those with more under them: name, is a list, their plan."""


def error_codes(response: Message) -> Iterable[int]:
    """Every code in it but 0, in the order of the message: for answers that are not long."""
    plan = _plan(type(response), type(response))
    if not plan[1]:  # the small answers, which are the frequent ones
        return (code,) if plan[0] and (code := getattr(response, plan[0])) else ()
    found: list[int] = []
    _collect(response, plan, found)
    return found


def _collect(struct: Any, plan: _Plan, found: list[int]) -> None:
    own, fields = plan
    if own and (code := getattr(struct, own)):
        found.append(code)
    for name, is_list, inner_plan in fields:
        inner = getattr(struct, name)
        if inner is None:
            continue
        for each in inner if is_list else (inner,):
            _collect(each, inner_plan, found)


def all_codes(response: Message) -> Iterator[int]:
    """Every code in it, 0 included: so many that whoever counts them may want to pause."""
    return _codes(response, _plan(type(response), type(response)))


def _codes(struct: Any, plan: _Plan) -> Iterator[int]:
    own, fields = plan
    yield getattr(struct, own) if own else 0
    for name, is_list, inner_plan in fields:
        inner = getattr(struct, name)
        if inner is None:
            continue
        if not is_list:
            yield from _codes(inner, inner_plan)
        elif not inner_plan[1]:  # the leaves: thousands of partitions, perhaps
            yield from map(attrgetter(inner_plan[0]), inner)
        else:
            for each in inner:
                yield from _codes(each, inner_plan)


@cache
def _plan(struct: type[msgspec.Struct], message: type[Message]) -> _Plan:
    own, fields = "", []
    for field in struct_fields(struct, message):
        if field.name in _NAMES:
            own = field.name
        elif field.struct is not None:
            inner = _plan(field.struct, message)
            if inner[0] or inner[1]:
                fields.append((field.name, field.is_list, inner))
    return own, tuple(fields)
