"""The few pieces of the wire format that are too irregular to write inline: varints, tags, and their refusals.

Compiled decoders read most lengths inline and come here for what is longer than one byte. Reading past the end of the
buffer raises ``IndexError``; the compiled function turns it into ``MalformedMessage``.
"""

from __future__ import annotations

import codecs
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from headpond.protocol.errors import MalformedMessage, UnsupportedField

if TYPE_CHECKING:
    from collections.abc import Callable

    from headpond.protocol.types import Buffer

STRING_BYTES_MAX = 0x7FFF  # Kafka's limit in every version, although a compact string could say more
LENGTH_MAX = 0x7FFF_FFFF

# An element of no bytes at all would let a few bytes ask for billions of objects; no message of today has one.
EMPTY_ELEMENTS_MAX = 1_000

# Of a request: in one array and, where it is decoded in slices, in all its arrays together. Answers have no such limit:
# a group may have committed more offsets than this.
ELEMENTS_MAX = 1_000_000
TAGGED_FIELDS_MAX = 10_000

SLICE_ELEMENTS = 2_048
"""Decoded or encoded at a stretch: 2-3 ms. Long texts and lists of numbers count as several, see ``ELEMENT_*``."""
ELEMENT_BYTES = 64
ELEMENT_NUMBERS = 32
ELEMENT_TAGGED_BYTES = 4
"""As much text, as many numbers of a list, as many bytes of unknown tagged fields take as long as an element."""

STRUCT_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "float64": "d",
    "uuid": "16s",
}  # fmt: skip

# Lists of numbers are mostly this short (replicas, partitions): those have their struct ready.
FEW = 9


@cache
def few(code: str, method: str) -> tuple[Callable[..., Any], ...]:
    """The bound ``pack`` or ``unpack_from`` for 0 to 8 numbers of that format."""
    return tuple(getattr(struct.Struct(f">{count}{code}"), method) for count in range(FEW))


def rest_of_varint(buffer: Buffer, first: int, position: int) -> tuple[int, int]:
    """The value and the end of an unsigned varint whose first byte, at ``position - 1``, has its top bit set."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > LENGTH_MAX:
                raise MalformedMessage(f"length {value} is out of range")
            return value, position
    raise MalformedMessage("varint of more than 5 bytes")


def rest_of_string_length(buffer: Buffer, first: int, position: int) -> tuple[int, int]:
    """The same for the length of a compact string, which is written plus one."""
    value, position = rest_of_varint(buffer, first, position)
    if value > STRING_BYTES_MAX + 1:
        raise MalformedMessage(f"string of {value - 1} bytes")
    return value, position


def _with_replacements(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8 become U+FFFD, as in Kafka: three bytes each, so that a string might not fit into a
    message any more. Called for the first such byte; answers for the rest of the string."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    rest = error.object[error.start :].decode("utf-8", "replace")
    size_bytes = error.start + len(rest.encode())
    if size_bytes > STRING_BYTES_MAX:
        raise MalformedMessage(f"string of {len(error.object)} bytes that are no UTF-8, and {size_bytes} once they are")
    return rest, len(error.object)


TEXT_ERRORS = "headpond.protocol.text"
"""What ``str`` and ``decode`` are told for every string of a request: what comes out can be written again."""
codecs.register_error(TEXT_ERRORS, _with_replacements)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    first = buffer[position]
    if first < 0x80:
        return first, position + 1
    return rest_of_varint(buffer, first, position + 1)


def skip_tagged_fields(buffer: Buffer, first: int, position: int) -> int:
    """The end of a tagged section without known tags; ``first`` is the first byte of its count."""
    count = first
    if first > 0x7F:
        count, position = rest_of_varint(buffer, first, position)
    if count > TAGGED_FIELDS_MAX:
        raise MalformedMessage(f"{count} tagged fields")
    for _ in range(count):
        _, position = read_varint(buffer, position)
        size_bytes, position = read_varint(buffer, position)
        position += size_bytes
    return position


def varint(value: int) -> bytes:
    """``value`` as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_length(value: int) -> bytes:
    """The length of a compact string, already plus one."""
    if value > STRING_BYTES_MAX + 1:
        raise ValueError(f"string of {value - 1} bytes: the protocol allows {STRING_BYTES_MAX}")
    return varint(value)


def unsupported(message: Any, version: int, defaults: dict[str, Any]) -> UnsupportedField:
    """Says which of the fields that ``version`` does not have was set."""
    name = next(name for name, default in defaults.items() if getattr(message, name) != default)
    return UnsupportedField(f"{type(message).__qualname__}.{name}={getattr(message, name)!r} is not in v{version}")


def unsupported_null(message: Any, version: int, name: str) -> UnsupportedField:
    return UnsupportedField(f"{type(message).__qualname__}.{name} can't be null in v{version}")
