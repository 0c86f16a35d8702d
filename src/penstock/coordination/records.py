"""What a coordinator writes: a key that says what it is about, and what is now true of it (or that it is gone).

    key      type i16 · the key's fields            value    version i16 · the value's fields

The key's type decides which messages these are (``KEY`` of the schema classes). A value of None is a tombstone. Types
that this version does not know are left alone when the log is read: a newer broker wrote them, and its tombstones
must stay readable for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, NamedTuple

from penstock.ports import Buffer
from penstock.protocol.codec import decoder, encoder
from penstock.protocol.errors import MalformedMessage
from penstock.protocol.types import Message

_i16 = Struct(">h")


class CoordinatorRecord(NamedTuple):
    key: Message
    value: Message | None


class RecordType(NamedTuple):
    key: type[Message]
    value: type[Message]
    written_version: int
    """Of the value; older ones are read too."""
    version_of: Callable[[Any], int] | None = None
    """Where it depends on the value (some fields are in some versions only) or on a finalized feature."""


class RecordCodec:
    """Records of one internal topic to bytes and back."""

    def __init__(self, types: Mapping[int, RecordType]) -> None:
        self._types = dict(types)
        self._type_of_key = {kind.key: number for number, kind in types.items()}
        # By the first two bytes of a key and of a value: looked up per record while a million of them are loaded.
        self._key_decoders: dict[bytes, tuple[RecordType, Callable[[Buffer, int], tuple[Message, int]]] | None] = {}
        self._value_decoders: dict[tuple[RecordType, bytes], Callable[[Buffer, int], tuple[Message, int]]] = {}

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        number = self._type_of_key[type(record.key)]
        kind = self._types[number]
        key = _i16.pack(number) + encoder(kind.key, 0)(record.key)
        if record.value is None:
            return key, None
        version = kind.written_version if kind.version_of is None else kind.version_of(record.value)
        return key, _i16.pack(version) + encoder(kind.value, version)(record.value)

    def decode(self, key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
        """None: a type that is not known here. Raises ``MalformedMessage``."""
        if key is None or len(key) < 2:
            raise MalformedMessage("a coordinator's record without a key")
        kind = self._types.get(_i16.unpack_from(key)[0])
        if kind is None:
            return None
        decoded_key, _ = decoder(kind.key, 0)(key, 2)
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        if len(value) < 2:
            raise MalformedMessage("a coordinator's record with half a value")
        decoded_value, _ = decoder(kind.value, _i16.unpack_from(value)[0])(value, 2)
        return CoordinatorRecord(decoded_key, decoded_value)
