"""The topics of the cluster as consumer groups see them, and the fingerprint by which a group notices a change.

A group does not watch topics: it stores a hash of those that it subscribes to (id and partition count of each that
exists) with its epoch, and computes it anew when it is told that something happened to one of them. Another hash means
another epoch, hence another assignment. Racks are left out: no assignor looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple, Protocol

from headpond.cluster.image import MetadataImage
from headpond.model import TopicId

FOUND_MAX = 16
"""Expressions whose topics are remembered: a fleet of groups has few."""

_fact = Struct(">16si")
_i64 = Struct(">q")


class TopicFacts(NamedTuple):
    topic_id: TopicId
    partition_count: int


class TopicsView(Protocol):
    """What exists now."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    def facts(self, name: str) -> TopicFacts | None:
        """None: there is no such topic."""

    def name_of(self, topic_id: TopicId) -> str | None: ...

    def names(self) -> Iterable[str]: ...

    found: FoundByRegex


class FoundByRegex:
    """Which topics match an expression, as they were found last; of the expressions that were looked for last."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, frozenset[str]]] = {}

    def get(self, regex: str, version: int) -> frozenset[str] | None:
        """None: nobody has looked for it in these topics."""
        found = self._found.get(regex)
        return found[1] if found is not None and found[0] == version else None

    def put(self, regex: str, version: int, names: frozenset[str]) -> None:
        self._found.pop(regex, None)
        if len(self._found) >= FOUND_MAX:
            del self._found[next(iter(self._found))]
        self._found[regex] = (version, names)


class ImageTopics:
    """``TopicsView`` on the broker's image of the metadata, always as of now."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.found = FoundByRegex()

    @property
    def version(self) -> int:
        return self._image.revision

    def facts(self, name: str) -> TopicFacts | None:
        topic = self._image.topics.get(name)
        return None if topic is None else TopicFacts(topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: TopicId) -> str | None:
        return self._image.topic_names.get(topic_id)

    def names(self) -> Iterable[str]:
        return self._image.topics


def metadata_hash(names: Iterable[str], topics: TopicsView) -> int:
    """Of those that exist; 0 when none does. Another hash than Kafka's: one that finds its own there bumps the group's
    epoch once."""
    digest = blake2b(digest_size=8)
    is_empty = True
    for name in sorted(names):
        facts = topics.facts(name)
        if facts is not None:
            digest.update(_fact.pack(*facts))
            is_empty = False
    return 0 if is_empty else int(_i64.unpack(digest.digest())[0])
