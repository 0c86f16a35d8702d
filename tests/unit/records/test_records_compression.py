"""Codecs: every dialect that clients write is read, and nothing makes decompression take unbounded memory."""

from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headpond.protocol.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
from headpond.protocol.records.errors import CorruptBatch, DecompressedTooLarge, UnknownCodec

PAYLOADS = [b"", b"a", b"hello " * 10_000, bytes(200_000)]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("payload", PAYLOADS, ids=len)
def test_each_codec_gives_back_what_it_got(codec: int, payload: bytes) -> None:
    assert decompress(codec, compress(codec, payload)) == payload
    assert decompress(codec, memoryview(bytearray(compress(codec, bytearray(payload))))) == payload


@pytest.mark.parametrize("level", [1, 9, 17])
def test_lz4_takes_all_of_kafkas_levels(level: int) -> None:
    assert decompress(LZ4, compress(LZ4, b"abc" * 1000, level)) == b"abc" * 1000


@pytest.mark.parametrize("level", [-131_072, -1, 1, 22])
def test_zstd_takes_all_of_kafkas_levels(level: int) -> None:
    assert decompress(ZSTD, compress(ZSTD, b"abc" * 1000, level)) == b"abc" * 1000


@pytest.mark.parametrize("level", [-1, 1, 9])
def test_gzip_takes_all_of_kafkas_levels(level: int) -> None:
    assert gzip.decompress(compress(GZIP, b"abc" * 1000, level)) == b"abc" * 1000


def test_raw_snappy_of_librdkafka_is_read() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(b"xyz" * 1000))) == b"xyz" * 1000


def test_snappy_is_written_in_java_blocks_of_32_kib() -> None:
    data = compress(SNAPPY, bytes(70_000))
    assert data[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    sizes = []
    position = 16
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(data[position + 4 : position + 4 + size]))
        position += 4 + size
    assert sizes == [32_768, 32_768, 70_000 - 65_536]


def test_concatenated_streams_are_read_as_one() -> None:
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        assert decompress(codec, compress(codec, b"one ") + compress(codec, b"two")) == b"one two", CODEC_NAMES[codec]


def test_lz4_frame_has_independent_blocks_and_no_content_checksum() -> None:
    flags = compress(LZ4, b"abc" * 100)[4]
    assert flags & 0b0010_0000, "Java refuses blocks that depend on each other"
    assert not flags & 0b0000_0100


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_bomb_is_refused_within_bounded_memory(codec: int) -> None:
    bomb = compress(codec, bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, bomb, 1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000 + len(bomb)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_payload_of_exactly_the_limit_is_read(codec: int) -> None:
    data = compress(codec, bytes(300_000))
    assert len(decompress(codec, data, 300_000)) == 300_000
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, data, 299_999)


def test_snappy_that_claims_gigabytes_in_a_few_bytes_is_corrupt() -> None:
    with pytest.raises(CorruptBatch):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"abc")


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_cut_off_payload_is_corrupt(codec: int) -> None:
    data = compress(codec, bytes(range(256)) * 40)
    for size in (len(data) - 1, len(data) // 2, 20, 5):
        with pytest.raises(CorruptBatch):
            decompress(codec, data[:size])


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist_are_named(codec: int) -> None:
    with pytest.raises(UnknownCodec, match=str(codec)):
        decompress(codec, b"")
    with pytest.raises(UnknownCodec):
        compress(codec, b"")


@given(st.sampled_from([GZIP, SNAPPY, LZ4, ZSTD]), st.binary(max_size=300))
@example(SNAPPY, b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff")
@example(SNAPPY, b"\x82SNAPPY\x00")
def test_any_bytes_give_a_payload_or_our_error(codec: int, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 100_000)) <= 100_000
    except CorruptBatch:
        pass


@given(st.sampled_from([GZIP, SNAPPY, LZ4, ZSTD]), st.binary(max_size=200), st.data())
def test_damaged_payloads_give_a_payload_or_our_error(codec: int, payload: bytes, data: st.DataObject) -> None:
    damaged = bytearray(compress(codec, payload * 10))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(decompress(codec, damaged, 100_000)) <= 100_000
    except CorruptBatch:
        pass


def test_uncompressed_payload_is_copied_out_of_the_buffer() -> None:
    buffer = bytearray(b"abc")
    payload = decompress(NONE, memoryview(buffer))
    buffer[0] = 0
    assert payload == b"abc"
