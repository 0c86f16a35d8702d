"""Arrow columns become batches that every reader of Kafka's format understands, none too large, all rows in order."""

from __future__ import annotations

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.compression import CODEC_NAMES
from headpond.protocol.records.header import crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from spark.codec_support import TP, codec, np, pa, rows_of

CannotEncode, RecordColumns = codec.CannotEncode, codec.RecordColumns
encode, patch_producer = codec.encode, codec.patch_producer

NOW_MS = 1_700_000_000_000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ONE_MB = 1_000_000


def columns_of(records: list[Record]) -> RecordColumns:
    headers = [[{"key": name, "value": value} for name, value in one.headers] for one in records]
    return RecordColumns.of(
        key=pa.array([one.key for one in records], pa.binary()),
        value=pa.array([one.value for one in records], pa.binary()),
        headers=pa.array(headers, HEADERS),
        timestamp=pa.array([one.timestamp * 1000 for one in records], pa.timestamp("us", tz="UTC")),
        now_ms=NOW_MS,
    )


def values(values: list[bytes | None]) -> RecordColumns:
    return RecordColumns.of(value=pa.array(values, pa.binary()), now_ms=NOW_MS)


def read(batches) -> list[Record]:
    return [record for batch in batches for record in read_records(bytes(batch.data))]


SOME = [
    Record(0, NOW_MS, b"k", b"v" * 200, (("trace", b"1"), ("trace", None), ("é", b""))),
    Record(1, NOW_MS - 70_000, None, b""),
    Record(2, NOW_MS + 5, b"", None),
    Record(3, -1, b"x" * 10_000, b"y"),
]


def test_an_uncompressed_batch_is_byte_for_byte_what_the_plain_builder_makes() -> None:
    (batch,) = encode(columns_of(SOME), batch_bytes_max=ONE_MB)
    assert batch.data == build_batch(SOME)
    assert batch.record_count == 4


@pytest.mark.parametrize("compression", CODEC_NAMES)
def test_what_was_encoded_is_read_back_with_every_compression(compression: str) -> None:
    records = [one._replace(offset=index) for index, one in enumerate(SOME * 20)]
    (batch,) = encode(columns_of(records), batch_bytes_max=ONE_MB, compression=compression)
    header = read_header(batch.data)
    assert CODEC_NAMES[header.codec] == compression
    assert header.crc == crc_of(batch.data)
    assert (header.count, header.last_offset_delta, header.max_timestamp) == (80, 79, NOW_MS + 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert read([batch]) == records


def test_kafka_python_reads_what_we_write() -> None:
    from kafka.record.memory_records import MemoryRecords

    for compression in CODEC_NAMES:
        (batch,) = encode(columns_of(SOME), batch_bytes_max=ONE_MB, compression=compression)
        found = list(MemoryRecords(bytes(batch.data)).next_batch())
        assert [(one.timestamp, one.key, one.value) for one in found] == [
            (one.timestamp, one.key, one.value) for one in SOME
        ]
        assert [tuple(map(tuple, one.headers)) for one in found] == [one.headers for one in SOME]


def test_we_read_what_kafka_python_writes() -> None:
    from kafka.record.default_records import DefaultRecordBatchBuilder

    for number in range(5):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=number,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=ONE_MB,
        )
        for one in SOME:
            builder.append(one.offset, one.timestamp, one.key, one.value, list(one.headers))
        data = bytes(builder.build())
        wanted = ("offset", "key", "value", "timestamp", "headers")
        found = rows_of(codec.decode(data, tp=TP, from_offset=0, columns=wanted), wanted)
        assert found == [
            (one.offset, one.key, one.value, one.timestamp * 1000, list(one.headers) or None) for one in SOME
        ]


def test_batches_are_as_large_as_the_limit_lets_them_and_no_larger() -> None:
    rows = [bytes(n % 90) for n in range(1_000)]
    batches = list(encode(values(rows), batch_bytes_max=1_000))
    assert [one.value for one in read(batches)] == rows
    assert sum(batch.record_count for batch in batches) == 1_000
    assert all(900 < len(batch.data) <= 1_000 for batch in batches[:-1])
    for batch in batches:
        assert [one.offset for one in read_records(bytes(batch.data))] == list(range(batch.record_count))


def test_a_record_that_fits_exactly_is_taken_and_one_byte_more_is_an_error_with_its_row() -> None:
    size = len(build_batch([Record(0, NOW_MS, None, bytes(500))]))
    (batch,) = encode(values([bytes(500)]), batch_bytes_max=size)
    assert len(batch.data) == size
    batches = encode(values([b"", bytes(501), b""]), batch_bytes_max=size)
    assert next(batches).record_count == 1
    with pytest.raises(
        CannotEncode, match=rf"row 1 takes {size + 1} bytes in a batch of its own; the limit is {size}"
    ) as e:
        next(batches)
    assert e.value.row == 1


