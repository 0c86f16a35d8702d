"""How far a query is: an offset for each partition, in the JSON that Spark writes to its checkpoint.

    {"orders": {"0": 23, "1": 40}, "orders#u3Yc0bWtQ7KkZ0m0b8m9XA": {}}

This is the connector's ``{topic: {"partition": offset}}``. An entry without partitions, which any reader of that form
passes over, tells which topic it was: its id, behind a character that no topic's name has. So a topic that was deleted
and made anew is noticed. Without ids (the connector's own checkpoints, old brokers) nothing is compared.

Spark compares these texts letter by letter, so there is one form: names in order, partitions in the order of their
numbers, ids last.

``{"#start": {}}`` stands for the start of a new query, before anybody has asked a broker what that is. Beside
partitions it says that the first batch reaches from there to here (see ``source/stream.py``, Trigger.Once). ``"#begin":
{}`` beside partitions says that the query begins here, and that the first batch is empty: it is written where there are
no ids, which say as much, since nobody else writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headpond.model import ZERO_TOPIC_ID, TopicPartition
from headpond.model.ids import id_text, parse_id
from headpond.spark.kafka.errors import WrongCheckpoint

ID_MARK = "#"
START_KEY = "#start"
BEGIN_KEY = "#begin"

Document = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Offsets:
    by_partition: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    is_from_start: bool = False
    is_begin: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether this source has written it for sure: ids and marks are in no other's."""
        return bool(self.topic_ids) or self.is_from_start or self.is_begin

    def is_same_place(self, other: Offsets) -> bool:
        """The same offsets of the same topics, whatever is marked."""
        mine, its = (replace(one, is_from_start=False, is_begin=False) for one in (self, other))
        return mine.document() == its.document()

    def get(self, tp: TopicPartition) -> int | None:
        return self.by_partition.get(tp)

    def is_same_topic(self, topic: str, other: Offsets) -> bool:
        """Whether both mean the same topic by this name, as far as they know."""
        mine, its = self.topic_ids.get(topic), other.topic_ids.get(topic)
        return mine is None or its is None or mine == its

    def document(self) -> Document:
        found: Document = {}
        for tp in sorted(self.by_partition):
            found.setdefault(tp.topic, {})[str(tp.partition)] = self.by_partition[tp]
        for topic in list(found):
            topic_id = self.topic_ids.get(topic, ZERO_TOPIC_ID)
            if topic_id != ZERO_TOPIC_ID:
                found[f"{topic}{ID_MARK}{id_text(topic_id)}"] = {}
        if self.is_from_start:
            found[START_KEY] = {}
        if self.is_begin:
            found[BEGIN_KEY] = {}
        return found


def start_document() -> Document:
    """The offset of a query that has not begun: the same whenever it is asked for."""
    return {START_KEY: {}}


def read_document(document: object) -> Offsets | None:
    """None: the query has not begun. ``WrongCheckpoint`` for what no query of this source has written."""
    if document == start_document():
        return None
    if not isinstance(document, dict):
        raise _foreign(document)
    offsets: dict[TopicPartition, int] = {}
    topic_ids: dict[str, bytes] = {}
    for name, by_partition in document.items():
        if not isinstance(name, str) or not isinstance(by_partition, dict):
            raise _foreign(document)
        topic, mark, identity = name.partition(ID_MARK)
        if mark:
            if name not in (START_KEY, BEGIN_KEY):
                topic_ids[topic] = _read_id(identity, document)
            continue
        for partition, offset in by_partition.items():
            is_offset = isinstance(offset, int) and not isinstance(offset, bool) and offset >= 0
            if not (partition.isascii() and partition.isdigit() and is_offset):
                raise _foreign(document)
            offsets[TopicPartition(topic, int(partition))] = offset
    return Offsets(offsets, topic_ids, is_from_start=START_KEY in document, is_begin=BEGIN_KEY in document)


def check_first(end: Offsets) -> None:
    """``WrongCheckpoint`` where a first batch is to be done again that another source has planned: it has rows, and
    where they begin is not in the log."""
    if end.by_partition and not end.is_ours:
        raise WrongCheckpoint(
            "the first batch of this checkpoint was planned by another source, Spark's own connector perhaps, and "
            'never finished: finish it with format("kafka"), or give this query a checkpointLocation of its own'
        )


def _read_id(text: str, document: object) -> bytes:
    try:
        return parse_id(text)
    except ValueError:
        raise _foreign(document) from None


def _foreign(document: object) -> WrongCheckpoint:
    shown = str(document)
    shown = shown if len(shown) <= 200 else shown[:200] + "..."
    return WrongCheckpoint(
        f"the checkpoint is not one of a query on topics: its offset is {shown}, where "
        '{"topic": {"partition": offset}} is expected; give this query a checkpointLocation of its own'
    )
