"""Whatever the bytes are: the compiled reader and the plain one say the same, and nothing is read that is not there."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.header import APPEND_TIME_BIT, TRANSACTIONAL_BIT
from headpond.protocol.records.record import Record
from spark.codec_support import TP, codec, marker_at, mend_crc, outcome, reference_rows, rows_of
from support.variants import examples

COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")
SETTINGS = settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])

small_bytes = st.none() | st.binary(max_size=20) | st.integers(0, 300).map(bytes)
names = st.text(max_size=5) | st.just("\udcff")
headers = st.lists(st.tuples(names, small_bytes), max_size=3).map(tuple)
timestamps = st.integers(-1, 2**41) | st.integers(-(2**63), 2**63 - 1)
parts = st.tuples(timestamps, small_bytes, small_bytes, headers, st.integers(0, 3))


@st.composite
def batches(draw: st.DrawFn, start: int) -> tuple[bytes, int]:
    """A batch that begins at an offset, and where the next may begin."""
    if draw(st.integers(0, 5)) == 0:
        return marker_at(start, draw(st.integers(1, 3)), is_abort=draw(st.booleans())), start + 1
    records: list[Record] = []
    offset = start
    for timestamp, key, value, some_headers, gap in draw(st.lists(parts, min_size=1, max_size=8)):
        offset += gap
        records.append(Record(offset, timestamp, key, value, some_headers))
        offset += 1
    if any(abs(one.timestamp - records[0].timestamp) >= 2**63 for one in records):
        records = [one._replace(timestamp=5) for one in records]
    end = offset + draw(st.integers(0, 2))
    batch = build_batch(
        records,
        base_offset=start,
        codec=draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4])),
        attributes=draw(st.sampled_from([0, APPEND_TIME_BIT, TRANSACTIONAL_BIT])),
        producer_id=draw(st.integers(1, 3)),
        last_offset_delta=end - 1 - start,
    )
    return bytes(batch), end


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    pieces = []
    offset = draw(st.integers(0, 50))
    for _ in range(draw(st.integers(1, 6))):
        piece, offset = draw(batches(offset))
        pieces.append(piece)
        offset += draw(st.integers(0, 2))
    return b"".join(pieces)


def decode_rows(data: bytes, chunk_bytes: int = 1_000, **options) -> list:
    return rows_of(codec.decode(data, tp=TP, columns=COLUMNS, chunk_bytes=chunk_bytes, **options))


offsets = st.integers(0, 90)
aborted = st.lists(st.tuples(st.integers(1, 3), offsets), max_size=3)


@SETTINGS
@given(logs(), offsets, st.none() | offsets, aborted, st.sampled_from([1, 300, 100_000]))
def test_both_readers_agree_on_sound_logs(
    data: bytes, from_offset: int, end_offset: int | None, aborted: Sequence[tuple[int, int]], chunk_bytes: int
) -> None:
    options = {"from_offset": from_offset, "end_offset": end_offset, "aborted": aborted}
    expected = outcome(reference_rows, data, **options)
    assert outcome(decode_rows, data, chunk_bytes, **options) == expected


@SETTINGS
@given(logs(), st.data())
def test_both_readers_agree_on_logs_with_damaged_bytes(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        place = draw.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = draw.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    options = {"from_offset": 0, "check_crcs": False}
    assert outcome(decode_rows, bytes(damaged), **options) == outcome(reference_rows, bytes(damaged), **options)


def batch_around(payload: bytes, count: int, last_offset_delta: int = 100) -> bytes:
    batch = bytearray(build_batch([Record(0, 1, None, None)], last_offset_delta=last_offset_delta)[:61]) + payload
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    batch[57:61] = struct.pack(">i", count)
    return bytes(mend_crc(batch))


varint_like = st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 0x7F, 0x80, 0x81, 0xFE, 0xFF]), max_size=60).map(bytes)


@SETTINGS
@given(varint_like | st.binary(max_size=60), st.integers(-1, 6))
@example(b"\x0e\x00\x00\x00\x01\x01\x02", 1)
@example(b"\xff\xff\xff\xff\x0f" * 3, 1)
@example(b"\x80\x80\x80\x80\x80\x00", 1)
@example(b"\x0c\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f", 1)
def test_both_readers_agree_on_payloads_of_garbage(payload: bytes, count: int) -> None:
    data = batch_around(payload, count)
    assert outcome(decode_rows, data, from_offset=0) == outcome(reference_rows, data, from_offset=0)


@SETTINGS
@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_one_clear_error_or_nothing(data: bytes, check_crcs: bool) -> None:
    options = {"from_offset": 0, "check_crcs": check_crcs}
    assert outcome(decode_rows, data, **options) == outcome(reference_rows, data, **options)


@SETTINGS
@given(logs(), st.data())
def test_both_readers_agree_on_logs_that_were_cut_anywhere(data: bytes, draw: st.DataObject) -> None:
    cut = data[: draw.draw(st.integers(0, len(data)))]
    assert outcome(decode_rows, cut, from_offset=0) == outcome(reference_rows, cut, from_offset=0)


FIELD_BYTES_MAX = {"time": 10, "offset": 5, "key": 5, "value": 5, "headers": 5}


@pytest.mark.parametrize(("field", "bytes_max"), FIELD_BYTES_MAX.items())
def test_numbers_may_be_as_long_as_their_kind_and_no_longer(field: str, bytes_max: int) -> None:
    for length in (1, 2, 3, 5, 6, 10, 11):
        numbers = dict.fromkeys(FIELD_BYTES_MAX, b"\x00") | {field: b"\x80" * (length - 1) + b"\x00"}
        body = b"\x00" + b"".join(numbers.values())
        data = batch_around(bytes([2 * len(body)]) + body, 1)
        found = outcome(decode_rows, data, from_offset=0)
        assert found == outcome(reference_rows, data, from_offset=0)
        assert found == ([(b"", b"", 0, 1_000, 0, None)] if length <= bytes_max else "CORRUPT_MESSAGE"), length


GUARDED = """
import ctypes, mmap, random, sys
sys.path[:0] = {path!r}
from spark.test_codec_fuzz import batch_around, decode_rows, outcome

