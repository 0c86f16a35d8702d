"""Each public call of the library: what it does, and what it says to bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headpond.log
from headpond.log import (
    CorruptRecord,
    KeyMissing,
    Log,
    LogClosed,
    LogUnusable,
    NewRecord,
    OffsetOutOfRange,
    Record,
    RecordTooLarge,
)
from headpond.log.given import RECORD_BYTES_MAX
from unit.log.log_rig import NOW_MS, SEGMENT, LogRig

LATER = NOW_MS + 60_000


# --- append -----------------------------------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written(log: Log) -> None:
    offset = log.append("zwei Äpfel", key=b"anna", headers={"from": "a test", "empty": None}, timestamp=5)
    assert list(log.read()) == [
        Record(offset, 5, b"anna", "zwei Äpfel".encode(), (("from", b"a test"), ("empty", None)))
    ]


@pytest.mark.parametrize("value", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), "bytes"])
def test_a_value_may_be_bytes_of_any_kind_or_text(log: Log, value: Any) -> None:
    log.append(value, key=value)
    (record,) = log.read()
    assert (record.key, record.value) == (b"bytes", b"bytes")


def test_a_record_without_a_timestamp_gets_the_time(log: Log) -> None:
    log.append(None)
    (record,) = log.read()
    assert (record.timestamp, record.key, record.value) == (NOW_MS, None, None)


BAD_RECORDS: list[tuple[Callable[[Log], object], type[Exception], str]] = [
    (lambda log: log.append(5), TypeError, "the value is the int 5: it should be bytes, str or None"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", key=["a"]), TypeError, "the key is the list"),  # type: ignore[arg-type]
    (lambda log: log.append("\ud800"), ValueError, "surrogates"),
    (lambda log: log.append(b"", headers=5), TypeError, "the headers are the int 5"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", headers="ab"), TypeError, "the headers are the str 'ab'"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", headers=[("a", b"", 1)]), TypeError, "a header is the tuple"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", headers={b"a": b""}), TypeError, "pair of name and value"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", headers={"a": 1}), TypeError, "the header 'a' is the int 1"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", headers={"\ud800": b""}), ValueError, "surrogates"),
    (lambda log: log.append(b"", timestamp="now"), TypeError, "the timestamp is the str 'now'"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", timestamp=1.5), TypeError, "the timestamp is the float"),  # type: ignore[arg-type]
    (lambda log: log.append(b"", timestamp=True), TypeError, "the timestamp is the bool"),
    (lambda log: log.append(b"", timestamp=-1), ValueError, "milliseconds since 1970"),
    (lambda log: log.append(b"", timestamp=1 << 63), ValueError, "out of range"),
    (lambda log: log.append(bytes(RECORD_BYTES_MAX)), RecordTooLarge, "16777216 are allowed"),
    (lambda log: log.append_many(b"abc"), TypeError, "takes a list of records, not a bytes"),
    (lambda log: log.append_many("abc"), TypeError, "takes a list of records, not a str"),
    (lambda log: log.append_many(NewRecord(b"a")), TypeError, "takes a list of records, not a NewRecord"),  # type: ignore[arg-type]
    (lambda log: log.append_many(5), TypeError, "takes a list of records, not a int"),  # type: ignore[arg-type]
    (lambda log: log.append_many([b"a", 5]), TypeError, "the value is the int 5"),  # type: ignore[arg-type]
    (lambda log: log.append_many([NewRecord(b"a", timestamp=-5)]), ValueError, "the timestamp -5"),
]


@pytest.mark.parametrize(("call", "error", "words"), BAD_RECORDS)
def test_a_bad_record_is_refused_and_nothing_of_it_is_written(
    log: Log, call: Callable[[Log], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call(log)
    assert (log.end_offset, list(log.read())) == (0, [])
    assert log.append(b"next") == 0


def test_many_records_get_offsets_in_their_order(log: Log) -> None:
    assert log.append_many([]) == []
    assert log.append_many(b"%d" % number for number in range(3_000)) == list(range(3_000))
    assert [record.value for record in log.read()] == [b"%d" % number for number in range(3_000)]
    assert len(log.segments()) > 1


def test_a_record_that_is_larger_than_a_segment_is_one_by_itself(log: Log) -> None:
    log.append_many([b"small", bytes(100_000), b"small"])
    assert [len(record.value or b"") for record in log.read()] == [5, 100_000, 5]
    assert next(log.read(2)).offset == 2


def test_an_iterable_that_fails_leaves_the_records_before_it() -> None:
    rig = LogRig(segment_bytes=1 << 20)
    log = rig.open()

    def records() -> Any:
        for number in range(100):
            yield bytes(1_000)
            if number == 90:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        log.append_many(records())
    log.flush()
    assert 0 < log.end_offset <= 91
    rig.die()


# --- read -------------------------------------------------------------------------------------------------------------


def test_a_read_ends_where_the_log_ended_when_it_began(log: Log) -> None:
    log.append_many([b"a", b"b"])
    seen = []
    for record in log.read():
        log.append(record.value)
        seen.append(record.offset)
    assert seen == [0, 1]


def test_a_read_from_the_end_finds_nothing(log: Log) -> None:
    assert list(log.read(0)) == []
    log.append(b"a")
    assert list(log.read(1)) == list(log.read_batches(1)) == list(log.read(from_timestamp=LATER)) == []


@pytest.mark.parametrize("method", ["read", "read_batches", "follow"])
@pytest.mark.parametrize("offset", [-1, 3, 1 << 80])
def test_an_offset_that_is_not_there_is_an_error_of_the_call_itself(log: Log, method: str, offset: int) -> None:
    log.append_many([b"a", b"b"])
    with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is outside of the log, which has 0 to 2") as caught:
        getattr(log, method)(offset)
    assert (caught.value.offset, caught.value.start_offset, caught.value.end_offset) == (offset, 0, 2)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda log: log.read("0"), TypeError),
        (lambda log: log.read(1.0), TypeError),
        (lambda log: log.read(True), TypeError),
        (lambda log: log.read(0, from_timestamp=0), ValueError),
        (lambda log: log.read(from_timestamp="now"), TypeError),
        (lambda log: log.read_batches("0"), TypeError),
        (lambda log: log.read_batches(from_timestamp=None, from_offset=b""), TypeError),
        (lambda log: log.offset_at(None), TypeError),
        (lambda log: log.follow("0"), TypeError),
        (lambda log: log.follow(timeout_s="1"), TypeError),
        (lambda log: log.follow(timeout_s=-1), ValueError),
        (lambda log: log.follow(timeout_s=float("nan")), ValueError),
        (lambda log: log.follow(timeout_s=float("inf")), ValueError),
        (lambda log: log.delete_before("1"), TypeError),
        (lambda log: log.delete_before(-1), OffsetOutOfRange),
        (lambda log: log.delete_before(2), OffsetOutOfRange),
        (lambda log: log.compact(tombstone_retention_ms="1"), TypeError),
        (lambda log: log.compact(tombstone_retention_ms=-1), ValueError),
    ],
)
def test_bad_arguments_are_refused(log: Log, call: Callable[[Any], object], error: type[Exception]) -> None:
    log.append(b"a", key=b"k")
    with pytest.raises(error):
        call(log)
    assert [record.value for record in log.read()] == [b"a"]


def test_timestamps_far_away_are_searched_as_any(log: Log) -> None:
    log.append(b"a", timestamp=7)
    assert [log.offset_at(timestamp) for timestamp in (-(1 << 70), 0, 7, 8, 1 << 70)] == [0, 0, 0, 1, 1]


def test_batches_are_handed_out_as_they_are_in_the_file(rig: LogRig) -> None:
    rig.log.append_many([b"a", b"b"])
    rig.log.append(b"c")
    first, second = rig.log.read_batches(1)
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 1, 2)
    assert [record.value for record in first.records(1)] == [b"b"]
    assert [record.value for record in second.records()] == [b"c"]
    assert bytes(first.data) + bytes(second.data) == rig.disk.contents(SEGMENT)
    assert first.size_bytes == first.header.size_bytes == len(first.data)


# --- follow -----------------------------------------------------------------------------------------------------------


def test_following_goes_on_with_what_is_appended_later(log: Log) -> None:
    log.append(b"before")
    later = log.follow()
    log.append(b"after")
    assert next(later).value == b"after"
    assert next(log.follow(0)).value == b"before"


def test_following_ends_when_nothing_comes_for_so_long(log: Log) -> None:
    log.append_many([b"a", b"b"])
    assert [record.offset for record in log.follow(0, timeout_s=0)] == [0, 1]


def test_following_ends_when_the_log_is_closed(log: Log) -> None:
    log.append(b"a")
    log.append(b"b")
    followed = log.follow(0)
    next(followed)
    log.close()
    assert list(followed) == []


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_damaged_batch_is_told_with_its_offset_and_where_to_read_on(rig: LogRig) -> None:
    log = rig.log
    for number in range(4):
        log.append(b"value %d" % number)
    size_bytes = log.size_bytes // 4
    rig.disk.flip_bit(SEGMENT, 2 * size_bytes - 3)
    seen = []
    with pytest.raises(CorruptRecord, match=r"offset 1 is damaged.*read on from offset 2") as caught:
        seen += [record.offset for record in log.read()]
    assert (caught.value.offset, caught.value.next_offset) == (1, 2)
    assert [record.offset for record in log.read(caught.value.next_offset)] == [2, 3]
    with pytest.raises(CorruptRecord):
        list(log.read_batches())


def test_a_damaged_header_leads_on_to_the_next_segment(rig: LogRig) -> None:
    log = rig.log
    log.append_many([bytes(300)] * 12)
    first, second = log.segments()[:2]
    rig.disk.flip_bit(SEGMENT, 16, 3)  # the format's version
    with pytest.raises(CorruptRecord) as caught:
        list(log.read())
    assert caught.value.next_offset == first.end_offset == second.base_offset
    assert next(log.read(caught.value.next_offset)).offset == second.base_offset


def test_an_index_that_leads_astray_is_made_anew(rig: LogRig) -> None:
    log = rig.log
    for _ in range(40):
        log.append(bytes(60))
    segment = log.segments()[0]
    assert segment.index_entries
    log.close()
    rig.disk.flip_bit(segment.path.replace(".log", ".index"), 7)
    log = rig.open()
    assert [next(log.read(offset)).offset for offset in range(40)] == list(range(40))


# --- delete and compact -----------------------------------------------------------------------------------------------


def test_what_is_deleted_is_gone_after_a_restart_and_its_segments_too(rig: LogRig) -> None:
    log = rig.log
    log.append_many([bytes(300)] * 20)
    segments = log.segments()
    assert log.delete_before(11) == 11
    assert log.start_offset == 11
    assert log.delete_before(3) == 11, "it never goes back"
    assert [one.base_offset for one in log.segments()] == [one.base_offset for one in segments if one.end_offset > 11]
    with pytest.raises(OffsetOutOfRange):
        log.read(10)
    rig.die()
    assert [record.offset for record in rig.open().read()] == list(range(11, 20))


def test_a_reader_goes_on_in_files_that_are_gone_meanwhile_or_is_told(rig: LogRig) -> None:
    log = rig.log
    log.append_many([bytes(300)] * 20)
    reader = log.read()
    next(reader)
    log.delete_before(20)
    rig.on_loop(lambda: rig.clock.advance(5))  # the files are removed
    with pytest.raises(OffsetOutOfRange, match="which has 20 to 20"):
        list(reader)
    assert log.append(b"next") == 20


def test_everything_may_be_deleted(log: Log) -> None:
    log.append_many([b"a", b"b"])
    log.delete_before(2)
    assert (log.start_offset, log.end_offset, list(log.read())) == (2, 2, [])
    assert log.append(b"c") == 2


def test_retention_by_size_and_age_takes_whole_segments() -> None:
    rig = LogRig(retention_bytes=1_500)
    log = rig.open()
    log.append_many([NewRecord(bytes(300), timestamp=NOW_MS)] * 20)
    assert log.apply_retention() > 0
    assert 1_000 < log.size_bytes < 3_000
    log.close()
    rig.settings = rig.settings._replace(retention_bytes=None, retention_ms=1_000)
    rig.now_ms += 5_000
    log = rig.open()
    assert log.apply_retention() > 0
    assert log.start_offset == log.end_offset == 20
    rig.die()


def test_a_compaction_keeps_the_latest_of_each_key_and_says_what_it_did(log: Log) -> None:
    for number in range(30):
        log.append(b"value %d" % number, key=b"key %d" % (number % 3))
    done = log.compact()
    assert (done.records_read, done.records_removed, done.end_offset) == (30, 27, 30)
    assert done.bytes_after == log.size_bytes < done.bytes_before
    assert [record.offset for record in log.read()] == [27, 28, 29]
    assert next(log.read(4)).offset == 27, "offsets do not change"
    assert log.append(b"a", key=b"key 0") == 30


def test_a_compaction_of_nothing_does_nothing(log: Log) -> None:
    assert log.compact() == (0, 0, 0, 0, 0)
    log.append(b"a", key=b"k")
    log.compact()
    assert [record.value for record in log.read()] == [b"a"]


def test_a_tombstone_goes_when_its_time_is_over(log: Log) -> None:
    log.append(b"a", key=b"k")
    log.append(None, key=b"k")
    log.compact(tombstone_retention_ms=0)
    assert [(record.offset, record.value) for record in log.read()] == [(1, None)]
    log.append(b"b", key=b"other")
    log.compact(tombstone_retention_ms=0)
    assert [record.key for record in log.read()] == [b"other"]


def test_a_log_with_a_record_without_a_key_is_not_compacted(log: Log) -> None:
    log.append(b"a", key=b"k")
    log.append(b"b")
    with pytest.raises(KeyMissing, match="offset 1 has no key") as caught:
        log.compact()
    assert caught.value.offset == 1
    assert len(list(log.read())) == 2
    log.delete_before(2)
    log.append(b"c", key=b"k")
    log.compact()  # the next one is not kept from it


# --- open and close ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"segment_bytes": 0}, ValueError, "segment_bytes is 0: it should be 1024 to 2147483647"),
        ({"segment_bytes": 1 << 31}, ValueError, "segment_bytes is 2147483648"),
        ({"segment_bytes": "1MB"}, TypeError, "segment_bytes is the str '1MB'"),
        ({"index_interval_bytes": -1}, ValueError, "index_interval_bytes is -1"),
        ({"flush": "never"}, ValueError, "flush is 'never': it should be one of ack, interval, os"),
        ({"flush": None}, ValueError, "flush is None"),
        ({"retention_ms": -1}, ValueError, "retention_ms is -1: it should be at least 0"),
        ({"retention_bytes": 1.5}, TypeError, "retention_bytes is the float"),
        ({"name": "a b"}, ValueError, "can't be called 'a b'"),
        ({"name": ""}, ValueError, "the empty string is not allowed"),
        ({"name": ".."}, ValueError, "'..' is not allowed"),
        ({"name": "x" * 250}, ValueError, "longer than the max allowed length 249"),
    ],
)
def test_a_log_is_not_opened_with_bad_arguments(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        headpond.log.open(tmp_path / "orders", **arguments)
    assert not (tmp_path / "orders").exists()


@pytest.mark.parametrize("path", [None, 5, b"orders"])
def test_a_path_is_text_or_a_path(path: Any) -> None:
    with pytest.raises(TypeError, match="the path is a"):
        headpond.log.open(path)


def test_a_folder_that_is_not_a_log_s_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(LogUnusable, match="file is a file, and a folder is wanted"):
        headpond.log.open(file)
    with headpond.log.open(tmp_path / "orders") as log:
        log.append(b"a")
    with pytest.raises(LogUnusable, match="holds orders-0, and not only the log payments"):
        headpond.log.open(tmp_path / "orders", name="payments")
    (tmp_path / "orders" / "metadata.sqlite").write_bytes(b"")
    with pytest.raises(LogUnusable, match="belongs to a broker"):
        headpond.log.open(tmp_path / "orders")


CALLS: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append(b"a"),
    "append_many": lambda log: log.append_many([b"a"]),
    "append nothing": lambda log: log.append_many([]),
    "flush": lambda log: log.flush(),
    "read": lambda log: log.read(),
    "read_batches": lambda log: log.read_batches(),
    "follow": lambda log: log.follow(),
    "offset_at": lambda log: log.offset_at(0),
    "delete_before": lambda log: log.delete_before(0),
    "apply_retention": lambda log: log.apply_retention(),
    "compact": lambda log: log.compact(),
    "segments": lambda log: log.segments(),
    "start_offset": lambda log: log.start_offset,
    "end_offset": lambda log: log.end_offset,
    "size_bytes": lambda log: log.size_bytes,
    "with": lambda log: log.__enter__(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_closed_log_says_so(log: Log, call: Callable[[Log], object]) -> None:
    log.append(b"a")
    reader = log.read()
    log.close()
    with pytest.raises(LogClosed, match="the log is closed"):
        call(log)
    with pytest.raises(LogClosed):
        next(reader)
    log.close()
    assert log.is_closed
    assert repr(log) == "Log('/orders', closed)"


def test_a_log_is_what_it_was_after_a_clean_restart(rig: LogRig) -> None:
    rig.log.append_many([bytes(200)] * 9)
    segments = rig.log.segments()
    rig.log.close()
    with rig.open() as log:
        assert (log.start_offset, log.end_offset, log.name) == (0, 9, "orders")
        assert log.segments() == segments
        assert repr(log) == "Log('/orders', 0..9)"
        assert log.append(b"next") == 9
    assert log.is_closed
