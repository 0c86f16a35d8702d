"""What records become: each format's columns, and the reason where a record can't be read."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.spark.pipeline.failures import RunFailed
from headpond.testing import Broker, Record
from spark.pipelines import Declared, counts, headers_of
from support.internal_client import run_with_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JSON_WITH_LETTERS = """
    name = "{topic}"
    [bad_records]
    action = "dead-letter"
    [source.orders]
    topic = "{topic}"
    format = "json"
    headers = true
    schema = '''
        id INT NOT NULL,
        item STRING,
        price DECIMAL(10, 2),
        at TIMESTAMP,
        tags ARRAY<STRING>
    '''
    [step.all]
    sql = '''
        SELECT *, _key AS key, _topic AS topic, _offset AS offset, _tombstone AS gone, size(_headers) AS hs FROM orders
    '''
    [sink.table]
    from = "all"
    parquet = "orders"
"""

BAD_JSON: list[tuple[bytes, str]] = [
    (b'{"id": "seven"}', "the value does not fit the schema: id is no int"),
    (b'{"id": 1.5, "tags": 3}', "the value does not fit the schema: id is no int, tags is no array<string>"),
    (b"{broken", "the value is no JSON"),
    (b"", "the value is no JSON"),
    (b"[1, 2]", "the value is no JSON object of this schema"),
    (b"5", "the value is no JSON object of this schema"),
    (b'{"item": "bread"}', "there is no value for id"),
    (b"\xff\xfe{}", "the value is no text in UTF-8"),
    (b'{"id": 1, "item": "\xff"}', "the value is no text in UTF-8"),
    (b'{"id": 1} and more', "the value is no JSON: something comes behind its end"),
    (b'{"id": 1}{"id": 2}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 1}, {"id": 2}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 2}]', "the value is no JSON: something comes behind its end"),
    (b'{"id": 2}}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 3}],[{"id": 4}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 3}}, "": {"id": 4}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 3}, "": {"id": 4}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 3}\n]\n}', "the value is no JSON: something comes behind its end"),
    (b'{"id": 3}\x00', "the value is no JSON: something comes behind its end"),
]


def test_json_becomes_columns_and_what_does_not_fit_goes_to_the_dead_letters_with_its_reason(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    good = {"id": 1, "item": "apples", "price": 2.5, "at": "2026-01-02T03:04:05Z", "tags": ["a"], "unknown": 1}
    spark_broker.create_topic(topic)
    spark_broker.produce(
        topic,
        [
            Record(json.dumps(good), key="k1", headers={"trace": "t1"}),
            Record(None, key="k2"),
            *(Record(value, key=f"bad{number}", headers={"own": "x"}) for number, (value, _) in enumerate(BAD_JSON)),
        ],
    )
    declared = Declared(tmp_path, spark, spark_broker, JSON_WITH_LETTERS.format(topic=topic))
    read = len(BAD_JSON) + 2
    assert counts(declared.run()) == {"table": (read, 2), "dead-letters": (read, len(BAD_JSON))}

    first, second = sorted(declared.table("orders"), key=lambda row: row["offset"])
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert first.pop("at").timestamp() in (at.timestamp(), at.replace(tzinfo=None).timestamp())
    assert first == {
        "id": 1,
        "item": "apples",
        "price": Decimal("2.50"),
        "tags": ["a"],
        "key": "k1",
        "topic": topic,
        "offset": 0,
        "gone": False,
        "hs": 1,
    }
    assert (second["id"], second["gone"], second["key"], second["hs"]) == (None, True, "k2", None)

    letters = spark_broker.consume(f"{topic}-dead-letters", at_least=len(BAD_JSON))
    assert [(letter.key, letter.value) for letter in letters] == [
        (f"bad{number}".encode(), value) for number, (value, _) in enumerate(BAD_JSON)
    ]
    told = [headers_of(letter) for letter in letters]
    assert [one["dead-letter.reason"] for one in told] == [reason for _, reason in BAD_JSON]
    facts = ("topic", "partition", "offset", "pipeline", "source")
    assert [told[3][f"dead-letter.{name}"] for name in facts] == [topic, "0", "5", topic, "orders"]
    assert told[3]["own"] == "x"

    assert counts(declared.run()) == {"table": (0, 0), "dead-letters": (0, 0)}
    assert len(spark_broker.consume(f"{topic}-dead-letters")) == len(BAD_JSON)


def test_bad_records_are_sent_from_where_the_pipeline_began_also_when_that_is_asked_for_later(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Begun at the latest records, and stopped by a bad one: it must not be passed over by both queries."""
    spark_broker.create_topic(topic)
    spark_broker.produce(topic, ["old and bad"])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        [source.orders]
        topic = "{topic}"
        format = "json"
        schema = "id INT"
        start = "latest"
        [sink.table]
        from = "orders"
        parquet = "orders"
        """,
    )
    assert counts(declared.run()) == {"table": (0, 0)}
    spark_broker.produce(topic, ['{"id": 1}', "new and bad", '{"id": 2}'])
    with pytest.raises(RunFailed, match=f"the record at offset 2 of {topic}-0 can't be read"):
        declared.run()
    declared.write(declared.file.read_text() + '[bad_records]\naction = "dead-letter"\n')
    declared.run()
    assert sorted(row["id"] for row in declared.table("orders")) == [1, 2]
    (letter,) = spark_broker.consume(f"{topic}-dead-letters")
    assert (letter.value, headers_of(letter)["dead-letter.offset"]) == (b"new and bad", "2")
    spark_broker.produce(topic, ["bad again"])
    declared.run()
    assert [one.value for one in spark_broker.consume(f"{topic}-dead-letters")] == [b"new and bad", b"bad again"]

    async def letter_bytes_max(client: Client) -> int:
        place = ConfigResource("topic", f"{topic}-dead-letters")
        (entry,) = await Admin(client).describe_configs(place, ["max.message.bytes"])
        return int(entry.value or 0)

    # The largest record that the topic takes fits, together with what is told of it.
    assert run_with_client(spark_broker.bootstrap_servers, letter_bytes_max) == 1_048_588 + 65_536


def test_csv_strings_and_binary_side_by_side(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [b"1;apples", b"2;pears;more", b"x;plums", b"\xff\xfe"])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        bad_records = {{ action = "dead-letter", topic = "{topic}.bad" }}
        [source.lines]
        topic = "{topic}"
        format = "csv"
        format_options = {{ delimiter = ";" }}
        schema = "id INT, item STRING"
        [source.texts]
        topic = "{topic}"
        format = "string"
        [source.bytes]
        topic = "{topic}"
        format = "binary"
        key = "binary"
        [sink.lines]
        from = "lines"
        parquet = "lines"
        [sink.texts]
        from = "texts"
        parquet = "texts"
        [sink.bytes]
        from = "bytes"
        parquet = "bytes"
        """,
    )
    declared.run()
    assert declared.table("lines") == [{"id": 1, "item": "apples"}]
    assert [row["value"] for row in declared.table("texts")] == ["1;apples", "2;pears;more", "x;plums"]
    assert [bytes(row["value"]) for row in declared.table("bytes")][-1] == b"\xff\xfe"
    reasons = sorted(headers_of(one)["dead-letter.reason"] for one in spark_broker.consume(f"{topic}.bad", at_least=4))
    assert [reason[:30] for reason in reasons] == [
        *["the line does not fit the sche"] * 2,
        *["the value is no text in UTF-8"] * 2,
    ]


