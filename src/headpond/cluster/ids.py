"""New ids, made by chance as Kafka makes them."""

from __future__ import annotations

from headpond.model import TopicId
from headpond.model.ids import id_text
from headpond.ports import Random

# Kafka keeps the ids 0..99 for itself (the zero id, the metadata log, markers of log folders).
_RESERVED_BELOW = 100


def new_uuid(random: Random) -> bytes:
    """A random (version 4) UUID that is not reserved and whose text does not start with ``-``, which command lines
    would take for an option."""
    while True:
        raw = bytearray(random.random_bytes(16))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        uuid = bytes(raw)
        if int.from_bytes(uuid, "big") >= _RESERVED_BELOW and not id_text(uuid).startswith("-"):
            return uuid


def new_topic_id(random: Random) -> TopicId:
    return TopicId(new_uuid(random))
