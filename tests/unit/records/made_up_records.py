"""Hypothesis strategies for records and batches."""

from __future__ import annotations

from hypothesis import strategies as st

from headpond.protocol.records.record import Record

blobs = st.none() | st.binary(max_size=40) | st.binary(min_size=1, max_size=4).map(lambda b: b * 100)
header_lists = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
timestamps = st.integers(0, 2**45)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records as a producer sends them: offsets 0, 1, 2, ...; timestamps in any order."""
    count = draw(st.integers(1, 12))
    return [Record(offset, draw(timestamps), draw(blobs), draw(blobs), draw(header_lists)) for offset in range(count)]