def test_a_payload_that_compression_makes_larger_stays_as_it_is() -> None:
    noise = np.random.default_rng(1).bytes(900)
    plain = len(build_batch([Record(0, NOW_MS, None, noise)]))
    for compression in CODEC_NAMES[1:]:
        (batch,) = encode(values([noise]), batch_bytes_max=plain, compression=compression)
        assert read_header(batch.data).codec == 0
        assert [one.value for one in read([batch])] == [noise]


def test_chosen_rows_come_in_the_order_in_which_they_were_chosen() -> None:
    rows = np.array([4, 0, 2, 2])
    batches = encode(values([b"%d" % n for n in range(5)]), rows=rows, batch_bytes_max=ONE_MB)
    assert [one.value for one in read(batches)] == [b"4", b"0", b"2", b"2"]
    assert list(encode(values([b"v"]), rows=np.array([], np.int64), batch_bytes_max=ONE_MB)) == []
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match="there are 5"):
            encode(values([b""] * 5), rows=np.array([0, wrong]), batch_bytes_max=ONE_MB)


def test_an_oversized_row_is_named_as_it_counts_in_the_chunk() -> None:
    chosen = encode(values([b"", b"", bytes(5_000)]), rows=np.array([2]), batch_bytes_max=1_000)
    with pytest.raises(CannotEncode, match="row 2"):
        next(chosen)


@pytest.mark.parametrize("compression", ["lzo", "NONE", ""])
def test_an_unknown_compression_is_refused(compression: str) -> None:
    with pytest.raises(ValueError, match="no compression"):
        encode(values([b""]), batch_bytes_max=ONE_MB, compression=compression)


@pytest.mark.parametrize("limit", [0, 61, 2**31])
def test_an_impossible_limit_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="batch_bytes_max"):
        encode(values([b""]), batch_bytes_max=limit)


# --- kinds of columns -------------------------------------------------------------------------------------------------

TEXTS = ["a", None, "", "né" * 40]
AS_BYTES = [None if text is None else text.encode() for text in TEXTS]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)
def test_text_and_bytes_of_every_kind_are_taken_whole_and_sliced(kind) -> None:
    plain = pa.array(TEXTS, pa.string())
    if pa.types.is_dictionary(kind):
        column = plain.cast(kind.value_type).dictionary_encode().cast(kind)
    else:
        column = plain.cast(kind)
    for taken, expected in ((column, AS_BYTES), (column.slice(1, 2), AS_BYTES[1:3]), (column.slice(4), [])):
        both = RecordColumns.of(key=taken, value=taken, now_ms=NOW_MS)
        found = read(encode(both, batch_bytes_max=ONE_MB))
        assert [(one.key, one.value) for one in found] == [(one, one) for one in expected]


def test_bytes_of_a_fixed_size_are_taken() -> None:
    column = pa.array([b"abcd", None, b"efgh"], pa.binary(4))
    for taken, expected in ((column, [b"abcd", None, b"efgh"]), (column.slice(2), [b"efgh"])):
        found = read(encode(RecordColumns.of(value=taken, now_ms=NOW_MS), batch_bytes_max=ONE_MB))
        assert [one.value for one in found] == expected


def test_a_column_of_type_null_is_null_in_every_row() -> None:
    nothing = pa.nulls(2)
    columns = RecordColumns.of(key=nothing, value=nothing, headers=nothing, timestamp=nothing, now_ms=NOW_MS)
    assert read(encode(columns, batch_bytes_max=ONE_MB)) == [Record(n, NOW_MS, None, None) for n in (0, 1)]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("key", pa.array([1])),
        ("value", pa.array([[b"x"]])),
        ("value", pa.array([1.5])),
        ("value", pa.chunked_array([[b"x"]])),
        ("headers", pa.array(["x"])),
        ("headers", pa.array([[("a", b"b")]], pa.map_(pa.string(), pa.binary()))),
        ("headers", pa.array([[{"key": "a"}]])),
        ("headers", pa.array([[{"key": "a", "value": 1}]])),
        ("timestamp", pa.array([5])),
    ],
    ids=str,
)
def test_other_kinds_are_refused_by_the_name_of_the_column(name: str, column) -> None:
    with pytest.raises(CannotEncode, match=rf"column {name}"):
        RecordColumns.of(**{"value": pa.array([b""]), name: column}, now_ms=NOW_MS)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(CannotEncode, match="key has 2 rows, value has 1"):
        RecordColumns.of(key=pa.nulls(2), value=pa.nulls(1), now_ms=NOW_MS)