def test_an_inferred_schema_stays_what_it_was_when_the_pipeline_began(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, ['{"id": 1, "user": {"name": "anna"}}', "broken"])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        bad_records.action = "dead-letter"
        [source.events]
        topic = "{topic}"
        format = "json"
        schema = "inferred"
        [sink.table]
        from = "events"
        parquet = "events"
        """,
    )
    declared.run()
    spark_broker.produce(topic, ['{"id": 2, "user": {"name": "bob"}, "extra": true}'])
    declared.run()
    rows = sorted(declared.table("events"), key=lambda row: row["id"])
    assert rows == [{"id": 1, "user": {"name": "anna"}}, {"id": 2, "user": {"name": "bob"}}]


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH"]}},
        {"name": "notes", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "lines", "type": {"type": "array", "items": ["int", "string"]}, "default": []},
    ],
}
OLD_AVRO = {**AVRO, "fields": [field for field in AVRO["fields"] if "default" not in field]}


def avro(schema: Any, row: dict[str, Any], *, frame_id: int | None = None) -> bytes:
    from fastavro import parse_schema, schemaless_writer

    stream = BytesIO()
    schemaless_writer(stream, parse_schema(schema), row)
    return (b"" if frame_id is None else struct.pack(">bI", 0, frame_id)) + stream.getvalue()


def test_avro_with_confluents_frame_is_read_with_the_schema_that_it_was_written_with_and_written_again(
    spark: SparkSession, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    pytest.importorskip("fastavro")
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    old = {"id": 1, "amount": Decimal("1.25"), "at": at, "kind": "CARD"}
    new = {**old, "id": 2, "day": date(2026, 1, 2), "notes": {"a": "b"}, "lines": [7, "x"]}
    values = [
        avro(OLD_AVRO, old, frame_id=1),
        avro(AVRO, new, frame_id=2),
        avro(AVRO, new, frame_id=3),
        avro(AVRO, new),
        avro(AVRO, new, frame_id=2) + b"!",
        b"\x00\x00\x00\x00\x02\x04",
    ]
    spark_broker.produce(topic, [Record(None, key="gone"), *values])
    declared = Declared(
        tmp_path,
        spark,
        spark_broker,
        f"""
        name = "{topic}"
        bad_records.action = "dead-letter"
        [source.payments]
        topic = "{topic}"
        format = "avro"
        schema_file = "new.avsc"
        framing = "confluent"
        writer_schemas = {{ 1 = "old.avsc", 2 = "new.avsc" }}
        [step.known]
        sql = "SELECT * FROM payments WHERE NOT _tombstone"
        [step.few]
        sql = "SELECT id, amount, at, kind FROM known"
        [sink.table]
        from = "known"
        parquet = "payments"
        [sink.again]
        from = "few"
        topic = "{topic}.again"
        partitions = 1
        format = "avro"
        schema_file = "old.avsc"
        framing = "confluent"
        schema_id = 1
        """,
        old__avsc=json.dumps(OLD_AVRO),
        new__avsc=json.dumps(AVRO),
    )
    declared.run()
    first, second = sorted(declared.table("payments"), key=lambda row: row["id"])
    assert (first["amount"], first["kind"], first["notes"], first["day"]) == (Decimal("1.25"), "CARD", {}, None)
    assert (second["day"], second["notes"]) == (date(2026, 1, 2), {"a": "b"})
    assert second["lines"] == [{"member0": 7, "member1": None}, {"member0": None, "member1": "x"}]
    letters = spark_broker.consume(f"{topic}-dead-letters", at_least=4)
    assert [headers_of(letter)["dead-letter.reason"][:60] for letter in letters] == [
        "the value was written with schema id 3, which is not in writ",
        "the value has no frame of five bytes, a zero and a schema id",
        "the value is no Avro of this schema: 1 bytes are left over",
        "the value is no Avro of this schema: EOFError",
    ]
    again = {record.value for record in spark_broker.consume(f"{topic}.again", at_least=2)}
    assert again == {avro(OLD_AVRO, old, frame_id=1), avro(OLD_AVRO, {**old, "id": 2}, frame_id=1)}
