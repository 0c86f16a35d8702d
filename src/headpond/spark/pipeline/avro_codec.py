"""Avro values to columns and back, on executors: fastavro reads and writes, Arrow carries.

A value that can't be read is no failure here: it comes back without a record and with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headpond.spark.pipeline.avro_schema import columns_of, parse_avro_schema, spark_type

if TYPE_CHECKING:
    from headpond.spark.pipeline.model import Format

RECORD, REASON = "record", "reason"
MAGIC = 0
FRAME_BYTES = 5
"""A zero, and the id of the schema in four bytes."""


def column_types(format: Format) -> str:
    """The columns of the records, in Spark's notation."""
    assert format.schema is not None
    return ", ".join(f"`{name}` {kind}" for name, kind in columns_of(parse_avro_schema(format.schema)))


def make_decoder(format: Format, arrow_type: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """``arrow_type``: struct<record: struct<...>, reason: string>."""
    reader_text, writer_texts, is_framed = format.schema or "", dict(format.writer_schemas), format.is_framed

    def decode(values: pa.Array) -> pa.Array:
        reader = _Reader(reader_text, writer_texts, is_framed=is_framed)
        rows = [reader.row(value) for value in values.to_pylist()]
        try:
            return pa.array(rows, type=arrow_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):  # find the one
            return pa.array([_fitting(row, arrow_type) for row in rows], type=arrow_type)

    return decode


def make_encoder(format: Format) -> Callable[[pa.Array], pa.Array]:
    text, is_framed, schema_id = format.schema or "", format.is_framed, format.schema_id

    def encode(rows: pa.Array) -> pa.Array:
        from fastavro import parse_schema, schemaless_writer

        plain = parse_avro_schema(text)
        is_record = isinstance(plain, dict) and plain.get("type") == "record"
        schema = parse_schema(plain)
        frame = bytes([MAGIC]) + schema_id.to_bytes(4, "big") if is_framed else b""
        encoded = []
        for row in rows.to_pylist():
            stream = BytesIO()
            try:
                schemaless_writer(stream, schema, row if is_record else row["value"])
            except Exception as error:
                raise ValueError(f"a row does not fit the Avro schema of the sink: {_in_words(error)}") from None
            encoded.append(frame + stream.getvalue())
        return pa.array(encoded, type=pa.binary())

    return encode


class _Reader:
    def __init__(self, text: str, writer_texts: dict[int, str], *, is_framed: bool) -> None:
        from fastavro import parse_schema

        plain = parse_avro_schema(text)
        self._is_record = isinstance(plain, dict) and plain.get("type") == "record"
        self._shape = _shaper(plain)
        self._schema = parse_schema(plain)
        self._writers = {number: parse_schema(parse_avro_schema(one)) for number, one in writer_texts.items()}
        self._is_framed = is_framed

    def row(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            return {RECORD: None, REASON: None}
        try:
            found = self._read(value)
        except _Unreadable as error:
            return {RECORD: None, REASON: str(error)}
        except Exception as error:  # fastavro raises whatever the bytes lead it to
            return {RECORD: None, REASON: f"the value is no Avro of this schema: {_in_words(error)}"}
        return {RECORD: found if self._is_record else {"value": found}, REASON: None}

    def _read(self, value: bytes) -> Any:
        from fastavro import schemaless_reader

        begin, writer = 0, self._schema
        if self._is_framed:
            if len(value) < FRAME_BYTES or value[0] != MAGIC:
                raise _Unreadable("the value has no frame of five bytes, a zero and a schema id, before its Avro")
            schema_id = int.from_bytes(value[1:FRAME_BYTES], "big")
            begin = FRAME_BYTES
            if self._writers:
                if schema_id not in self._writers:
                    raise _Unreadable(
                        f"the value was written with schema id {schema_id}, which is not in writer_schemas"
                    )
                writer = self._writers[schema_id]
        stream = BytesIO(value[begin:])
        found = schemaless_reader(stream, writer, self._schema)
        if left := len(value) - begin - stream.tell():
            raise _Unreadable(f"the value is no Avro of this schema: {left} bytes are left over")
        return self._shape(found)


class _Unreadable(Exception):
    pass


def _fitting(row: dict[str, Any], arrow_type: pa.DataType) -> dict[str, Any]:
    try:
        pa.array([row], type=arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        return {RECORD: None, REASON: f"the value does not fit its type: {_in_words(error)}"}
    return row


def _in_words(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


# --- what fastavro gives and Arrow takes otherwise --------------------------------------------------------------------

Shape = Callable[[Any], Any]


def _shaper(schema: Any, named: dict[str, Shape] | None = None) -> Shape:
    named = {} if named is None else named
    if isinstance(schema, list):
        return _union_shaper(schema, named)
    if isinstance(schema, str):
        return named.get(schema, _as_is)
    kind = schema["type"]
    if kind == "record":
        fields = [(field["name"], _shaper(field["type"], named)) for field in schema["fields"]]
        found: Shape = lambda value: {name: shape(value[name]) for name, shape in fields}  # noqa: E731
        named[schema["name"]] = found
        return found
    if kind == "array":
        items = _shaper(schema["items"], named)
        return lambda value: [items(one) for one in value]
    if kind == "map":
        values = _shaper(schema["values"], named)
        return lambda value: [(key, values(one)) for key, one in value.items()]
    if schema.get("logicalType") == "uuid":
        return lambda value: str(value)
    if schema.get("logicalType") in ("time-millis", "time-micros"):
        scale = 1_000 if schema["logicalType"] == "time-millis" else 1
        return lambda value: _micros_of_day(value) // scale
    return _shaper(kind, named) if isinstance(kind, dict | list) else _as_is


def _union_shaper(branches: list[Any], named: dict[str, Shape]) -> Shape:
    from fastavro.validation import validate

    kept = [branch for branch in branches if branch != "null"]
    shapes = [_shaper(branch, named) for branch in kept]
    if not spark_type([branch for branch in kept if not isinstance(branch, str)] or ["null"]).startswith(
        "struct<member"
    ):
        if len(kept) == 1:
            return lambda value: None if value is None else shapes[0](value)
        if all(isinstance(branch, str) for branch in kept) and not spark_type(kept).startswith("struct<member"):
            return _as_is

    def shape(value: Any) -> Any:
        if value is None:
            return None
        for number, branch in enumerate(kept):
            if validate(value, branch, raise_errors=False):
                return {f"member{number}": shapes[number](value)}
        raise _Unreadable("the value fits none of a union's types")

    return shape


def _micros_of_day(value: Any) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + int(value.microsecond)


def _as_is(value: Any) -> Any:
    return value
