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

from headpond.ports import Buffer
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.types import Message

_i16 = Struct(">h")
_Decode = Callable[[Buffer, int], tuple[Message, int]]


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
        self._key_encoders: dict[type[Message], tuple[RecordType, bytes, Callable[[Any], bytes]]] = {}
        # Looked up per record while a million of them are loaded.
        self._key_decoders: dict[int, _Decode] = {}
        self._value_decoders: dict[int, _Decode] = {}

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        key_class = type(record.key)
        known = self._key_encoders.get(key_class)
        if known is None:
            number = self._type_of_key[key_class]
            known = self._types[number], _i16.pack(number), encoder(key_class, 0)
            self._key_encoders[key_class] = known
        kind, prefix, encode_key = known
        key = prefix + encode_key(record.key)
        if record.value is None:
            return key, None
        version = kind.written_version if kind.version_of is None else kind.version_of(record.value)
        return key, _i16.pack(version) + encoder(kind.value, version)(record.value)

    def decode(self, key: Buffer | None, value: Buffer | None) -> CoordinatorRecord | None:
        """None: a type that is not known here. Raises ``MalformedMessage``."""
        if key is None or len(key) < 2:
            raise MalformedMessage("a coordinator's record without a key")
        number = key[0] << 8 | key[1]
        decode_key = self._key_decoders.get(number)
        if decode_key is None:
            kind = self._types.get(number)
            if kind is None:
                return None
            decode_key = self._key_decoders[number] = decoder(kind.key, 0)
        if value is None:
            return CoordinatorRecord(decode_key(key, 2)[0], None)
        if len(value) < 2:
            raise MalformedMessage("a coordinator's record with half a value")
        number_and_version = number << 16 | value[0] << 8 | value[1]
        decode_value = self._value_decoders.get(number_and_version)
        if decode_value is None:
            decode_value = decoder(self._types[number].value, _i16.unpack_from(value)[0])
            self._value_decoders[number_and_version] = decode_value
        return _new(CoordinatorRecord, (decode_key(key, 2)[0], decode_value(value, 2)[0]))


_new = tuple.__new__
