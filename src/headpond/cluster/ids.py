"""UUIDs as Kafka uses them: 16 bytes inside, 22 characters of URL-safe base64 in text."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from headpond.model import TopicId
from headpond.ports import Random

# Kafka keeps the ids 0..99 for itself (the zero id, the metadata log, markers of log folders).
_RESERVED_BELOW = 100


def id_text(uuid: bytes) -> str:
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def parse_id(text: str) -> TopicId:
    """The 16 bytes behind ``text``; ``ValueError`` when it is no such id."""
    if len(text) != 22:
        raise ValueError(f"{text!r} is no id: an id has 22 characters")
    raw = urlsafe_b64decode(text + "==")  # leaves out what is not of its alphabet
    if len(raw) != 16:
        raise ValueError(f"{text!r} is no id: it has other characters than letters, digits, '-' and '_'")
    return TopicId(raw)


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
