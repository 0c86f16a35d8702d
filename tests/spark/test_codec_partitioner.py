"""The same key goes to the same partition as with every other client."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.client.partitioner import partition_for_key
from spark.codec_support import codec, pa


def partitions(keys: list[bytes | None], count: int, keyless: int = 0) -> list[int]:
    columns = codec.RecordColumns.of(key=pa.array(keys, pa.binary()), value=pa.nulls(len(keys)), now_ms=0)
    return codec.partition_of_keys(columns.key, count, keyless_partition=keyless).tolist()


def test_keys_whose_hash_java_publishes_are_placed_by_it() -> None:
    hashes = {  # of Kafka's own UtilsTest
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    for count in (1, 7, 2**31 - 1):
        expected = [(number & 0x7FFFFFFF) % count for number in hashes.values()]
        assert partitions(list(hashes), count) == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 1_000))
def test_all_keys_are_placed_as_the_client_places_them(keys: list[bytes], count: int) -> None:
    assert partitions(keys, count) == [partition_for_key(key, count) for key in keys]


def test_rows_without_a_key_go_where_the_caller_says_and_an_empty_key_is_a_key() -> None:
    assert partitions([None, b"", None], 11, keyless=4) == [4, partition_for_key(b"", 11), 4]


def test_keys_of_a_sliced_column_of_text_are_the_same_keys() -> None:
    column = pa.array(["x", "foobar", None], pa.large_string()).slice(1)
    columns = codec.RecordColumns.of(key=column, value=pa.nulls(2), now_ms=0)
    assert codec.partition_of_keys(columns.key, 7, keyless_partition=6).tolist() == [partition_for_key(b"foobar", 7), 6]


@pytest.mark.parametrize(("count", "keyless"), [(0, 0), (3, 3), (3, -1)])
def test_a_partition_that_does_not_exist_is_refused(count: int, keyless: int) -> None:
    with pytest.raises(ValueError, match="not one of"):
        partitions([b"k"], count, keyless)
