"""A request that failed as a whole, answered in its own API: what Kafka's ``getErrorResponse`` is for each request.

The code goes where the response has a place for it: into the message itself or, where it has none in that version, into
every element that answers for an element of the request (a partition, a group, a resource). Which fields these are is
read from the schema: the lists of the two messages stand for each other in their order, the fields that say what an
element is have the same name in both.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from headpond.coordination.slices import Work, finish_now
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.apis import APIS
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.types import Message

_CODES = ("error_code", "partition_error_code")
_NAMES = (
    "index", "partition_index", "partition_id", "partition", "name", "topic", "topic_id", "key", "group_id",
    "transactional_id", "producer_id", "resource_type", "resource_name",
)  # fmt: skip
"""The fields that say which element of the request an element of the response answers for."""
_CALLED_OTHERWISE = {"partition_index": "partition"}
"""In the requests of Fetch."""
_NOT_MIRRORED = {35}
"""DescribeLogDirs answers for folders, which the request does not name: without a code of its own it is empty."""


ELEMENTS_AT_ONCE = 1_000
"""Answered for at a stretch: about 3 ms."""


def error_response(key: int, version: int, request: Any, failed: BrokerError) -> Any:
    """The answer to ``request``, a small one, that says why nothing came of it."""
    return finish_now(error_response_in_slices(key, version, request, failed))


def error_response_in_slices(key: int, version: int, request: Any, failed: BrokerError) -> Work[Any]:
    """The same for a request of any size."""
    info = APIS[key]
    plan = _plan(info.response, info.request, version, key in _NOT_MIRRORED)
    return _Filling(failed).fill(plan, request)


class _Plan(NamedTuple):
    """How one struct of a response is made from the one of the request that it answers for."""

    struct: type[msgspec.Struct]
    code: str  # "": it has none, those under it have
    message: str
    copied: tuple[tuple[str, str], ...]  # name here, name in the request ("": the element itself, a plain value)
    list_name: str
    list_in_request: str
    inner: Any  # the plan for the elements of that list


class _Filling:
    def __init__(self, failed: BrokerError) -> None:
        self._code = ErrorCode(failed.code)
        self._message = failed.message
        self._left = ELEMENTS_AT_ONCE

    def fill(self, plan: _Plan, asked: Any) -> Work[Any]:
        values = {name: getattr(asked, source) if source else asked for name, source in plan.copied}
        if plan.code:
            values[plan.code] = self._code
            if plan.message and self._message:
                values[plan.message] = self._message
        elif plan.inner is not None:
            elements = values[plan.list_name] = []
            for each in getattr(asked, plan.list_in_request) or ():
                self._left -= 1
                if self._left <= 0:
                    self._left = ELEMENTS_AT_ONCE
                    yield None
                elements.append((yield from self.fill(plan.inner, each)))
        return plan.struct(**values)


@cache
def _plan(response: type[Message], request: type[Message], version: int, is_flat: bool) -> _Plan:
    return _of_struct(response, response, request, request, version, is_flat)


def _of_struct(
    struct: type[msgspec.Struct],
    response: type[Message],
    asked: type[msgspec.Struct] | None,
    request: type[Message],
    version: int,
    is_flat: bool,
) -> _Plan:
    fields = _fields(struct, response, version)
    in_request = {} if asked is None else _fields(asked, request, version)
    code = next((name for name in _CODES if name in fields), "")
    message = "error_message" if "error_message" in fields else ""
    copied = () if struct is response else _copied(fields, None if asked is None else in_request)
    plan = _Plan(struct, code, message, copied, "", "", None)
    if code or is_flat:
        return plan
    answers = next(each for each in fields.values() if each.is_list and _has_code(each, response, version))
    asked_for = next(each for each in in_request.values() if each.is_list)
    assert answers.struct is not None
    inner = _of_struct(answers.struct, response, asked_for.struct, request, version, is_flat)
    return plan._replace(list_name=answers.name, list_in_request=asked_for.name, inner=inner)


def _fields(struct: type[msgspec.Struct], message: type[Message], version: int) -> dict[str, FieldFacts]:
    return {field.name: field for field in struct_fields(struct, message) if version in field.versions}


def _copied(fields: dict[str, FieldFacts], asked: dict[str, FieldFacts] | None) -> tuple[tuple[str, str], ...]:
    """``asked``: None where the request has plain values, of which there is one to copy."""
    names = [name for name in _NAMES if name in fields]
    if asked is None:
        return ((names[0], ""),)
    pairs = ((name, name if name in asked else _CALLED_OTHERWISE.get(name, "")) for name in names)
    return tuple((name, source) for name, source in pairs if source in asked)


def _has_code(field: FieldFacts, message: type[Message], version: int) -> bool:
    if field.struct is None:
        return False
    inner = _fields(field.struct, message, version)
    return any(name in inner for name in _CODES) or any(
        each.is_list and _has_code(each, message, version) for each in inner.values()
    )
