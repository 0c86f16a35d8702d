"""Fetched batches become Arrow columns: every record that a consumer would see, once, in order, and no other."""

from __future__ import annotations

import struct

import pytest

from headpond.client import ClientError
from headpond.client.fetched import cut_records
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.header import APPEND_TIME_BIT, TRANSACTIONAL_BIT
from headpond.protocol.records.record import Record
from spark.codec_support import (
    ALL_CODECS,
    MS_MAX,
    TP,
    codec,
    marker_at,
    mend_crc,
    numbered,
    outcome,
    pa,
    reference_rows,
    rows_of,
)

COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")


def decoded(data: bytes, *, from_offset: int = 0, **options):
    return codec.decode(data, tp=TP, from_offset=from_offset, columns=COLUMNS, **options)


def offsets(data: bytes, **options) -> list[int]:
    return [row[2] for row in rows_of(decoded(data, **options))]


@pytest.mark.parametrize("number", ALL_CODECS)
def test_records_come_out_as_they_went_in_with_every_codec(number: int) -> None:
    records = [
        Record(7, 1_000, b"k", b"v" * 300, (("trace", b"1"), ("trace", None), ("", b""))),
        Record(8, 999, None, b""),
        Record(9, 1_700_000_000_000, b"", None, (("é", b"x" * 200),)),
    ]
    data = bytes(build_batch(records, base_offset=7, codec=number))
    reading = decoded(data, from_offset=7)
    assert rows_of(reading) == [
        (b"k", b"v" * 300, 7, 1_000_000, 0, [("trace", b"1"), ("trace", None), ("", b"")]),
        (None, b"", 8, 999_000, 0, None),
        (b"", None, 9, 1_700_000_000_000_000, 0, [("é", b"x" * 200)]),
    ]
    assert reading.next_offset == 10


def test_snappy_in_one_raw_block_as_librdkafka_sends_it_is_read_too() -> None:
    import cramjam

    plain = build_batch(numbered(50))
    batch = bytearray(plain[:61] + bytes(cramjam.snappy.compress_raw(bytes(plain[61:]))))
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    batch[22] |= 2
    assert rows_of(decoded(bytes(mend_crc(batch)))) == reference_rows(bytes(plain), from_offset=0)


def test_the_schema_is_what_spark_expects() -> None:
    schema = codec.schema_of(codec.ALL_COLUMNS)
    assert {field.name: str(field.type) for field in schema} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestampType": "int32",
        "headers": "list<item: struct<key: string, value: binary>>",
    }
    assert "headers" not in codec.DEFAULT_COLUMNS


def test_only_the_wanted_columns_are_made_and_in_the_wanted_order() -> None:
    data = bytes(build_batch(numbered(2)))
    wanted = ("offset", "topic", "value", "partition")
    (batch,) = codec.decode(data, tp=TP, from_offset=0, columns=wanted)
    assert batch.schema == codec.schema_of(wanted)
    assert batch.to_pylist() == [
        {"offset": 0, "topic": "orders", "value": b"000", "partition": 3},
        {"offset": 1, "topic": "orders", "value": b"111", "partition": 3},
    ]


def test_rows_are_counted_when_no_column_is_wanted_that_takes_bytes() -> None:
    data = bytes(build_batch(numbered(200_000, size=0)))
    batches = list(codec.decode(data, tp=TP, from_offset=0, columns=("partition",)))
    assert sum(batch.num_rows for batch in batches) == 200_000


def test_a_column_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no column 'offsett'"):
        codec.decode(b"", tp=TP, from_offset=0, columns=("offsett",))


def test_nothing_fetched_is_nothing_to_see() -> None:
    reading = decoded(b"", from_offset=5)
    assert rows_of(reading) == []
    assert reading.next_offset == 5


