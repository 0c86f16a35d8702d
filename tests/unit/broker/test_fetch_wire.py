"""The hand-written Fetch response is the one that the compiled codec would write, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.broker.handlers.fetch.session import FetchPartition
from headpond.broker.handlers.fetch.wire import Endpoint, PartitionData, encode
from headpond.protocol.apis import response_encoder
from headpond.protocol.schema.fetch import FetchResponse
from support.other_side import encode_response_header

VERSIONS = range(4, 19)
OFFSET = st.integers(-1, 2**63 - 1)


@st.composite
def partitions(draw: st.DrawFn, version: int) -> list[PartitionData]:
    topics = [bytes([n]) * 16 for n in (1, 2)] if version >= 13 else ["first", "second-é"]
    rows = []
    for topic in topics:
        for index in draw(st.lists(st.integers(0, 1_000), unique=True, max_size=4)):
            row = PartitionData(FetchPartition((topic, index), 0, 0, -1, -1), draw(st.integers(-1, 130)))
            row.high_watermark, row.last_stable_offset = draw(OFFSET), draw(OFFSET)
            row.log_start_offset = draw(OFFSET)
            row.records = draw(st.binary(max_size=300))
            row.aborted = draw(st.none() | st.lists(st.tuples(OFFSET, OFFSET), max_size=3))
            if version >= 12:
                row.diverging_epoch = draw(st.none() | st.just((3, 17)))
                row.current_leader = draw(st.none() | st.just((1, 9)))
            rows.append(row)
    return rows


def by_codec(version: int, rows: list[PartitionData], endpoints: list[Endpoint]) -> bytes:
    topics: dict[str | bytes, list[PartitionData]] = {}
    for row in rows:
        topics.setdefault(row.wanted.key[0], []).append(row)
    message = FetchResponse(
        session_id=5 if version >= 7 else 0,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic if isinstance(topic, str) else "",
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partitions=[partition_message(version, row) for row in of_topic],
            )
            for topic, of_topic in topics.items()
        ],
        node_endpoints=[
            FetchResponse.NodeEndpoint(node_id=e.node_id, host=e.host, port=e.port, rack=e.rack) for e in endpoints
        ],
    )
    frame = encode_response_header(1, version, 42) + response_encoder(1, version)(message)
    return len(frame).to_bytes(4, "big") + frame


def partition_message(version: int, row: PartitionData) -> FetchResponse.PartitionData:
    message = FetchResponse.PartitionData(
        partition_index=row.wanted.key[1],
        error_code=row.error_code,
        high_watermark=row.high_watermark,
        last_stable_offset=row.last_stable_offset,
        log_start_offset=row.log_start_offset if version >= 5 else -1,
        aborted_transactions=None
        if row.aborted is None
        else [FetchResponse.AbortedTransaction(producer_id=p, first_offset=o) for p, o in row.aborted],
        records=row.records,
    )
    if row.diverging_epoch is not None:
        epoch, end_offset = row.diverging_epoch
        message.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if row.current_leader is not None:
        leader_id, leader_epoch = row.current_leader
        message.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return message


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_response_by_hand_is_the_codecs(version: int, data: st.DataObject) -> None:
    rows = data.draw(partitions(version))
    endpoints = [Endpoint(1, "host", 9092, None), Endpoint(2, "other", 1, "rack")] if version >= 16 else []
    by_hand = b"".join(encode(version, 42, rows, session_id=5, endpoints=endpoints))
    assert by_hand == by_codec(version, rows, endpoints)
