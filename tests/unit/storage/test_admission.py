"""Admission: each bad batch gets the code, text and record errors that a real Kafka 4.3 gave to the same bytes."""

from __future__ import annotations

import gzip

import pytest

from headpond.config.log import LogConfig
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.records.builder import build_batch, encode_record
from headpond.protocol.records.compression import CODEC_NAMES, compress
from headpond.protocol.records.header import HEADER, HEADER_BYTES, BatchHeader, crc_of, read_header
from headpond.protocol.records.reader import read_records
from headpond.protocol.records.record import Record
from headpond.storage.admission import deep as deep_admission
from headpond.storage.admission.admission import BatchRefused, admit, needs_deep_look

TP = TopicPartition("orders", 3)
NOW = 1_700_000_000_000
HOUR = 3_600_000
PLAIN = LogConfig()
VALIDATING = LogConfig(validates_records=True)
COMPACTED = LogConfig(compacts=True, deletes=False)
APPEND_TIME = LogConfig(timestamp_is_append_time=True)
NOT_OLD = LogConfig(timestamp_before_max_ms=1_000)
RECORDS = [Record(0, NOW, b"k", b"v"), Record(1, NOW + 1, b"k", b"w")]


def changed(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The batch with other header fields, and the CRC to match."""
    batch = bytearray(batch)
    header = read_header(batch)._replace(**fields)
    HEADER.pack_into(batch, 0, *header)
    if "crc" not in fields:
        HEADER.pack_into(batch, 0, *header._replace(crc=crc_of(batch)))
    return batch


def with_payload(payload: bytes, **fields: int) -> bytearray:
    batch = bytearray(good()[:HEADER_BYTES]) + payload
    return changed(batch, batch_length=len(batch) - 12, **fields)


def good(codec: int = 0) -> bytearray:
    return build_batch(RECORDS, codec=codec)


def admitted(
    batch: bytes | bytearray, config: LogConfig = PLAIN, *, zstd_allowed: bool = True
) -> tuple[bytes, BatchHeader]:
    data, header = admit(memoryview(batch), config, NOW, TP, zstd_allowed=zstd_allowed)
    assert read_header(data) == header
    assert header.crc == crc_of(data)
    assert header.size_bytes == len(data)
    return bytes(data), header


def refused(batch: bytes | bytearray, config: LogConfig = PLAIN, *, zstd_allowed: bool = True) -> BatchRefused:
    with pytest.raises(BatchRefused) as caught:
        admit(memoryview(batch), config, NOW, TP, zstd_allowed=zstd_allowed)
    assert str(caught.value), "people get a reason even where Kafka's answer has none"
    return caught.value


# --- good batches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("config", [PLAIN, VALIDATING, COMPACTED, NOT_OLD])
def test_good_batch_is_admitted_as_it_came(codec: int, config: LogConfig) -> None:
    batch = good(codec)
    view = memoryview(batch)
    data, header = admit(view, config, NOW, TP)
    assert bytes(data) == batch
    assert header == read_header(batch)


def test_common_path_copies_nothing() -> None:
    batch = good()
    data, _ = admit(memoryview(batch), PLAIN, NOW, TP)
    assert data.obj is batch


@pytest.mark.parametrize("rest", [b"\x00" * 11, b"\x01" * 5, bytes(good()[:16]), bytes(good()[:40])])
def test_incomplete_batch_at_the_end_is_cut_off(rest: bytes) -> None:
    assert admitted(good() + rest)[0] == bytes(good())


@pytest.mark.parametrize("timestamp", [-1, -5, 0, NOW - 10 * 365 * 24 * HOUR, NOW + HOUR])
def test_old_absent_and_slightly_future_times_are_admitted(timestamp: int) -> None:
    batch = build_batch([Record(0, timestamp, b"k", b"v")])
    assert admitted(batch)[0] == bytes(batch)


def test_idempotent_batch_may_start_anywhere_and_unknown_attribute_bits_stay() -> None:
    for fields in (
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": 9},
        {"attributes": 0x80},
        {"producer_id": -2},
    ):
        batch = changed(good(), **fields)
        assert admitted(batch)[0] == bytes(batch)


# --- what the header alone shows --------------------------------------------------------------------------------------

EMPTY_ANSWERS = {
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "fewer bytes than a length": (bytes(good()[:11]), ErrorCode.INVALID_RECORD),
    "a cut-off header": (bytes(good()[:30]), ErrorCode.INVALID_RECORD),
    "a cut-off record": (bytes(good()[:-1]), ErrorCode.INVALID_RECORD),
    "two batches": (good() + good(), ErrorCode.INVALID_RECORD),
    "a second batch of no length": (good() + bytes(20), ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (changed(good(), magic=0), ErrorCode.INVALID_RECORD),
    "magic 1": (changed(good(), magic=1), ErrorCode.INVALID_RECORD),
    "a short batch of magic 1": (bytes(changed(good(), magic=1, batch_length=40)[:52]), ErrorCode.INVALID_RECORD),
    "a batch shorter than its header": (bytes(changed(good(), batch_length=48)[:60]), ErrorCode.CORRUPT_MESSAGE),
    "a wrong CRC": (changed(good(), crc=12_345), ErrorCode.CORRUPT_MESSAGE),
    "a base offset": (changed(good(), base_offset=5), ErrorCode.INVALID_RECORD),
    "a control batch": (changed(good(), attributes=0x20), ErrorCode.INVALID_RECORD),
    "a last offset beyond the count": (changed(good(), last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "a negative last offset": (changed(good(), last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "no record": (changed(good(), count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "a negative count": (changed(good(), count=-1), ErrorCode.INVALID_RECORD),
    "a count beyond the last offset": (changed(good(), count=3), ErrorCode.INVALID_RECORD),
    "more records than bytes": (changed(good(), count=999, last_offset_delta=998), ErrorCode.INVALID_RECORD),
    "a header and nothing behind it": (with_payload(b""), ErrorCode.INVALID_RECORD),
    "a compressed header and nothing behind it": (with_payload(b"", attributes=1), ErrorCode.INVALID_RECORD),
    "a producer without a sequence": (changed(good(), producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "codec 5": (changed(good(), attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "codec 7": (changed(good(), attributes=7), ErrorCode.UNKNOWN_SERVER_ERROR),
}


@pytest.mark.parametrize(("batch", "code"), EMPTY_ANSWERS.values(), ids=EMPTY_ANSWERS.keys())
def test_header_that_contradicts_itself_is_refused_without_a_text(batch: bytes, code: ErrorCode) -> None:
    error = refused(batch)
    assert (error.code, error.message, error.record_errors) == (code, "", [])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"batch_length": 13}, "Record size 13 is less than the minimum record overhead (14)"),
        ({"batch_length": -5}, "Record size -5 is less than the minimum record overhead (14)"),
        ({"magic": 3}, "Invalid magic found in record: 3"),
        ({"magic": -1}, "Invalid magic found in record: -1"),
    ],
)
def test_impossible_length_or_format_is_corrupt_and_says_why(fields: dict[str, int], text: str) -> None:
    error = refused(changed(good(), **fields))
    assert (error.code, error.message) == (ErrorCode.CORRUPT_MESSAGE, text)


def test_zstd_needs_produce_version_7() -> None:
    assert refused(good(4), zstd_allowed=False).code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    admitted(good(3), zstd_allowed=False)


def test_batch_up_to_the_limits_of_topic_and_segment() -> None:
    size = len(good())
    admitted(good(), LogConfig(max_message_bytes=size, segment_bytes=size))
    assert refused(good(), LogConfig(max_message_bytes=size - 1)).code == ErrorCode.MESSAGE_TOO_LARGE
    assert refused(good(), LogConfig(segment_bytes=size - 1)).code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_size_is_looked_at_before_the_checksum() -> None:
    assert refused(changed(good(), crc=1), LogConfig(max_message_bytes=70)).code == ErrorCode.MESSAGE_TOO_LARGE


# --- timestamps -------------------------------------------------------------------------------------------------------


def out_of_range(timestamp: int, offset: int, config: LogConfig) -> str:
    first, last = NOW - config.timestamp_before_max_ms, NOW + config.timestamp_after_max_ms
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{first}, {last}]"
    )


@pytest.mark.parametrize("codec", [0, 2])
def test_records_from_the_future_are_named_one_by_one(codec: int) -> None:
    late = NOW + HOUR + 1
    batch = build_batch(
        [Record(0, NOW, b"k", b"v"), Record(1, late, b"k", b"v"), Record(2, late + 1, b"k", b"v")], codec=codec
    )
    error = refused(batch)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    assert error.record_errors == [(1, out_of_range(late, 1, PLAIN)), (2, out_of_range(late + 1, 2, PLAIN))]


def test_header_that_only_claims_a_future_time_is_put_right() -> None:
    data, header = admitted(changed(good(), max_timestamp=NOW + 10 * HOUR))
    assert header.max_timestamp == NOW + 1
    assert list(read_records(data)) == RECORDS


def test_header_whose_max_time_is_before_its_base_time_is_put_right() -> None:
    assert admitted(changed(good(), max_timestamp=5))[1].max_timestamp == NOW + 1


def test_validation_puts_any_wrong_max_time_right() -> None:
    batch = changed(good(), max_timestamp=NOW)
    assert admitted(batch, PLAIN)[1].max_timestamp == NOW
    assert admitted(batch, VALIDATING)[1].max_timestamp == NOW + 1


FAR = LogConfig(timestamp_after_max_ms=2**63 - 1)
FAR_COMPACTED = LogConfig(timestamp_after_max_ms=2**63 - 1, compacts=True, deletes=False)
FAR_GZIP = LogConfig(timestamp_after_max_ms=2**63 - 1, compression_type="gzip")
GZIP_APPEND_TIME = LogConfig(timestamp_is_append_time=True, compression_type="gzip")
TOO_LATE = NOW + 2**63 - 1  # as far from the base timestamp as a record can say
WRAPPED = TOO_LATE - 2**64


def with_times(*timestamps: int, codec: int = 0, **fields: int) -> bytearray:
    """A batch from ``NOW`` on whose header says that all are of ``NOW``."""
    records = [Record(number, timestamp, b"k", b"v") for number, timestamp in enumerate((NOW, *timestamps))]
    payload = b"".join(encode_record(record, 1, NOW) for record in records[1:])
    return changed(
        build_batch(records[:1], codec=codec)[:HEADER_BYTES] + compress(codec, payload),
        batch_length=HEADER_BYTES - 12 + len(compress(codec, payload)),
        count=len(timestamps),
        last_offset_delta=len(timestamps) - 1,
        **fields,
    )


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("config", [VALIDATING, COMPACTED, LogConfig(compression_type="gzip")])
def test_a_time_that_wraps_around_is_out_of_range_and_named_as_kafka_names_it(config: LogConfig, codec: int) -> None:
    error = refused(with_times(NOW, TOO_LATE, codec=codec), config)
    assert (error.code, error.record_errors) == (ErrorCode.INVALID_TIMESTAMP, [(1, out_of_range(WRAPPED, 1, config))])


@pytest.mark.parametrize("codec", [0, 4])
def test_where_any_time_is_allowed_a_time_that_wraps_around_is_before_all_others(codec: int) -> None:
    assert admitted(with_times(TOO_LATE, codec=codec), FAR_COMPACTED)[1].max_timestamp == -1
    assert admitted(with_times(TOO_LATE, NOW, codec=codec), FAR_COMPACTED)[1].max_timestamp == NOW
    assert admitted(with_times(NOW - 2**63, NOW, codec=codec), FAR_COMPACTED)[1].max_timestamp == NOW
    data, header = admitted(with_times(TOO_LATE, codec=codec), FAR)
    assert [record.timestamp for record in read_records(data)] == [WRAPPED]
    assert header.max_timestamp == NOW  # not looked into


@pytest.mark.parametrize("timestamp", [TOO_LATE, -5])
@pytest.mark.parametrize("config", [FAR_GZIP, GZIP_APPEND_TIME])
def test_a_record_before_1970_can_not_be_written_anew(config: LogConfig, timestamp: int) -> None:
    assert refused(with_times(NOW, timestamp), config).code == ErrorCode.UNKNOWN_SERVER_ERROR
    admitted(with_times(NOW, timestamp, codec=1), config)  # in the topic's codec already
    admitted(with_times(NOW, -1), config)


def test_old_records_are_refused_where_the_topic_says_so() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW - 1_001, b"k", b"v"), Record(2, -1, b"k", b"v")])
    error = refused(batch, NOT_OLD)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors == [(1, out_of_range(NOW - 1_001, 1, NOT_OLD))]


def test_append_time_is_written_in_place() -> None:
    batch = build_batch([Record(0, NOW + 50 * HOUR, b"k", b"v")], codec=1)
    data, header = admit(memoryview(batch), APPEND_TIME, NOW, TP)
    assert data.obj is batch
    assert header.is_append_time and header.max_timestamp == NOW
    assert header.crc == crc_of(batch)
    assert [record.timestamp for record in read_records(batch)] == [NOW]


def test_append_time_leaves_a_read_only_batch_alone() -> None:
    batch = bytes(good())
    assert admitted(batch, APPEND_TIME)[1].is_append_time
    assert batch == bytes(good())


def invalid_type(what: str) -> str:
    return f"Invalid timestamp type in message {what}. Producer should not set timestamp type to LogAppendTime."


def test_producer_may_not_set_append_time_itself() -> None:
    error = refused(changed(good(), attributes=8), APPEND_TIME)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors[1] == (
        1,
        invalid_type(f"DefaultRecord(offset=1, timestamp={NOW + 1}, key=1 bytes, value=1 bytes)"),
    )
    compressed = changed(build_batch([Record(0, NOW, None, b"v")], codec=1), attributes=9)
    assert refused(compressed, APPEND_TIME).record_errors == [
        (0, invalid_type(f"PartialDefaultRecord(offset=0, timestamp={NOW}, key=-1 bytes, value=1 bytes)"))
    ]
    assert refused(changed(good(), attributes=8, max_timestamp=-1)).code == ErrorCode.INVALID_TIMESTAMP


def test_append_time_bit_on_a_create_time_topic_is_cleared() -> None:
    header = admitted(changed(good(), attributes=8))[1]
    assert not header.is_append_time
    assert header.max_timestamp == NOW + 1


# --- looking inside ---------------------------------------------------------------------------------------------------

NO_KEY = "Compacted topic cannot accept message without key in topic partition orders-3"


@pytest.mark.parametrize("codec", [0, 4])
def test_compacted_topic_refuses_records_without_a_key(codec: int) -> None:
    keys = [None, b"k", None, None, None]
    error = refused(build_batch([Record(i, NOW, key, b"v") for i, key in enumerate(keys)], codec=codec), COMPACTED)
    assert error.code == ErrorCode.INVALID_RECORD
    assert error.record_errors == [(index, NO_KEY) for index in (0, 2, 3, 4)]
    assert error.message == (
        "One or more records have been rejected due to 4 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=0, message='{NO_KEY}'), RecordError(batchIndex=2, "
        f"message='{NO_KEY}'), RecordError(batchIndex=3, message='{NO_KEY}')]"
    )


def test_bad_time_decides_the_code_of_a_batch_with_both_errors() -> None:
    error = refused(build_batch([Record(0, NOW, None, b"v"), Record(1, NOW + 2 * HOUR, b"k", b"v")]), COMPACTED)
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


def test_list_of_record_errors_is_bounded_and_their_number_true() -> None:
    error = refused(build_batch([Record(i, NOW, None, None) for i in range(1_500)]), COMPACTED)
    assert len(error.record_errors) == deep_admission.RECORD_ERRORS_MAX
    assert "due to 1500 record errors" in error.message


PAYLOAD = bytes(good()[HEADER_BYTES:])
ROOMY = build_batch([Record(i, NOW, b"k", b"a longer value") for i in range(2)])
GARBAGE = {
    "a count that lies": (changed(ROOMY, count=3, last_offset_delta=2), ErrorCode.INVALID_RECORD),
    "a record too many": (changed(good(), count=1, last_offset_delta=0), ErrorCode.INVALID_RECORD),
    "garbage for records": (with_payload(b"\xff" * 40), ErrorCode.INVALID_RECORD),
    "garbage for gzip": (with_payload(b"x" * 40, attributes=1), ErrorCode.UNKNOWN_SERVER_ERROR),
    "garbage for snappy": (with_payload(b"x" * 40, attributes=2), ErrorCode.UNKNOWN_SERVER_ERROR),
    "garbage for lz4": (with_payload(b"x" * 40, attributes=3), ErrorCode.UNKNOWN_SERVER_ERROR),
    "garbage for zstd": (with_payload(b"x" * 40, attributes=4), ErrorCode.UNKNOWN_SERVER_ERROR),
    "bytes behind the records": (with_payload(gzip.compress(PAYLOAD + b"zz"), attributes=1), ErrorCode.INVALID_RECORD),
    "a record that is cut off": (with_payload(gzip.compress(PAYLOAD[:-1]), attributes=1), ErrorCode.INVALID_RECORD),
    "equal offsets": (
        build_batch([Record(0, NOW, b"k", b"v"), Record(0, NOW, b"k", b"v")], last_offset_delta=1),
        ErrorCode.INVALID_RECORD,
    ),
    "offsets with a gap": (
        build_batch([Record(0, NOW, b"k", b"v"), Record(7, NOW, b"k", b"v")], last_offset_delta=1),
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize(("batch", "code"), GARBAGE.values(), ids=GARBAGE.keys())
def test_validating_topic_refuses_what_the_checksum_can_not_see(batch: bytearray, code: ErrorCode) -> None:
    error = refused(batch, VALIDATING)
    assert (error.code, error.message, error.record_errors) == (code, "", [])
    admitted(batch, PLAIN)


def test_bomb_is_refused_as_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_admission, "DECOMPRESSED_BYTES_MAX", 100_000)
    bomb = build_batch([Record(0, NOW, b"k", bytes(1_000_000))], codec=4)
    assert refused(bomb, COMPACTED).code == ErrorCode.MESSAGE_TOO_LARGE
    admitted(bomb, PLAIN)


# --- recompression ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", ["uncompressed", *CODEC_NAMES[1:]])
def test_topics_own_compression_wins(source: int, target: str) -> None:
    records = [Record(i, NOW + i, b"k", b"value " * 20) for i in range(10)]
    batch = build_batch(records, codec=source, producer_id=4, producer_epoch=1, base_sequence=6)
    data, header = admitted(batch, LogConfig(compression_type=target))
    assert header.codec == (0 if target == "uncompressed" else CODEC_NAMES.index(target))
    assert list(read_records(data)) == records
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 1, 6)
    if header.codec == source:
        assert data == bytes(batch)


def test_recompressed_batch_gets_append_time_too() -> None:
    config = LogConfig(compression_type="zstd", timestamp_is_append_time=True)
    data, header = admitted(good(), config)
    assert (header.codec, header.is_append_time, header.max_timestamp) == (4, True, NOW)
    assert [record.timestamp for record in read_records(data)] == [NOW, NOW]


def test_batch_that_grows_beyond_the_limit_is_refused() -> None:
    batch = build_batch([Record(0, NOW, b"k", bytes(5_000))], codec=1)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=1_000)
    assert refused(batch, config).code == ErrorCode.MESSAGE_TOO_LARGE


def test_only_topics_with_such_a_promise_are_looked_into() -> None:
    assert not needs_deep_look(PLAIN)
    assert not needs_deep_look(APPEND_TIME)
    for config in (COMPACTED, VALIDATING, NOT_OLD, LogConfig(compression_type="lz4")):
        assert needs_deep_look(config)
