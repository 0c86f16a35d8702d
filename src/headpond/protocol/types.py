"""The words that the message schemas are written in.

A message is a class; its fields are annotated with a wire type, the versions that carry the field, and Kafka's default:

    epoch: i32 = -1                                        in every version
    epoch: Annotated[i32, "9+"] = -1                       since version 9; encoding another value for v8 is an error
    epoch: Annotated[i32, "9+ ignorable"] = -1             the same, but v8 silently drops it
    name: Annotated[str | None, "0-12 null 7+"] = None     gone since v13, may be null since v7
    epoch: Annotated[i32, "12+ tag 3"] = -1                a tagged field: written only when it differs from its default

``bool``, ``float`` (float64), ``str``, ``bytes`` and ``list[...]`` are wire types themselves; ``T | None`` alone means
"may be null in every version" ("null never": in none, the default None only means that nothing is set yet). Structs
are classes nested in their message. ``facts.py`` reads this notation.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

import msgspec

Buffer: TypeAlias = bytes | bytearray | memoryview

i8 = Annotated[int, "int8"]
i16 = Annotated[int, "int16"]
i32 = Annotated[int, "int32"]
i64 = Annotated[int, "int64"]
u16 = Annotated[int, "uint16"]
u32 = Annotated[int, "uint32"]
Uuid = Annotated[bytes, "uuid"]
Records = Annotated[bytes | bytearray | memoryview, "records"]  # opaque here: headpond.protocol.records looks inside

ZERO_UUID = bytes(16)


def versions(first: int, last: int) -> range:
    """Both ends included, as Kafka writes them."""
    return range(first, last + 1)


# Messages are trees: nothing in them points back up, so the cycle collector has nothing to find.
class Struct(msgspec.Struct, gc=False):
    """A structure inside a message."""


class Message(msgspec.Struct, gc=False):
    """A whole message: a request, a response, or the key or value of a record that Kafka keeps in its own topics."""

    KEY: ClassVar[int] = -1  # the API key, or the record type in an internal topic; -1 where there is none
    VERSIONS: ClassVar[range]
    FLEXIBLE: ClassVar[int | None] = None  # the first version with compact lengths and tagged fields
