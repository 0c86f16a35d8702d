"""The batch header: what it reads, what it patches, and that patching leaves the checksum alone."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from headpond.protocol.records.builder import build_batch
from headpond.protocol.records.checksum import crc32c
from headpond.protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, crc_of, read_header
from headpond.protocol.records.record import Record
from support.other_side import stamp

RECORDS = [Record(0, 1_000, b"k", b"v"), Record(1, 1_500, None, b"w"), Record(2, 1_200, b"k", None)]


def test_header_tells_what_the_batch_was_built_from() -> None:
    batch = build_batch(
        RECORDS, leader_epoch=4, codec=1, attributes=TRANSACTIONAL_BIT, producer_id=9, producer_epoch=2, base_sequence=7
    )
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch, header.magic) == (0, 4, 2)
    assert (header.last_offset_delta, header.count, header.last_offset) == (2, 3, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_500)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (9, 2, 7, 9)
    assert (header.codec, header.is_transactional, header.is_control, header.is_append_time) == (1, True, False, False)
    assert header.size_bytes == len(batch)
    assert header.crc == crc_of(batch)


def test_header_is_read_at_its_position_among_other_bytes() -> None:
    batch = build_batch(RECORDS, attributes=CONTROL_BIT)
    assert read_header(b"xyz" + batch + b"more", 3) == read_header(batch)


def test_stamping_sets_offset_and_epoch_and_keeps_the_checksum() -> None:
    batch = build_batch(RECORDS)
    before = read_header(batch)
    buffer = bytearray(b"..") + batch
    stamp(memoryview(buffer), 2, 5_000_000_000, 12)
    after = read_header(buffer, 2)
    assert after == before._replace(base_offset=5_000_000_000, leader_epoch=12)
    assert crc_of(buffer[2:]) == after.crc


def test_sequences_of_a_batch_run_from_the_largest_number_to_zero() -> None:
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert header.last_sequence == 0
    assert header._replace(base_sequence=-1).last_sequence == -1


def test_too_few_bytes_are_a_struct_error() -> None:
    with pytest.raises(struct.error):
        read_header(bytes(60))


def test_checksum_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_checksum_is_loaded_without_the_slow_part_of_its_package() -> None:
    code = (
        "import sys, headpond.protocol.records.checksum as c; assert c.crc32c(b'a'); "
        "assert 'importlib.metadata' not in sys.modules; import crc32c; assert crc32c.crc32c(b'a') == c.crc32c(b'a')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
