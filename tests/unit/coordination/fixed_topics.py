"""Topics for groups without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headpond.coordination.groups.consumer import TopicFacts
from headpond.coordination.groups.consumer.topics import FoundByRegex
from headpond.model import TopicId


class FixedTopics:
    """``TopicsView`` that holds what it was given."""

    def __init__(self, topics: Mapping[str, TopicFacts], version: int = 0) -> None:
        self._topics = dict(topics)
        self._names = {facts.topic_id: name for name, facts in topics.items()}
        self.version = version
        self.found = FoundByRegex()

    def facts(self, name: str) -> TopicFacts | None:
        return self._topics.get(name)

    def name_of(self, topic_id: TopicId) -> str | None:
        return self._names.get(topic_id)

    def names(self) -> Iterable[str]:
        return self._topics
