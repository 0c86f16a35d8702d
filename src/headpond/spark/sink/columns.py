"""Which columns a DataFrame that is written may have: the connector's, and ``timestamp``.

    value       string or binary; must be there. null: a record without a value, which deletes its key where a topic is
                compacted
    key         string or binary. null: no key
    topic       string. The option topic goes before it; without either a write is refused
    partition   int. null: by the key, or any
    headers     array<struct<key: string, value: binary>>. null: none
    timestamp   timestamp. null: the time of the write

``offset`` and ``timestampType``, which the source has, say where a record was and are left out. Any other is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headpond.model.nearest import did_you_mean
from headpond.spark.sink.errors import WrongWrite

KEY, VALUE, TOPIC, PARTITION, HEADERS, TIMESTAMP = "key", "value", "topic", "partition", "headers", "timestamp"
LEFT_OUT = ("offset", "timestampType")
NOTHING = "void"
"""The type of a column that is null in all rows, as ``lit(None)`` makes it."""
BYTES = ("string", "binary", NOTHING)
HEADER_TYPE = "array<struct<key:string,value:binary>>"

TYPES: dict[str, tuple[str, ...]] = {
    VALUE: BYTES,
    KEY: BYTES,
    TOPIC: ("string", NOTHING),
    PARTITION: ("int", NOTHING),
    HEADERS: (HEADER_TYPE, "array<struct<key:string,value:string>>", NOTHING),
    TIMESTAMP: ("timestamp", NOTHING),
}


def check_columns(fields: Sequence[Any], topic: str | None) -> None:
    """``fields``: of a Spark schema. Raises ``WrongWrite``."""
    kinds = {field.name: _kind(field.dataType) for field in fields}
    if len(kinds) != len(fields):
        raise WrongWrite("two columns have the same name")
    for name, kind in kinds.items():
        if name in LEFT_OUT:
            continue
        if name not in TYPES:
            raise WrongWrite(f"a record has no {name}: the columns are {', '.join(TYPES)}{did_you_mean(name, TYPES)}")
        if kind not in TYPES[name]:
            wanted = " or ".join(one for one in TYPES[name] if one != NOTHING)
            raise WrongWrite(f"column {name} is {kind}; it has to be {wanted}: cast it")
    if VALUE not in kinds:
        raise WrongWrite("there is no column value, which becomes the value of the records")
    if topic is None and kinds.get(TOPIC, NOTHING) == NOTHING:
        raise WrongWrite("where to? Give the option topic, or a column topic")


def _kind(data_type: Any) -> str:
    """As Spark writes it; strings of any length and collation are strings."""
    text: str = data_type.simpleString()
    return "string" if text.startswith(("varchar", "char", "string collate")) else text
