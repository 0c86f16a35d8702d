"""Keys and values of the internal topics, and which partition a name belongs to."""

from __future__ import annotations

import pytest

from headpond.coordination.partition import java_hash, partition_for
from headpond.coordination.records import CoordinatorRecord, RecordCodec, RecordType
from headpond.protocol.errors import MalformedMessage, UnsupportedVersion
from headpond.protocol.schema.classic_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

CODEC = RecordCodec(
    {1: RecordType(OffsetCommitKey, OffsetCommitValue, 3), 2: RecordType(GroupMetadataKey, GroupMetadataValue, 3)}
)


def test_a_record_comes_back_as_it_went() -> None:
    record = CoordinatorRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9),
    )
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_the_bytes_are_kafkas() -> None:
    record = CoordinatorRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=9),
    )
    key, value = CODEC.encode(record)
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert value == bytes.fromhex("0003 0000000000000007 00000002 0001 6d 0000000000000009")


def test_a_tombstone_has_a_key_and_no_value() -> None:
    key, value = CODEC.encode(CoordinatorRecord(GroupMetadataKey(group="g"), None))
    assert (key, value) == (bytes.fromhex("0002 0001 67"), None)
    assert CODEC.decode(key, None) == CoordinatorRecord(GroupMetadataKey(group="g"), None)


def test_values_of_older_versions_are_read() -> None:
    key = bytes.fromhex("0001 0001 67 0001 74 00000003")
    old = bytes.fromhex("0001 0000000000000007 0001 6d 0000000000000009 000000000000000a")
    record = CODEC.decode(key, old)
    assert record is not None
    assert record.value == OffsetCommitValue(
        offset=7, metadata="m", commit_timestamp=9, expire_timestamp=10, leader_epoch=-1
    )


def test_buffers_of_every_kind_are_read() -> None:
    key, value = CODEC.encode(CoordinatorRecord(GroupMetadataKey(group="g"), GroupMetadataValue(generation=4)))
    assert value is not None
    decoded = CODEC.decode(memoryview(key), bytearray(value))
    assert decoded is not None
    assert decoded.value == GroupMetadataValue(generation=4)


def test_types_that_are_not_known_are_left_alone() -> None:
    assert CODEC.decode(b"\x00\x63whatever", b"\x00\x00whatever") is None
    assert CODEC.decode(b"\x00\x63whatever", None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0"),
        (b"", b"\0\0"),
        (b"\0", None),
        (b"\0\2\0\5ab", None),
        (b"\0\2\0\1g", b""),
        (b"\0\2\0\1g", b"\0"),
        (b"\0\2\0\1g", b"\0\3\0"),
    ],
)
def test_bytes_that_make_no_record_are_malformed(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode(key, value)


def test_a_version_of_the_future_is_not_guessed_at() -> None:
    with pytest.raises((MalformedMessage, UnsupportedVersion)):
        CODEC.decode(b"\0\2\0\1g", b"\0\x63" + bytes(40))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99_162_322),
        ("console-consumer-12345", 158_455_506),
        ("polygenelubricants", -2_147_483_648),  # whose absolute value does not fit
        ("ü", 252),
        ("😀", 1_772_899),  # a surrogate pair is two units: 0xD83D * 31 + 0xDE00
        ("a😀b", 31 * (31 * (31 * 97 + 0xD83D) + 0xDE00) + 98),
        ("\ud83d", 0xD83D),  # half a pair
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_a_name_belongs_to_a_partition_that_exists_also_when_its_hash_is_negative() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("hello", 50) == 99_162_322 % 50
    assert partition_for("billing", 50) == 9  # by its distance from zero; its lower 31 bits would say 39
    assert partition_for("analytics", 50) == 10
    assert all(0 <= partition_for(f"group-{n}", 7) < 7 for n in range(100))
