"""Schemas, read without Spark: Spark's notation, and Avro's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headpond.spark.pipeline.avro_schema import WrongAvroSchema, columns_of, parse_avro_schema, spark_type
from headpond.spark.pipeline.ddl import WrongSchema, fields_of


def test_fields_of_every_kind_are_read() -> None:
    text = """
        id INT NOT NULL COMMENT 'the number',
        `odd name` STRING, -- a comment
        price DECIMAL(10, 2),
        tags array<string>,
        place: struct<city: string, at: map<string, array<double>>>,
        seen TIMESTAMP_NTZ
    """
    fields = fields_of(text)
    assert [(one.name, one.type, one.is_needed) for one in fields] == [
        ("id", "int", True),
        ("odd name", "string", False),
        ("price", "decimal(10,2)", False),
        ("tags", "array<string>", False),
        ("place", "struct<city:string,at:map<string,array<double>>>", False),
        ("seen", "timestamp_ntz", False),
    ]


@pytest.mark.parametrize(
    ("text", "sentence", "line"),
    [
        ("a INT,\nb STRNG", "STRNG is no type for b (did you mean string?)", 1),
        ("a INT b STRING", "the schema can't be read at 'b': a comma should come between columns", 0),
        ("a INT, A STRING", "the schema has A twice", 0),
        ("a", "the type of a is missing", 0),
        ("a array<string", "the type of a should have > where it has 'its end'", 0),
        ("a map<string>", "the type of a should have , where it has '>'", 0),
        ("a decimal(3", "the type of a lacks its )", 0),
        (", b INT", "the schema should have the name of a column where it has ','", 0),
        ("  ", "the schema is empty", 0),
    ],
)
def test_what_is_wrong_with_a_schema_is_told_with_its_line(text: str, sentence: str, line: int) -> None:
    with pytest.raises(WrongSchema) as caught:
        fields_of(text)
    assert (str(caught.value), caught.value.line) == (sentence, line)


RECORD: dict[str, Any] = {
    "type": "record",
    "name": "Point",
    "namespace": "geo",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "double"]}],
}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("string", "string"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "something else"}, "bigint"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "fixed", "name": "F", "size": 4}, "binary"),
        (
            {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 1},
            "decimal(6,1)",
        ),
        ({"type": "array", "items": {"type": "map", "values": "bytes"}}, "array<map<string,binary>>"),
        (["null", "int", "long"], "bigint"),
        (["float", "double"], "double"),
        (["int", "string"], "struct<member0:int,member1:string>"),
        (["null"], "void"),
        (RECORD, "struct<`x`:int,`y`:double>"),
        (
            {
                "type": "record",
                "name": "Line",
                "fields": [{"name": "a", "type": RECORD}, {"name": "b", "type": "geo.Point"}],
            },
            "struct<`a`:struct<`x`:int,`y`:double>,`b`:struct<`x`:int,`y`:double>>",
        ),
    ],
)
def test_avro_types_become_sparks(schema: Any, kind: str) -> None:
    assert spark_type(schema) == kind


def test_a_schema_that_is_no_record_is_one_column() -> None:
    assert columns_of(parse_avro_schema('"string"')) == [("value", "string")]
    assert columns_of(RECORD) == [("x", "int"), ("y", "double")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "this is no JSON: Expecting property name enclosed in double quotes in line 1"),
        ('"strnig"', "the type 'strnig' is not declared"),
        ("{}", "{} is no Avro type"),
        ('{"type": "record", "name": "R"}', "the record R has no list of fields"),
        ('{"type": "record", "fields": []}', "a record has no name"),
        (
            json.dumps({"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}),
            "Node contains itself: Spark has no such type",
        ),
    ],
)
def test_what_is_wrong_with_an_avro_schema_is_told(text: str, sentence: str) -> None:
    with pytest.raises(WrongAvroSchema) as caught:
        parse_avro_schema(text)
    assert str(caught.value) == sentence
