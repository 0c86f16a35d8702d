"""Bytes to columns: beside the topic's columns, the record as a struct, or the reason why there is none.

    decoded = decode(frame, source.format, schema)     ->   ..., _record struct<...>, _reason string

A null value is a tombstone: no record, and no reason either. Columns that the schema says are NOT NULL must be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from headpond.spark.pipeline.columns import column
from headpond.spark.pipeline.model import Format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD, REASON = "_record", "_reason"
_PARSED, _CORRUPT = "_parsed", "_corrupt_text"
_NO_TEXT = "the value is no text in UTF-8"


def decode(frame: DataFrame, format: Format, schema: StructType) -> DataFrame:
    if format.kind in ("json", "csv"):
        return _text(frame, format, schema)
    if format.kind == "avro":
        return _avro(frame, format, schema)
    if format.kind == "string":
        text = F.col("value").cast("string")
        is_text = F.col("value").isNull() | F.is_valid_utf8(text)
        return frame.withColumn(RECORD, F.struct(text.alias("value"))).withColumn(
            REASON, F.when(~is_text, F.lit(_NO_TEXT))
        )
    return frame.withColumn(RECORD, F.struct(F.col("value"))).withColumn(REASON, F.lit(None).cast("string"))


def _text(frame: DataFrame, format: Format, schema: StructType) -> DataFrame:
    text = F.col("value").cast("string")
    options = {**format.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    if format.kind == "json":
        with_rest = StructType([*schema.fields]).add(_CORRUPT, StringType())
        parsed = F.from_json(text, with_rest, options)
        reason = _why_no_json(text, schema)
    else:
        ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
        parsed = F.from_csv(text, F.lit(f"{ddl}, {_CORRUPT} STRING"), options)
        reason = F.lit("the line does not fit the schema: another number of columns, or a value of another type")
    is_corrupt = F.col(_PARSED).isNull() | F.col(f"{_PARSED}.{_CORRUPT}").isNotNull()
    is_more = ~_is_one_json(text, format.options) if format.kind == "json" else F.lit(False)
    missing = [
        F.when(_field(name).isNull(), F.lit(name)) for name in (one.name for one in schema.fields if not one.nullable)
    ]
    why = F.when(F.col("value").isNull(), F.lit(None)).when(~F.is_valid_utf8(text), F.lit(_NO_TEXT))
    why = why.when(is_corrupt, reason).when(is_more, F.lit("the value is no JSON: something comes behind its end"))
    if missing:
        lacking = F.concat_ws(", ", *missing)
        why = why.when(lacking != "", F.concat(F.lit("there is no value for "), lacking))
    record = F.struct(*(_field(field.name).alias(field.name) for field in schema.fields))
    return frame.withColumn(_PARSED, parsed).withColumn(REASON, why).withColumn(RECORD, record).drop(_PARSED)


def _is_one_json(text: Column, options: Mapping[str, str]) -> Column:
    """Spark reads the first value and does not look behind it. In brackets, whatever is there must be JSON, too: a
    second value makes the list longer. Something that closes the bracket itself does not close a brace, and the other
    way round: what is one value in both is one value."""
    given = {**options, "mode": "PERMISSIVE"}
    listed = F.from_json(F.concat(F.lit("["), text, F.lit("\n]")), "array<struct<>>", given)
    named = F.from_json(F.concat(F.lit('{"":'), text, F.lit("\n}")), "map<string,struct<>>", given)
    return F.coalesce((F.size(listed) == 1) & (F.size(named) == 1), F.lit(False))


def _why_no_json(text: Column, schema: StructType) -> Column:
    """Which fields there are that have no value after parsing, where it is JSON at all."""
    wrong = [
        F.when(
            F.get_json_object(text, f"$['{field.name}']").isNotNull() & _field(field.name).isNull(),
            F.lit(f"{field.name} is no {field.dataType.simpleString()}"),
        )
        for field in schema.fields
        if "'" not in field.name
    ]
    named = F.concat_ws(", ", *wrong)
    told = F.when(named == "", F.lit("the value is no JSON object of this schema")).otherwise(
        F.concat(F.lit("the value does not fit the schema: "), named)
    )
    return F.when(F.try_parse_json(text).isNull(), F.lit("the value is no JSON")).otherwise(told)


def _field(name: str) -> Column:
    return column(name, of=_PARSED)


def _avro(frame: DataFrame, format: Format, schema: StructType) -> DataFrame:
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type

    from headpond.spark.pipeline import avro_codec

    both = StructType().add(avro_codec.RECORD, schema).add(avro_codec.REASON, StringType())
    decoder = arrow_udf(avro_codec.make_decoder(format, to_arrow_type(both, timezone="UTC")), both)
    found = frame.withColumn(_PARSED, decoder("value"))
    return (
        found.withColumn(REASON, F.col(f"{_PARSED}.{avro_codec.REASON}"))
        .withColumn(RECORD, F.col(f"{_PARSED}.{avro_codec.RECORD}"))
        .drop(_PARSED)
    )
