"""The values of the metadata store: JSON, one small structure per kind of key. Unknown fields are ignored, so that an
older broker can read what a newer one wrote."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from headpond.model import InvariantBroken

R = TypeVar("R")


class BadEntry(InvariantBroken):
    """The store holds something that this program can't have written: the message names the key and the reason."""

    def __init__(self, key: str, why: object) -> None:
        super().__init__(f"bad entry {key}: {why}")


class Row(msgspec.Struct, frozen=True, gc=False):
    pass


class ClusterRow(Row, frozen=True):
    id: str


class Endpoint(Row, frozen=True):
    """One listener of a broker, as clients are told to reach it."""

    name: str
    protocol: str
    host: str
    port: int


class BrokerRow(Row, frozen=True, omit_defaults=True):
    listeners: tuple[Endpoint, ...]
    incarnation: str
    rack: str | None = None
    fenced: bool = False


class TopicRow(Row, frozen=True):
    id: str
    partitions: Annotated[int, msgspec.Meta(ge=1)]


class NameRow(Row, frozen=True):
    name: str


class PartitionState(Row, frozen=True, omit_defaults=True):
    """One partition. The epoch of the partition counts every change, the epoch of the leader every change of leader and
    every start of the broker that leads. ``revision`` (that of the store's key, for compares) is not stored in the
    value."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    revision: int = 0


class FeatureRow(Row, frozen=True):
    level: int


class ProducerIdBlockRow(Row, frozen=True):
    next: int


_encoder = msgspec.json.Encoder()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def encode(row: object) -> bytes:
    if isinstance(row, PartitionState) and row.revision:
        row = msgspec.structs.replace(row, revision=0)
    return _encoder.encode(row)


def decode(key: str, value: bytes, kind: type[R]) -> R:
    """Raises ``BadEntry``."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        row: R = decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadEntry(key, error) from error
    return row