def test_append_time_is_the_brokers_for_every_record() -> None:
    batch = build_batch(numbered(3), attributes=APPEND_TIME_BIT)
    batch[35:43] = struct.pack(">q", 4_242)
    found = rows_of(decoded(bytes(mend_crc(batch))))
    assert [(row[3], row[4]) for row in found] == [(4_242_000, 1)] * 3


def test_a_record_without_a_time_is_a_millisecond_before_1970_as_in_sparks_own_connector() -> None:
    data = bytes(build_batch([Record(0, -1, None, b"v")]))
    assert rows_of(decoded(data))[0][3] == -1_000


def test_a_header_whose_name_is_not_utf8_is_shown_with_replacements() -> None:
    data = bytes(build_batch([Record(0, 1, None, None, (("a\udcffb", b"v"), ("ok", b"w")))]))
    assert rows_of(decoded(data))[0][5] == [("a\ufffdb", b"v"), ("ok", b"w")]


def test_reading_begins_and_ends_inside_of_batches() -> None:
    data = b"".join(bytes(build_batch(numbered(4, start=start), base_offset=start)) for start in (0, 4, 8))
    reading = decoded(data, from_offset=2, end_offset=9)
    assert [row[2] for row in rows_of(reading)] == [2, 3, 4, 5, 6, 7, 8]
    assert reading.next_offset >= 9  # all below the end was seen
    assert offsets(data, from_offset=5, end_offset=6) == [5]
    assert offsets(data, from_offset=12) == []


def test_a_batch_that_is_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    first, second = (bytes(build_batch(numbered(2, start=start), base_offset=start)) for start in (0, 2))
    for kept in (0, 1, 11, 17, 60, 61, len(second) - 1):
        reading = decoded(first + second[:kept])
        assert [row[2] for row in rows_of(reading)] == [0, 1]
        assert reading.next_offset == 2


def test_a_first_batch_that_is_not_whole_is_an_error_since_no_fetch_would_get_on() -> None:
    data = bytes(build_batch(numbered(5)))
    assert outcome(decoded, data[:-1]) == "RECORD_LIST_TOO_LARGE"


def test_gaps_of_compaction_are_passed_and_counted() -> None:
    kept = [Record(offset, 1, b"k", b"v") for offset in (2, 3, 7)]
    emptied = bytearray(build_batch(numbered(1, start=20), base_offset=20, last_offset_delta=9)[:61])
    emptied[8:12] = struct.pack(">i", 61 - 12)
    emptied[57:61] = bytes(4)
    data = bytes(build_batch(kept, base_offset=0, last_offset_delta=19)) + bytes(mend_crc(emptied))
    reading = decoded(data)
    assert [row[2] for row in rows_of(reading)] == [2, 3, 7]
    assert reading.next_offset == 30


def test_control_batches_are_skipped_and_counted() -> None:
    data = bytes(build_batch(numbered(2))) + marker_at(2, 9, is_abort=False)
    reading = decoded(data)
    assert [row[2] for row in rows_of(reading)] == [0, 1]
    assert reading.next_offset == 3


def transactional(start: int, count: int, producer_id: int) -> bytes:
    records = numbered(count, start=start)
    return bytes(
        build_batch(records, base_offset=start, producer_id=producer_id, producer_epoch=0, attributes=TRANSACTIONAL_BIT)
    )


def test_aborted_transactions_are_skipped_up_to_their_marker() -> None:
    data = b"".join(
        [
            transactional(0, 2, 7),  # aborted below
            transactional(2, 2, 8),
            bytes(build_batch(numbered(1, start=4), base_offset=4)),
            marker_at(5, 7, is_abort=True),
            transactional(6, 2, 7),  # the same producer's next one
            marker_at(8, 7, is_abort=False),
            marker_at(9, 8, is_abort=False),
        ]
    )
    reading = decoded(data, aborted=[(7, 0)])
    assert [row[2] for row in rows_of(reading)] == [2, 3, 4, 6, 7]
    assert reading.next_offset == 10
    assert offsets(data) == [0, 1, 2, 3, 4, 6, 7]  # read_uncommitted


