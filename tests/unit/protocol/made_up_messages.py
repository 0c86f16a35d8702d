"""Messages made up by Hypothesis from our schema, for every test in this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headpond.protocol import schema
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.types import Message

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}

# Codes that every implementation knows, and times between 1970 and 2100: peers turn such fields into objects of theirs.
KNOWN_ERROR_CODES = (-1, 0, 1, 3, 6, 35, 87, 100)
TIME_MS = st.integers(0, 4_102_444_800_000)


def all_messages() -> list[type[Message]]:
    """Every message class of the schema."""
    found = []
    for module in pkgutil.iter_modules(schema.__path__):
        for value in vars(importlib.import_module(f"{schema.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Message) and value is not Message:
                found.append(value)
    return found


def message_name(message: type[Message]) -> str:
    return message.__name__


def for_all(strategy: st.SearchStrategy[Any], check: Callable[[Any], None], *, examples: int) -> None:
    """Runs ``check`` on made-up values; the smallest one that fails it is reported."""
    configured = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    configured(given(strategy)(lambda value: check(value)))()


@cache
def messages(message: type[Message], version: int, *, realistic: bool = False) -> st.SearchStrategy[Any]:
    """Messages in which every field of that version has some value, and every other field its default."""
    return _structs(message, message, version, realistic)


def _structs(
    kind: type[msgspec.Struct], message: type[Message], version: int, realistic: bool
) -> st.SearchStrategy[Any]:
    values = {
        field.name: _values(field, message, version, realistic)
        for field in struct_fields(kind, message)
        if version in field.versions
    }
    return st.builds(kind, **values)


def _values(field: FieldFacts, message: type[Message], version: int, realistic: bool) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        one = _structs(field.struct, message, version, realistic)
    else:
        one = _scalars(field, realistic)
    if field.is_list:
        one = st.lists(one, max_size=3)
    if version in field.nullable:
        one = st.none() | one
    if field.tag is not None:
        one = st.just(field.default) | one
    return one


def _scalars(field: FieldFacts, realistic: bool) -> st.SearchStrategy[Any]:
    if realistic and field.name.endswith("error_code"):
        return st.sampled_from(KNOWN_ERROR_CODES)
    if realistic and field.wire == "int64" and any(word in field.name for word in ("time", "_ms", "period")):
        return TIME_MS
    if field.wire in INTEGERS:
        low, high = INTEGERS[field.wire]
        return st.integers(low, high)
    if field.wire == "bool":
        return st.booleans()
    if field.wire == "float64":
        return st.floats(allow_nan=False, allow_infinity=False)
    if field.wire == "string":
        return st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.just("é" * 70)
    if field.wire == "uuid":
        return st.binary(min_size=16, max_size=16)
    return st.binary(max_size=9) | st.just(b"\x07" * 200)
