"""Frames cut out of a stream: whatever the chunks, the frames are the same, and memory stays within its budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.frame import (
    EAGER_FRAME_BYTES,
    SMALLEST_BUFFER_BYTES,
    BufferPool,
    FrameReader,
    InvalidFrameSize,
    ReceiveBuffer,
)


def reader_with(shared_bytes: int = 64, budget_bytes: int = 1 << 30, frame_bytes_max: int = 100_000_000) -> FrameReader:
    return FrameReader(ReceiveBuffer(shared_bytes), BufferPool(budget_bytes), frame_bytes_max)


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def feed(reader: FrameReader, data: bytes, chunk_bytes: int) -> list[bytes]:
    """Hand the bytes over as a socket would: never more than fits, never more than a chunk."""
    frames = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), chunk_bytes, len(data))
        assert count > 0, "a reader must always offer room"
        buffer[:count] = data[:count]
        data = data[count:]
        reader.received(count)
        while reader.next_frame():
            frames.append(bytes(reader.view[reader.start : reader.end]))
        assert reader.keep()
    return frames


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=12),
    chunk_bytes=st.integers(1, 400),
    shared_bytes=st.integers(8, 128),
)
def test_the_same_frames_come_out_however_the_stream_is_chopped(
    bodies: list[bytes], chunk_bytes: int, shared_bytes: int
) -> None:
    reader = reader_with(shared_bytes)
    assert feed(reader, framed(*bodies), chunk_bytes) == bodies
    assert not reader.has_own


def test_memory_of_its_own_goes_back_when_the_frame_is_done() -> None:
    pool = BufferPool(1 << 30)
    reader = FrameReader(ReceiveBuffer(64), pool, 1 << 20)
    feed(reader, framed(bytes(5_000))[:-1], 64)
    assert pool.in_use_bytes > 0
    feed(reader, b"\0", 64)
    assert pool.in_use_bytes == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 1_001, 2**31 - 1])
def test_a_size_outside_the_limits_is_refused_and_shows_the_first_bytes(size: int) -> None:
    reader = reader_with(frame_bytes_max=1_000)
    data = size.to_bytes(4, "big", signed=True) + b"rest"
    with pytest.raises(InvalidFrameSize) as refused:
        feed(reader, data, 64)
    assert refused.value.size_bytes == size
    assert refused.value.first_bytes == data


def test_a_frame_put_back_comes_again_even_from_kept_memory() -> None:
    reader = reader_with(256)
    data = framed(b"first", b"second")
    reader.get_buffer()[: len(data)] = data
    reader.received(len(data))
    assert reader.next_frame()
    reader.unread_frame()
    assert reader.keep()
    assert reader.has_own
    assert reader.next_frame()
    assert bytes(reader.view[reader.start : reader.end]) == b"first"
    assert reader.next_frame()
    assert bytes(reader.view[reader.start : reader.end]) == b"second"
    assert not reader.next_frame()
    assert reader.keep()
    assert not reader.has_own


def test_a_huge_announced_frame_costs_only_what_has_arrived() -> None:
    pool = BufferPool(1 << 40)
    reader = FrameReader(ReceiveBuffer(64), pool, 1 << 30)
    feed(reader, (90_000_000).to_bytes(4, "big") + b"x", 64)
    assert pool.in_use_bytes <= 2 * EAGER_FRAME_BYTES


def test_a_reader_waits_when_the_budget_is_used_up_and_goes_on_when_memory_is_free() -> None:
    pool = BufferPool(6 * EAGER_FRAME_BYTES)
    other = pool.take(5 * EAGER_FRAME_BYTES, beyond_budget=True)
    assert other is not None
    reader = FrameReader(ReceiveBuffer(1 << 20), pool, 1 << 30)
    body = bytes(3 * EAGER_FRAME_BYTES)
    data = framed(body)
    position = 0
    woken: list[bool] = []
    frames = []
    while position < len(data):
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data) - position)
        buffer[:count] = data[position : position + count]
        position += count
        reader.received(count)
        while reader.next_frame():
            frames.append(reader.end - reader.start)
        if not reader.keep():
            pool.when_free(lambda: woken.append(True))
            pool.give_back(other)
            assert reader.keep()
    assert woken == [True]
    assert frames == [len(body)]


def test_buffers_are_used_again_but_not_hoarded() -> None:
    pool = BufferPool(1 << 40)
    first = pool.take(1_000_000)
    assert first is not None
    pool.give_back(first)
    assert pool.take(1_000_000) is first
    many = [pool.take(8_000_000) for _ in range(8)]
    for buffer in many:
        assert buffer is not None
        pool.give_back(buffer)
    assert pool._idle_bytes <= 16_777_216


def test_a_large_frame_goes_on_after_a_first_read_that_fills_a_whole_buffer() -> None:
    reader = reader_with(SMALLEST_BUFFER_BYTES)
    body = bytes(EAGER_FRAME_BYTES + 1)
    assert feed(reader, framed(body), SMALLEST_BUFFER_BYTES) == [body]
