"""Records survive being written and read, also when somebody else wrote or reads them (aiokafka, kafka-python)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import kafka.codec
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.compression import CODEC_NAMES
from headpond.protocol.records.header import crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from unit.records.made_up_records import record_lists

codecs = st.integers(0, 4)
AVAILABLE_IN_KAFKA_PYTHON = [
    codec for codec, name in enumerate(CODEC_NAMES) if codec == 0 or getattr(kafka.codec, f"has_{name}")()
]


@given(record_lists(), codecs, st.integers(0, 2**62))
def test_what_is_built_is_read(records: list[Record], codec: int, base_offset: int) -> None:
    records = [record._replace(offset=base_offset + record.offset) for record in records]
    batch = build_batch(records, base_offset=base_offset, codec=codec)
    assert list(read_records(batch)) == records
    header = read_header(batch)
    assert (header.count, header.last_offset) == (len(records), records[-1].offset)
    assert header.crc == crc_of(batch)


def read_by(reader: Callable[[bytes], Any], batch: bytearray) -> list[Record]:
    theirs = reader(bytes(batch))
    assert theirs.validate_crc()
    return [
        Record(
            r.offset,
            r.timestamp,
            None if r.key is None else bytes(r.key),
            None if r.value is None else bytes(r.value),
            tuple((name, None if value is None else bytes(value)) for name, value in r.headers),
        )
        for r in theirs
    ]


def written_by(builder: Callable[..., Any], records: Sequence[Record], codec: int) -> bytes:
    theirs = builder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=10_000_000,
    )
    for record in records:
        theirs.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(theirs.build())


@given(record_lists(), codecs)
def test_aiokafka_reads_our_batches(records: list[Record], codec: int) -> None:
    assert read_by(AiokafkaBatch, build_batch(records, codec=codec)) == records


@given(record_lists(), codecs)
def test_we_read_batches_of_aiokafka(records: list[Record], codec: int) -> None:
    batch = written_by(AiokafkaBuilder, records, codec)
    header = read_header(batch)
    assert list(read_records(batch)) == records
    assert header.crc == crc_of(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 5)
    assert header.is_transactional


@given(record_lists(), st.sampled_from(AVAILABLE_IN_KAFKA_PYTHON))
def test_kafka_python_reads_our_batches(records: list[Record], codec: int) -> None:
    assert read_by(KafkaPythonBatch, build_batch(records, codec=codec)) == records


@given(record_lists(), st.sampled_from(AVAILABLE_IN_KAFKA_PYTHON))
def test_we_read_batches_of_kafka_python(records: list[Record], codec: int) -> None:
    batch = written_by(KafkaPythonBuilder, records, codec)
    assert list(read_records(batch)) == records
    assert read_header(batch).crc == crc_of(batch)


@given(record_lists())
def test_uncompressed_bytes_are_those_of_kafka_python(records: list[Record]) -> None:
    ours = build_batch(records, leader_epoch=0, attributes=0x10, producer_id=77, producer_epoch=3, base_sequence=5)
    assert bytes(ours) == written_by(KafkaPythonBuilder, records, 0)


def test_header_names_that_are_not_utf8_can_be_written_back() -> None:
    odd = b"\xff\xfe".decode("utf-8", "surrogateescape")
    record = Record(0, 1, None, None, ((odd, b"x"),))
    batch = build_batch([record])
    assert b"\xff\xfe" in batch
    assert build_batch(list(read_records(batch))) == batch


def test_batch_after_compaction_keeps_its_range_and_its_gaps() -> None:
    records = [Record(10, 5, b"a", b"1"), Record(17, 9, b"b", b"2")]
    batch = build_batch(records, base_offset=10, last_offset_delta=20)
    assert list(read_records(batch)) == records
    assert read_header(batch).last_offset == 30


@pytest.mark.parametrize("codec", range(5))
def test_large_values_survive_each_codec(codec: int) -> None:
    value = bytes(range(256)) * 4_000
    records = [Record(i, i, b"key", value) for i in range(3)]
    batch = build_batch(records, codec=codec)
    assert [r.value for r in read_records(batch)] == [value] * 3
    assert read_header(batch).codec == codec
