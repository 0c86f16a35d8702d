"""UUIDs as Kafka uses them: 16 bytes inside, 22 characters of URL-safe base64 in text."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from headpond.model.partition import TopicId

_CHARACTERS = 22


def id_text(uuid: bytes) -> str:
    return urlsafe_b64encode(uuid)[:_CHARACTERS].decode("ascii")


def parse_id(text: str) -> TopicId:
    """The 16 bytes behind ``text``; ``ValueError`` when it is not an id."""
    if len(text) != _CHARACTERS:
        raise ValueError(f"{text!r} is not an id: an id has {_CHARACTERS} characters")
    raw = urlsafe_b64decode(text + "==")  # leaves out what is not of its alphabet
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not an id: it has other characters than letters, digits, '-' and '_'")
    return TopicId(raw)
