"""The keys that say how bytes become columns, and back: ``format``, ``schema`` and what belongs to each."""

from __future__ import annotations

from typing import get_args

from headpond.spark.pipeline.avro_schema import WrongAvroSchema, columns_of, parse_avro_schema
from headpond.spark.pipeline.ddl import WrongSchema, fields_of
from headpond.spark.pipeline.files import Files
from headpond.spark.pipeline.model import INFERRED, METADATA, Format, FormatKind
from headpond.spark.pipeline.table import Table

KINDS: tuple[FormatKind, ...] = get_args(FormatKind)
WITH_SCHEMA = ("json", "csv", "avro")
_OURS = ("mode", "columnnameofcorruptrecord")
"""Options of Spark's readers that decide what becomes of bad records: ``bad_records`` says that."""


def read_format(table: Table, files: Files, *, is_source: bool) -> Format:
    kind = table.choice("format", KINDS, "json")
    if is_source and not table.has("format"):
        table.wrong(None, f"format is missing: {', '.join(KINDS)}")
    options = table.settings("format_options") if kind in ("json", "csv") else {}
    if kind == "avro":
        return _avro(table, files, is_source=is_source)
    for name in options:
        if is_source and name.lower() in _OURS:
            table.wrong_setting("format_options", name, f"format_options can't have {name}: bad_records says it")
    schema = _schema(table, files, kind) if is_source and kind in WITH_SCHEMA else None
    return Format(kind, schema, options=options)


def _schema(table: Table, files: Files, kind: FormatKind) -> str | None:
    text, file = table.text("schema"), table.text("schema_file")
    if text is not None and file is not None:
        table.wrong("schema_file", "schema and schema_file: give one of them")
    if file is not None:
        text = files.text(table, "schema_file", file)
        key = "schema_file"
    else:
        key = "schema"
        if text is None and not table.has("schema"):
            hint = f" (or schema = {INFERRED!r})" if kind == "json" else ""
            table.wrong(None, f"schema is missing: the columns of the records, as 'id INT, name STRING'{hint}")
    if text is None:
        return None
    if text.strip().lower() == INFERRED:
        if kind != "json":
            table.wrong(key, f"the schema of {kind} can't be inferred: give its columns")
        return INFERRED
    _check_columns(table, key, text)
    return text.strip()


def _check_columns(table: Table, key: str, text: str) -> None:
    try:
        fields = fields_of(text)
    except WrongSchema as error:
        is_here = key == "schema"
        table.wrong_at(table.place_of_text(key).below(error.line) if is_here else table.place_of(key), str(error))
        return
    for field in fields:
        if field.name.lower() in METADATA:
            table.wrong(
                key, f"the column {field.name} has the name of one that every source has: {', '.join(METADATA)}"
            )


def _avro(table: Table, files: Files, *, is_source: bool) -> Format:
    framings = ("none", "confluent")
    is_framed = table.choice("framing", framings, "none") == "confluent"
    schema = _avro_file(table, files, "schema_file", table.text("schema_file", is_needed=True))
    writer_schemas: dict[int, str] = {}
    schema_id = 0
    if is_source:
        for number, file in table.settings("writer_schemas").items():
            if not number.isascii() or not number.isdigit():
                table.wrong("writer_schemas", f"writer_schemas: {number!r} is no schema id: 1, 2, 3, ...")
                continue
            text = _avro_file(table, files, "writer_schemas", file)
            if text is not None:
                writer_schemas[int(number)] = text
        if writer_schemas and not is_framed:
            table.wrong("writer_schemas", "writer_schemas has no effect unless framing is 'confluent'")
    elif (given := table.whole_number("schema_id", at_least=0)) is not None:
        schema_id = given
    return Format("avro", schema, is_framed=is_framed, writer_schemas=writer_schemas, schema_id=schema_id)


def _avro_file(table: Table, files: Files, key: str, file: str | None) -> str | None:
    text = None if file is None else files.text(table, key, file)
    if text is None:
        return None
    try:
        columns = columns_of(parse_avro_schema(text))
    except WrongAvroSchema as error:
        table.wrong(key, f"{file}: {error}")
        return None
    for name, _ in columns:
        if name in METADATA:
            table.wrong(key, f"{file}: the field {name} has the name of a column that every source has")
    return text