def test_nothing_but_aborted_records_still_moves_on() -> None:
    reading = decoded(transactional(0, 5, 7) + marker_at(5, 7, is_abort=True), aborted=[(7, 0)])
    assert rows_of(reading) == []
    assert reading.next_offset == 6


def test_chunks_are_no_larger_than_asked_for_unless_one_record_is() -> None:
    records = [Record(n, 1, None, bytes(size)) for n, size in enumerate((400, 400, 400, 5_000, 1, 1))]
    data = bytes(build_batch(records))
    sizes = [[len(value) for value in batch.column("value").to_pylist()] for batch in decoded(data, chunk_bytes=1_000)]
    assert sizes == [[400, 400], [400], [5_000], [1, 1]]


@pytest.mark.parametrize("number", ALL_CODECS)
def test_chunks_cut_anywhere_give_the_same_rows(number: int) -> None:
    data = b"".join(
        bytes(build_batch(numbered(40, start=start, size=60), base_offset=start, codec=number))
        for start in range(0, 400, 40)
    )
    expected = reference_rows(data, from_offset=3)
    for chunk_bytes in (1, 500, 5_000, 1_000_000):
        assert rows_of(decoded(data, from_offset=3, chunk_bytes=chunk_bytes)) == expected


@pytest.mark.parametrize("number", ALL_CODECS)
def test_batches_much_larger_than_a_chunk_are_unpacked_whole(number: int) -> None:
    data = b"".join(
        bytes(build_batch(numbered(3, start=start, size=200_000), base_offset=start, codec=number))
        for start in range(0, 18, 3)
    )
    assert offsets(data, chunk_bytes=1_000) == list(range(18))


def test_codecs_may_change_from_batch_to_batch() -> None:
    data = b"".join(
        bytes(build_batch(numbered(3, start=3 * n), base_offset=3 * n, codec=number))
        for n, number in enumerate((0, 3, 4, 0, 0, 2, 1, 3))
    )
    assert offsets(data) == list(range(24))


@pytest.mark.parametrize("number", ALL_CODECS)
def test_batches_of_several_partitions_keep_their_partition(number: int) -> None:
    data = bytes(build_batch(numbered(2), codec=number))
    batches = [one for p in (0, 1) for one in cut_records(TopicPartition("t", p), data, from_offset=0).batches]
    found = [batch.to_pydict() for batch in codec.decode_batches(batches, columns=("partition", "offset"))]
    assert found == [{"partition": [0, 0], "offset": [0, 1]}, {"partition": [1, 1], "offset": [0, 1]}]


def test_offsets_that_go_back_within_a_batch_are_passed_over_as_kafkas_consumer_does() -> None:
    batch = build_batch([Record(offset, 1, None, b"v") for offset in (0, 2, 2, 1, 3)], last_offset_delta=3)
    assert offsets(bytes(batch)) == [0, 2, 3]


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_wrong_checksum_names_topic_partition_and_offset() -> None:
    batch = build_batch(numbered(3, start=70), base_offset=70)
    batch[-1] ^= 1
    with pytest.raises(ClientError, match=r"^orders-3: the batch at offset 70 is damaged: its checksum") as caught:
        decoded(bytes(batch), from_offset=70)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("number", ALL_CODECS)
def test_damage_behind_a_right_checksum_is_found_and_named(number: int) -> None:
    batch = build_batch(numbered(3, start=70), base_offset=70, codec=number)
    batch[57:61] = struct.pack(">i", 4)  # a record more than there are
    with pytest.raises(ClientError, match=r"^orders-3: the batch at offset 70 is damaged"):
        list(decoded(bytes(mend_crc(batch)), from_offset=70))