@pytest.mark.parametrize(("unit", "per_ms"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
def test_times_are_rounded_down_to_milliseconds_and_missing_ones_are_now(unit: str, per_ms: int) -> None:
    times = pa.array([5 * per_ms + (per_ms - 1), None, -per_ms], pa.timestamp(unit))
    for taken, expected in ((times, [5, NOW_MS, -1]), (times.slice(2), [-1])):
        columns = RecordColumns.of(value=pa.nulls(len(taken)), timestamp=taken, now_ms=NOW_MS)
        assert [one.timestamp for one in read(encode(columns, batch_bytes_max=ONE_MB))] == expected


def test_whole_seconds_are_taken_and_times_before_1970_are_refused_with_their_row() -> None:
    seconds = RecordColumns.of(value=pa.nulls(1), timestamp=pa.array([7], pa.timestamp("s")), now_ms=NOW_MS)
    assert list(seconds.timestamp_ms) == [7_000]
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array([0, None, -(10**10)], pa.timestamp(unit))
        with pytest.raises(CannotEncode, match=r"row 2 .* before 1970") as caught:
            RecordColumns.of(value=pa.nulls(3), timestamp=column, now_ms=NOW_MS)
        assert caught.value.row == 2


@pytest.mark.parametrize(("unit", "per_ms"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
def test_times_before_1970_are_written_where_that_is_asked_for(unit: str, per_ms: int) -> None:
    times = pa.array([-5 * per_ms, None, -(10**12) * per_ms, 7 * per_ms], pa.timestamp(unit))
    columns = RecordColumns.of(value=pa.nulls(4), timestamp=times, now_ms=NOW_MS, keeps_early=True)
    assert [one.timestamp for one in read(encode(columns, batch_bytes_max=ONE_MB))] == [-5, NOW_MS, -(10**12), 7]
    seconds = pa.array([-7], pa.timestamp("s"))
    columns = RecordColumns.of(value=pa.nulls(1), timestamp=seconds, now_ms=NOW_MS, keeps_early=True)
    assert list(columns.timestamp_ms) == [-7_000]


def test_a_header_without_a_name_is_refused_with_its_row() -> None:
    for broken in ({"key": None, "value": b"x"}, None):
        column = pa.array([[], None, [{"key": "a", "value": None}, broken]], HEADERS)
        with pytest.raises(CannotEncode, match="row 2 has a header without a name") as caught:
            RecordColumns.of(value=pa.nulls(3), headers=column, now_ms=NOW_MS)
        assert caught.value.row == 2


def test_sliced_headers_belong_to_their_rows() -> None:
    column = pa.array([[{"key": "a", "value": b"1"}], None, [], [{"key": "b", "value": b"2"}] * 2], HEADERS)
    columns = RecordColumns.of(value=pa.nulls(3), headers=column.slice(1), now_ms=NOW_MS)
    found = [one.headers for one in read(encode(columns, batch_bytes_max=ONE_MB))]
    assert found == [(), (), (("b", b"2"), ("b", b"2"))]


def test_what_lies_behind_a_null_list_is_not_looked_at() -> None:
    entries = pa.array([{"key": None, "value": b"1"}, {"key": "b", "value": b"2"}], HEADERS.value_type)
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), entries, mask=pa.array([True, False]))
    columns = RecordColumns.of(value=pa.nulls(2), headers=column, now_ms=NOW_MS)
    assert [one.headers for one in read(encode(columns, batch_bytes_max=ONE_MB))] == [(), (("b", b"2"),)]


def test_offsets_that_point_outside_of_their_data_are_refused() -> None:
    good = pa.array([b"abc", b"de"], pa.binary())
    offsets = pa.py_buffer(struct.pack("<3i", 0, 9, 5))  # Arrow itself looks at the first and the last only
    bad = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, good.buffers()[2]])
    with pytest.raises(CannotEncode, match="damaged"):
        RecordColumns.of(value=bad, now_ms=NOW_MS)


# --- the producer's fields --------------------------------------------------------------------------------------------


def test_a_producer_can_be_written_into_a_finished_batch_and_out_again() -> None:
    for compression in ("none", "zstd"):
        (batch,) = encode(columns_of(SOME), batch_bytes_max=ONE_MB, compression=compression)
        before = bytes(batch.data)
        producer = {"producer_id": 2**40, "producer_epoch": 7, "base_sequence": 2**31 - 1}
        patch_producer(batch.data, **producer, is_transactional=True)
        header = read_header(batch.data)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 7, 2**31 - 1)
        assert header.is_transactional
        assert header.crc == crc_of(batch.data)
        assert read([batch]) == SOME
        patch_producer(
            memoryview(batch.data), producer_id=-1, producer_epoch=-1, base_sequence=-1, is_transactional=False
        )
        assert bytes(batch.data) == before


# --- round trips ------------------------------------------------------------------------------------------------------

some_bytes = st.none() | st.binary(max_size=30) | st.integers(0, 300).map(bytes)
header_lists = st.lists(st.tuples(st.text(max_size=5), some_bytes), max_size=3).map(tuple)
record_lists = st.lists(
    st.builds(Record, st.just(0), st.integers(-1, 2**43), some_bytes, some_bytes, header_lists), max_size=30
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(record_lists, st.sampled_from(CODEC_NAMES), st.integers(1_500, 4_000))
def test_rows_survive_the_way_into_batches_and_back(records: list[Record], compression: str, limit: int) -> None:
    batches = list(encode(columns_of(records), batch_bytes_max=limit, compression=compression))
    assert all(len(batch.data) <= limit for batch in batches)
    found = [
        row for batch in batches for row in rows_of(codec.decode(batch.data, tp=TP, from_offset=0, columns=WAY), WAY)
    ]
    assert found == [(one.key, one.value, one.timestamp * 1000, list(one.headers) or None) for one in records]


WAY = ("key", "value", "timestamp", "headers")
