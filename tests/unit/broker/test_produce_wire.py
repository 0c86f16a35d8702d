"""The hand-written Produce parser and response writer agree with the compiled codec, or leave the request to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.broker.handlers.produce.wire import (
    ProducePrefix,
    Result,
    one_topic_response,
    parse_one_partition,
    parse_partitions,
    parse_prefix,
    response,
)
from headpond.protocol.apis import request_decoder, request_encoder, response_decoder
from headpond.protocol.header import decode_request_header, decode_response_header, encode_request_header
from headpond.protocol.schema.produce import ProduceRequest

VERSIONS = range(3, 14)
TOPIC_ID = bytes(range(16))


def request_bytes(
    version: int, topics: list[tuple[str, list[tuple[int, bytes | None]]]], **fields: object
) -> bytearray:
    message = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name if version < 13 else "",
                topic_id=TOPIC_ID if version >= 13 else bytes(16),
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=index, records=records) for index, records in partitions
                ],
            )
            for name, partitions in topics
        ],
        **fields,  # type: ignore[arg-type]
    )
    return bytearray(encode_request_header(0, version, 77, "client") + request_encoder(0, version)(message))


def parse(version: int, data: bytearray) -> tuple[ProducePrefix, list[tuple[int, bytes]]] | None:
    prefix = parse_prefix(data, 0, len(data), version)
    if prefix is None:
        return None
    entries = parse_partitions(prefix, data, memoryview(data), 0, len(data))
    if entries is None:
        return None
    return prefix, [(index, bytes(records)) for index, records in entries]


@pytest.mark.parametrize("version", VERSIONS)
@given(
    topic=st.text("abc.-_é", min_size=1, max_size=200),
    partitions=st.lists(st.tuples(st.integers(0, 2**31 - 1), st.binary(max_size=400)), min_size=1, max_size=5),
    transactional_id=st.none() | st.text("tx-é", max_size=200),
)
@settings(max_examples=30, deadline=None)
def test_the_common_shape_is_read_as_the_codec_reads_it(
    version: int, topic: str, partitions: list[tuple[int, bytes | None]], transactional_id: str | None
) -> None:
    data = request_bytes(version, [(topic, partitions)], transactional_id=transactional_id)
    parsed = parse(version, data)
    assert parsed is not None
    prefix, entries = parsed
    assert entries == partitions
    assert (prefix.acks, prefix.timeout_ms, prefix.transactional_id) == (-1, 30_000, transactional_id)
    assert prefix.topic_id == TOPIC_ID if version >= 13 else prefix.topic == topic
    # The next request of the same producer starts with the same bytes.
    again = request_bytes(version, [(topic, [(9, b"other")])], transactional_id=transactional_id)
    assert again.startswith(prefix.raw, 8)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_shapes_are_left_to_the_codec(version: int) -> None:
    assert parse(version, request_bytes(version, [("a", [(0, b"x")]), ("b", [(0, b"y")])])) is None
    assert parse(version, request_bytes(version, [("a", [(0, None)])])) is None
    assert parse(version, request_bytes(version, [])) is None


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_it_accepts_after_damage_the_codec_accepts_too(version: int, data: st.DataObject) -> None:
    transactional_id = data.draw(st.sampled_from([None, "tx"]))
    good = request_bytes(version, [("topic", [(0, b"records"), (1, b"more")])], transactional_id=transactional_id)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 3))):
        bad[data.draw(st.integers(4, len(bad) - 1))] = data.draw(st.integers(0, 255))
    bad = bad[: data.draw(st.integers(8, len(bad)))]
    parsed = parse(version, bad)
    if parsed is not None:
        _, position = decode_request_header(bad)
        message, _ = request_decoder(0, version)(memoryview(bad), position)
        (topic,) = message.topic_data
        assert [(p.index, bytes(p.records)) for p in topic.partition_data] == parsed[1]
        assert message.transactional_id == parsed[0].transactional_id


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "results",
    [
        [Result(0, 0, 5, -1, 2)],
        [Result(0, 0, 5, 1234, 2), Result(7, 3)],
        [Result(i, 0, i, -1, 0) for i in range(130)],
        [Result(1, 87, log_start_offset=4, message="no", record_errors=[(0, "bad"), (1, None)])],
    ],
    ids=["one", "two", "many", "errors"],
)
def test_responses_say_what_the_codec_would_say(version: int, results: list[Result]) -> None:
    prefix = parse_prefix(request_bytes(version, [("topic", [(0, b"")])]), 0, 1_000, version)
    assert prefix is not None
    by_hand = one_topic_response(version, 77, prefix, results)
    name, topic_id = ("", TOPIC_ID) if version >= 13 else ("topic", bytes(16))
    assert by_hand == response(version, 77, [(name, topic_id, results)])
    assert int.from_bytes(by_hand[:4], "big") == len(by_hand) - 4
    correlation_id, position = decode_response_header(by_hand[4:], 0, version)
    assert correlation_id == 77
    message, end = response_decoder(0, version)(by_hand[4:], position)
    assert end == len(by_hand) - 4
    assert [p.index for p in message.responses[0].partition_responses] == [r.index for r in results]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_packed_answer_for_one_partition_is_the_codecs(version: int) -> None:
    prefix = parse_prefix(request_bytes(version, [("topic-é", [(0, b"")])]), 0, 1_000, version)
    assert prefix is not None
    result = Result(7, 0, 2**40, 1_234, 5)
    packed = prefix.pack_answer(77, result.index, result.base_offset, result.append_time_ms, result.log_start_offset)
    assert packed == one_topic_response(version, 77, prefix, [result])


@pytest.mark.parametrize("version", VERSIONS)
@given(index=st.integers(0, 2**31 - 1), records=st.binary(max_size=40_000))
@settings(max_examples=20, deadline=None)
def test_a_request_for_one_partition_is_read_in_one_go(version: int, index: int, records: bytes) -> None:
    data = request_bytes(version, [("topic", [(index, records)])])
    prefix = parse_prefix(data, 0, len(data), version)
    assert prefix is not None
    one = parse_one_partition(prefix, data, memoryview(data), 0, len(data))
    assert one is not None and (one[0], bytes(one[1])) == (index, records)
    more = request_bytes(version, [("topic", [(index, records), (1, b"")])])
    assert parse_one_partition(prefix, more, memoryview(more), 0, len(more)) is None