# Bytes that end where a page begins that nobody may read: one step too far ends the process.
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
chance = random.Random(1)
body = bytes.fromhex("1e000000066b657904766102026e027600000000")
for count in range(1, 4):
    for length in range(40):
        for _ in range(60):
            payload = bytearray((bytes([2 * chance.randrange(64)]) + body * 2)[:length])
            for _ in range(chance.randrange(3) if payload else 0):
                place = chance.randrange(len(payload))
                payload[place] = chance.choice([0, 1, 2, 0x10, 0x40, 0x7E, 0x7F, 0x80, 0xFE, 0xFF])
            data = batch_around(bytes(payload), count)
            start = mmap.PAGESIZE - len(data)
            memory[start : mmap.PAGESIZE] = data
            outcome(decode_rows, memoryview(memory)[start : mmap.PAGESIZE], from_offset=0)
print("read to the last byte")
"""


def test_nothing_is_read_behind_the_last_byte() -> None:
    program = GUARDED.replace("{path!r}", repr([path for path in sys.path if path]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "read to the last byte"), done.stderr


def test_every_length_inside_of_a_record_may_lie() -> None:
    """Each byte of a small batch takes every value once, the checksum mended: no place escapes the comparison."""
    record = Record(3, 1_005, b"key", b"value", (("name", b"x"), ("n", None)))
    sound = build_batch([Record(2, 1_000, None, None), record], base_offset=2)
    for place in range(61, len(sound)):
        for value in range(256):
            damaged = bytearray(sound)
            damaged[place] = value
            data = bytes(mend_crc(damaged))
            expected = outcome(reference_rows, data, from_offset=0)
            assert outcome(decode_rows, data, from_offset=0) == expected, (place, value)
