"""Frames cut out of a stream: whatever the chunks, the frames are the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.protocol.frame import FrameReader, InvalidFrameSize
from headpond.protocol.frame_memory import ORDINARY_BYTES_MAX, SMALL_BYTES, FrameMemory, ReceiveBuffer


class Owner:
    is_working = False

    def __init__(self) -> None:
        self.was_told = 0

    def frame_memory_is_there(self) -> None:
        self.was_told += 1

    def put_out(self, what: str) -> None:
        raise AssertionError(what)


def memory_with(shared_bytes: int = 64, budget_bytes: int = 1 << 30, frame_bytes_max: int = 100_000_000) -> FrameMemory:
    return FrameMemory(
        budget_bytes, frame_bytes_max, now_s=lambda: 0.0, allocate=bytearray, shared=ReceiveBuffer(shared_bytes)
    )


def reader_with(frame_bytes_max: int = 100_000_000, **memory: Any) -> FrameReader:
    return FrameReader(memory_with(frame_bytes_max=frame_bytes_max, **memory), frame_bytes_max)


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def feed(reader: FrameReader, data: bytes, chunk_bytes: int) -> list[bytes]:
    """Hand the bytes over as a socket would: never more than fits, never more than a chunk."""
    frames = []
    position = 0
    while position < len(data):
        buffer = reader.get_buffer()
        count = min(len(buffer), chunk_bytes, len(data) - position)
        assert count > 0, "a reader must always offer room"
        buffer[:count] = data[position : position + count]
        position += count
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
    reader = reader_with(shared_bytes=shared_bytes)
    assert feed(reader, framed(*bodies), chunk_bytes) == bodies
    assert not reader.has_own


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(
        st.sampled_from([0, 5, SMALL_BYTES - 5, SMALL_BYTES - 4, SMALL_BYTES - 3, 70_000, ORDINARY_BYTES_MAX + 1]),
        max_size=5,
    ),
    chunk_bytes=st.integers(3_000, 200_000),
    shared_bytes=st.sampled_from([4_096, 65_536, 262_144]),
)
def test_and_so_do_frames_of_every_kind_of_size(sizes: list[int], chunk_bytes: int, shared_bytes: int) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    reader = reader_with(shared_bytes=shared_bytes)
    assert feed(reader, framed(*bodies), chunk_bytes) == bodies
    assert not reader.has_own
    assert reader._memory.in_use_bytes == 0


def test_memory_of_its_own_goes_back_when_the_frame_is_done() -> None:
    memory = memory_with()
    reader = FrameReader(memory, 1 << 20)
    feed(reader, framed(bytes(5_000))[:-1], 64)
    assert memory.in_use_bytes > 0
    feed(reader, b"\0", 64)
    assert memory.in_use_bytes == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 1_001, 2**31 - 1])
def test_a_size_outside_the_limits_is_refused_and_shows_the_first_bytes(size: int) -> None:
    reader = reader_with(frame_bytes_max=1_000)
    data = size.to_bytes(4, "big", signed=True) + b"rest"
    with pytest.raises(InvalidFrameSize) as refused:
        feed(reader, data, 64)
    assert refused.value.size_bytes == size
    assert refused.value.first_bytes == data


def test_a_frame_put_back_comes_again_even_from_kept_memory() -> None:
    reader = reader_with(shared_bytes=256)
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


def test_a_reader_waits_when_the_budget_is_used_up_and_goes_on_when_it_is_told() -> None:
    memory = memory_with(1 << 20, budget_bytes=6 * ORDINARY_BYTES_MAX, frame_bytes_max=3 * ORDINARY_BYTES_MAX)
    other = FrameReader(memory, 3 * ORDINARY_BYTES_MAX)
    feed(other, framed(bytes(3 * ORDINARY_BYTES_MAX))[:-1], 1 << 20)
    owner = Owner()
    reader = FrameReader(memory, 3 * ORDINARY_BYTES_MAX, owner)
    body = bytes(range(256)) * (3 * ORDINARY_BYTES_MAX // 256)
    data = framed(body)
    reader.get_buffer()[:] = data[: 1 << 20]
    reader.received(1 << 20)
    assert not reader.next_frame()
    assert not reader.keep()
    assert not reader.keep(), "asking twice changes nothing"
    assert owner.was_told == 0
    other.release()
    assert owner.was_told == 1
    assert reader.keep()
    assert feed(reader, data[1 << 20 :], 1 << 20) == [body]
    assert memory.in_use_bytes == 0


def test_a_reader_that_goes_away_while_it_waits_takes_nothing_with_it() -> None:
    memory = memory_with(1 << 20, budget_bytes=4 * ORDINARY_BYTES_MAX, frame_bytes_max=3 * ORDINARY_BYTES_MAX)
    first, second = (FrameReader(memory, 3 * ORDINARY_BYTES_MAX, Owner()) for _ in range(2))
    for reader in (first, second):
        data = framed(bytes(3 * ORDINARY_BYTES_MAX))[: 1 << 20]
        reader.get_buffer()[:] = data
        reader.received(len(data))
        reader.keep()
    assert memory.has_waiters
    second.release()
    assert not memory.has_waiters
    first.release()
    assert memory.in_use_bytes == 0
