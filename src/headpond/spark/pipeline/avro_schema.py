"""An Avro schema as a type of Spark's, and what is wrong with one. Pure; the mapping is that of Spark's own module.

Unions      with null: a column that may be null. int and long: bigint; float and double: double. Others become a
            struct with ``member0``, ``member1``, ..., one of which is set.
Not taken   a schema that contains itself: Spark has no such type.
"""

from __future__ import annotations

import json
from typing import Any

_SIMPLE = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("int", "time-millis"): "int",
    ("long", "time-micros"): "bigint",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
    ("string", "uuid"): "string",
}


class WrongAvroSchema(ValueError):
    """One sentence."""


def parse_avro_schema(text: str) -> Any:
    """The schema as JSON says it, checked as far as ``spark_type`` goes."""
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise WrongAvroSchema(f"this is no JSON: {error.msg} in line {error.lineno}") from None
    spark_type(schema)
    return schema


def columns_of(schema: Any) -> list[tuple[str, str]]:
    """(name, type) of each column; one that is no record is one column, ``value``."""
    if isinstance(schema, dict) and schema.get("type") == "record":
        names = {_full_name(schema): ""}
        return [(field["name"], _type(field.get("type"), names)) for field in schema["fields"]]
    return [("value", spark_type(schema))]


def spark_type(schema: Any) -> str:
    return _type(schema, {})


def _type(schema: Any, named: dict[str, str]) -> str:
    if isinstance(schema, str):
        if schema in _SIMPLE:
            return _SIMPLE[schema]
        known = named.get(schema, next((kind for name, kind in named.items() if name.endswith(f".{schema}")), None))
        if known is None:
            raise WrongAvroSchema(f"the type {schema!r} is not declared")
        if not known:
            raise WrongAvroSchema(f"{schema} contains itself: Spark has no such type")
        return known
    if isinstance(schema, list):
        return _union(schema, named)
    if not isinstance(schema, dict) or "type" not in schema:
        raise WrongAvroSchema(f"{json.dumps(schema)[:60]} is no Avro type")
    return _complex(schema, named)


def _complex(schema: dict[str, Any], named: dict[str, str]) -> str:
    kind = schema["type"]
    if kind == "record":
        return _record(schema, named)
    if kind == "array":
        return f"array<{_type(schema.get('items'), named)}>"
    if kind == "map":
        return f"map<string,{_type(schema.get('values'), named)}>"
    if kind in ("enum", "fixed"):
        name = _full_name(schema)
        found = "string" if kind == "enum" else _decimal(schema) or "binary"
        named[name] = found
        return found
    if isinstance(kind, str) and (logical := schema.get("logicalType")):
        if kind == "bytes" and logical == "decimal":
            return _decimal(schema) or "binary"
        return _LOGICAL.get((kind, logical)) or _type(kind, named)
    return _type(kind, named)


def _record(schema: dict[str, Any], named: dict[str, str]) -> str:
    name = _full_name(schema)
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, dict) and "name" in one for one in fields):
        raise WrongAvroSchema(f"the record {name} has no list of fields")
    named[name] = ""
    inner = ",".join(f"`{field['name']}`:{_type(field.get('type'), named)}" for field in fields)
    named[name] = f"struct<{inner}>"
    return named[name]


def _union(branches: list[Any], named: dict[str, str]) -> str:
    kinds = [_type(branch, named) for branch in branches if branch != "null"]
    if not kinds:
        return "void"
    if len(set(kinds)) == 1:
        return kinds[0]
    if set(kinds) == {"int", "bigint"}:
        return "bigint"
    if set(kinds) == {"float", "double"}:
        return "double"
    return "struct<" + ",".join(f"member{number}:{kind}" for number, kind in enumerate(kinds)) + ">"


def _decimal(schema: dict[str, Any]) -> str | None:
    if schema.get("logicalType") != "decimal":
        return None
    return f"decimal({schema.get('precision', 38)},{schema.get('scale', 0)})"


def _full_name(schema: dict[str, Any]) -> str:
    if not isinstance(schema.get("name"), str):
        raise WrongAvroSchema(f"a {schema['type']} has no name")
    space = schema.get("namespace")
    return f"{space}.{schema['name']}" if space and "." not in schema["name"] else str(schema["name"])