@pytest.mark.parametrize("count", [-1, -(2**31), 2, 4, 2**31 - 1])
def test_a_count_that_lies_is_damage(count: int) -> None:
    batch = build_batch(numbered(3))
    batch[57:61] = struct.pack(">i", count)
    assert outcome(decoded, bytes(mend_crc(batch))) == "CORRUPT_MESSAGE"


def test_an_emptied_batch_whose_count_is_negative_is_damage() -> None:
    emptied = bytearray(build_batch(numbered(1))[:61])
    emptied[8:12] = struct.pack(">i", 61 - 12)
    emptied[57:61] = struct.pack(">i", -1)
    assert outcome(decoded, bytes(mend_crc(emptied))) == "CORRUPT_MESSAGE"


def test_an_offset_outside_of_the_batchs_range_is_damage() -> None:
    batch = build_batch([Record(9, 1, None, b"v")], last_offset_delta=8)
    assert outcome(decoded, bytes(batch)) == "CORRUPT_MESSAGE"


def test_an_offset_beyond_64_bits_is_damage() -> None:
    batch = build_batch(numbered(2))
    batch[:8] = struct.pack(">q", 2**63 - 1)
    assert outcome(decoded, bytes(batch)) == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("timestamp", [MS_MAX, MS_MAX + 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("is_append_time", [False, True])
def test_a_time_that_microseconds_cant_count_becomes_the_nearest_that_they_can(
    timestamp: int, is_append_time: bool
) -> None:
    for sign in (1, -1):
        batch = build_batch([Record(0, sign * timestamp, None, b"v"), Record(1, 0, None, b"w")])
        if is_append_time:
            batch[22] |= APPEND_TIME_BIT
            batch[35:43] = struct.pack(">q", sign * timestamp)
        nearest_us = sign * MS_MAX * 1000
        rows = rows_of(decoded(bytes(mend_crc(batch))))
        assert [row[3] for row in rows] == [nearest_us, nearest_us if is_append_time else 0]


@pytest.mark.parametrize(("extreme", "twice"), [(2**63 - 1, -2), (-(2**63), 0)])
def test_a_time_beyond_64_bits_comes_round_as_it_does_for_every_consumer(extreme: int, twice: int) -> None:
    batch = build_batch([Record(0, 0, None, b"v"), Record(1, extreme, None, b"v")])
    batch[27:35] = struct.pack(">q", extreme)  # the base, to which the second record adds as much again
    data = bytes(mend_crc(batch))
    (_, row) = rows_of(decoded(data))
    assert row[3] == twice * 1000
    assert reference_rows(data, from_offset=1) == [row]


def test_a_payload_that_does_not_decompress_is_damage() -> None:
    for number in ALL_CODECS[1:]:
        batch = build_batch(numbered(3), codec=number)
        batch[61:] = bytes(len(batch) - 61)
        assert outcome(decoded, bytes(mend_crc(batch))) == "CORRUPT_MESSAGE"


def test_codecs_that_do_not_exist_are_damage() -> None:
    for number in (5, 6, 7):
        batch = build_batch(numbered(3))
        batch[22] |= number
        assert outcome(decoded, bytes(mend_crc(batch))) == "CORRUPT_MESSAGE"


def test_records_from_before_kafka_0_11_are_refused() -> None:
    batch = build_batch(numbered(3))
    batch[16] = 1
    assert outcome(decoded, bytes(batch)) == "UNSUPPORTED_FOR_MESSAGE_FORMAT"


def test_a_chunk_that_arrow_could_not_count_is_refused() -> None:
    with pytest.raises(ValueError, match="chunk_bytes"):
        decoded(bytes(build_batch(numbered(1))), chunk_bytes=2**31)


def test_rows_outlive_the_bytes_that_they_came_from() -> None:
    data = bytearray(build_batch(numbered(3)))
    (batch,) = decoded(data)
    data[:] = bytes(len(data))
    assert batch.column("value").to_pylist() == [b"000", b"111", b"222"]
    assert pa.total_allocated_bytes() > 0
