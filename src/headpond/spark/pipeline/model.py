"""A declared pipeline: what is read, what is done with it, where it goes. Plain values; nobody here knows Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headpond.spark.pipeline.mistakes import Place

FormatKind = Literal["json", "csv", "avro", "string", "binary"]
Reading = Literal["stream", "latest", "table"]
SinkKind = Literal["topic", "parquet", "console"]
Mode = Literal["append", "update", "complete"]

DEAD_LETTERS = "dead-letters"
"""The name of the query that sends bad records."""
INFERRED = "inferred"
"""In the place of a schema: looked up in the first records, and kept from then on."""
SAMPLE_RECORDS = 1_000
"""How many records a schema is inferred from."""

KEY, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, TOMBSTONE = (
    "_key",
    "_topic",
    "_partition",
    "_offset",
    "_timestamp",
    "_headers",
    "_tombstone",
)
METADATA = (KEY, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, TOMBSTONE)
"""Columns that a source has beside those of its records."""


@dataclass(frozen=True, slots=True)
class Format:
    kind: FormatKind
    schema: str | None = None
    """Spark's notation, or ``INFERRED``; for avro the schema file's own text."""
    is_framed: bool = False
    """Avro: five bytes before the data, a zero and a schema id, as Confluent's serializers write them."""
    writer_schemas: Mapping[int, str] = field(default_factory=dict)
    """Avro: the schema that records with this id were written with, where it is not ``schema``."""
    schema_id: int = 0
    """Avro: the id that a sink writes."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    place: Place
    format: Format
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    reading: Reading = "stream"
    key: Literal["string", "binary"] = "string"
    start: str = "earliest"
    with_headers: bool = False
    watermark: Watermark | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_stream(self) -> bool:
        return self.reading == "stream"


@dataclass(frozen=True, slots=True)
class Step:
    """SQL, or a function of this file or of one beside it."""

    name: str
    place: Place
    sql: str | None = None
    sql_place: Place | None = None
    """Where its first line is."""
    function: Callable[..., Any] | None = None
    """The Python form's."""
    python_file: str | None = None
    python_name: str = ""
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    place: Place
    input: str
    kind: SinkKind
    mode: Mode
    target: str
    """Topic or folder."""
    topic_partitions: int | None = None
    """A topic that is not there is created with so many."""
    format: Format = field(default_factory=lambda: Format("json"))
    key: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    partition_by: tuple[str, ...] = ()
    upsert: tuple[str, ...] = ()
    order_by: str | None = None
    delete_when: str | None = None
    rows_max: int = 20
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class BadRecords:
    action: Literal["fail", "dead-letter"] = "fail"
    topic: str = ""

    @property
    def are_kept(self) -> bool:
        return self.action == "dead-letter"


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    file: str
    place: Place
    folder: str
    """Checkpoints, and what else is to be known the next time."""
    bootstrap: str | None
    kafka: Mapping[str, str] = field(repr=False)
    """Settings of the client, with ``kafka.`` before them."""
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    bad_records: BadRecords
    trigger: str | None
    """None: all that is there, then the end; else how often, as ``10 seconds``."""
    refresh_s: float
    """A pipeline that goes on reads its tables anew so often."""
    spark: Mapping[str, str]
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that nobody may read in a message."""

    def group_of(self, sink: Sink) -> str:
        """The group that is told how far a sink is: the pipeline's name, and for the second sink and on with its."""
        return self.name if sink == self.sinks[0] else f"{self.name}.{sink.name}"
