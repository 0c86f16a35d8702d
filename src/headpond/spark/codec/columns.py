"""The columns of a topic: the names and types that Spark's own Kafka connector gives them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

KEY, VALUE, TOPIC, PARTITION, OFFSET = "key", "value", "topic", "partition", "offset"
TIMESTAMP, TIMESTAMP_TYPE, HEADERS = "timestamp", "timestampType", "headers"

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

COLUMN_TYPES: dict[str, pa.DataType] = {
    KEY: pa.binary(),
    VALUE: pa.binary(),
    TOPIC: pa.string(),
    PARTITION: pa.int32(),
    OFFSET: pa.int64(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_TYPE: pa.int32(),
    HEADERS: pa.list_(HEADER_TYPE),
}

ALL_COLUMNS = tuple(COLUMN_TYPES)
DEFAULT_COLUMNS = tuple(name for name in ALL_COLUMNS if name != HEADERS)
"""Without headers, which most readers do not look at: they are asked for (``includeHeaders``)."""

CREATE_TIME, APPEND_TIME = 0, 1
"""What the column ``timestampType`` says: the producer's time, or the broker's."""


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """The Arrow schema of some columns, in their order. ``ValueError`` for a name that does not exist."""
    fields = []
    for name in columns:
        if name not in COLUMN_TYPES:
            raise ValueError(f"there is no column {name!r}; a topic has {', '.join(ALL_COLUMNS)}")
        fields.append(pa.field(name, COLUMN_TYPES[name]))
    return pa.schema(fields)
