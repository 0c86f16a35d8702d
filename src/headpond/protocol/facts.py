"""Reads the schema notation of ``types.py``: what each field of a message is, and in which versions.

Used when a codec is compiled, by the tests that make up messages, and by the tool that compares us with Kafka's own
definitions; never per message.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from headpond.protocol.types import Message

ALL_VERSIONS = range(32_768)
NO_VERSIONS = range(0)

_PLAIN = {bool: "bool", float: "float64", str: "string", bytes: "bytes"}
_WIRE_NAMES = {"int8", "int16", "int32", "int64", "uint16", "uint32", "uuid", "records", *_PLAIN.values()}


class FieldFacts(NamedTuple):
    name: str
    wire: str  # Kafka's name of the type, or of the element's type in a list; "struct" for a nested class
    struct: type[msgspec.Struct] | None
    is_list: bool
    versions: range
    nullable: range
    tag: int | None
    default: Any
    ignorable: bool


class MessageFacts(NamedTuple):
    name: str
    key: int
    versions: range
    flexible: int | None
    fields: tuple[FieldFacts, ...]

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible


def message_facts(message: type[Message]) -> MessageFacts:
    fields = struct_fields(message, message)
    return MessageFacts(message.__name__, message.KEY, message.VERSIONS, message.FLEXIBLE, fields)


@cache
def struct_fields(struct: type[msgspec.Struct], message: type[Message]) -> tuple[FieldFacts, ...]:
    """The fields of a message, or of a struct nested in it, in the order of the wire."""
    nested = {name: value for name, value in vars(message).items() if isinstance(value, type)}
    hints = get_type_hints(struct, localns=nested, include_extras=True)
    defaults = struct()
    return tuple(_field(name, hints[name], getattr(defaults, name)) for name in struct.__struct_fields__)


def _field(name: str, hint: Any, default: Any) -> FieldFacts:
    plain, notes = _unwrap(hint)
    words = iter(" ".join(notes).split())
    wire, is_list, struct = "", False, None
    versions, nullable, tag, ignorable = ALL_VERSIONS, NO_VERSIONS, None, False
    if get_origin(plain) in (Union, UnionType) and NoneType in get_args(plain):
        nullable = ALL_VERSIONS
        (one,) = (arg for arg in get_args(plain) if arg is not NoneType)
        plain, inner = _unwrap(one)
        words = iter([*words, *inner])
    if get_origin(plain) is list:
        is_list = True
        plain, inner = _unwrap(get_args(plain)[0])
        words = iter([*words, *inner])
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        wire, struct = "struct", plain
    else:
        wire = _PLAIN.get(plain, "")
    for word in words:
        if word in _WIRE_NAMES:
            wire = word
        elif word == "null":
            nullable = parse_versions(next(words))
        elif word == "tag":
            tag = int(next(words))
        elif word == "ignorable":
            ignorable = True
        else:
            versions = parse_versions(word)
    if not wire:
        raise TypeError(f"{name}: no wire type in {hint}")
    return FieldFacts(name, wire, struct, is_list, versions, nullable, tag, default, ignorable)


def _unwrap(hint: Any) -> tuple[Any, list[str]]:
    """``Annotated[X, "a", "b"]`` -> ``X, ["a", "b"]``."""
    if get_origin(hint) is Annotated:
        return hint.__origin__, list(hint.__metadata__)
    return hint, []


def parse_versions(text: str) -> range:
    """``"3+"``, ``"2-5"``, ``"4"`` or ``"never"``."""
    if text == "never":
        return NO_VERSIONS
    if text.endswith("+"):
        return range(int(text[:-1]), ALL_VERSIONS.stop)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
