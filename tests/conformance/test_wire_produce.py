"""Produce: what is taken, what is refused with which code, and that a refusal leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headpond.protocol.schema.produce import ProduceRequest
from support.batches import CODECS, Rec, build, now_ms
from support.verbs import Topic, append, create_topic, end_offset, produce, produce_request, stored
from support.waiting import eventually
from support.wire import Wire

CORRUPT, UNKNOWN_TOPIC, TOO_LARGE, INVALID_TOPIC, BAD_ACKS, BAD_TIMESTAMP = 2, 3, 10, 17, 21, 32
TXN_AUTHORIZATION, NO_SUCH_CODEC, INVALID_RECORD, UNKNOWN_ID = 53, 76, 87, 100
HOUR_MS = 3_600_000
TWO = [b"a", b"b"]

REFUSED = {
    "a wrong checksum": (build(TWO, crc=1), CORRUPT),
    "more records counted than numbered": (build(TWO, count=3), INVALID_RECORD),
    "more records numbered than counted": (build(TWO, last_offset_delta=5), INVALID_RECORD),
    "no record at all": (build([]), INVALID_RECORD),
    "no batch": (b"", INVALID_RECORD),
    "two batches": (build([b"a"]) + build([b"b"]), INVALID_RECORD),
    "bytes that are no batch": (b"abc", INVALID_RECORD),
    "a length beyond the end": (build(TWO, batch_length=6_000), INVALID_RECORD),
    "a negative length": (build(TWO, batch_length=-1), CORRUPT),
    "a length below any header": (build(TWO, batch_length=10), CORRUPT),
    "message format 0": (build(TWO, magic=0), INVALID_RECORD),
    "message format 1": (build(TWO, magic=1), INVALID_RECORD),
    "a message format of the future": (build(TWO, magic=3), CORRUPT),
    "a control batch": (build(TWO, attributes=0x20, producer_id=1, producer_epoch=0), INVALID_RECORD),
    "a base offset of its own": (build(TWO, base_offset=77), INVALID_RECORD),
    "a transaction without transactional id": (
        build(TWO, attributes=0x10, producer_id=1, producer_epoch=0, base_sequence=0),
        TXN_AUTHORIZATION,
    ),
}


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_says_where(wire: Wire, topic: Topic, version: int) -> None:
    for offset in (0, 2):
        answer = produce(wire, topic, build(TWO), version=version)
        assert (answer.index, answer.error_code, answer.base_offset) == (0, 0, offset)
        assert answer.log_append_time_ms == -1
        assert answer.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("why", REFUSED)
def test_a_bad_batch_is_refused_and_leaves_nothing_behind(wire: Wire, topic: Topic, why: str) -> None:
    batch, code = REFUSED[why]
    append(wire, topic, build(TWO))
    answer = produce(wire, topic, batch)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert end_offset(wire, topic) == 2
    assert append(wire, topic, build([b"after"])) == 2


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_stored_as_they_came_with_their_offset_and_epoch(wire: Wire, topic: Topic, codec: str) -> None:
    sent = build([Rec(b"v" * 50, b"k", [("h", None)])] * 5, codec=codec)
    for turn in range(3):
        assert append(wire, topic, sent) == turn * 5
    for turn, batch in enumerate(stored(wire, topic)):
        assert (batch.base_offset, batch.last_offset, batch.crc_is_right) == (turn * 5, turn * 5 + 4, True)
        assert batch.leader_epoch >= 0
        assert batch.data[16:] == sent[16:], "only the offset and the leader epoch change"


def test_zstd_is_refused_below_the_version_that_knows_it(wire: Wire, topic: Topic) -> None:
    assert produce(wire, topic, build(TWO, codec="zstd"), version=6).error_code == NO_SUCH_CODEC
    assert produce(wire, topic, build(TWO, codec="zstd"), version=7).error_code == 0


def test_a_codec_that_does_not_exist_is_refused(wire: Wire, topic: Topic) -> None:
    assert produce(wire, topic, build(TWO, attributes=5)).error_code != 0
    assert end_offset(wire, topic) == 0


def test_a_timestamp_far_ahead_is_refused_and_says_which_records(wire: Wire, topic: Topic) -> None:
    far = build([Rec(), Rec(timestamp_delta_ms=2 * HOUR_MS), Rec(timestamp_delta_ms=3 * HOUR_MS)])
    answer = produce(wire, topic, far)
    assert (answer.error_code, [e.batch_index for e in answer.record_errors]) == (BAD_TIMESTAMP, [1, 2])
    assert produce(wire, topic, far, version=7).error_code == BAD_TIMESTAMP
    for fine in (0, -1, 1, now_ms() + HOUR_MS // 2):
        assert produce(wire, topic, build([b"x"], timestamp_ms=fine)).error_code == 0


@pytest.mark.parametrize(("version", "code"), [(3, UNKNOWN_TOPIC), (12, UNKNOWN_TOPIC), (13, UNKNOWN_ID)])
def test_an_unknown_topic_is_said_so(wire: Wire, topic_name: str, version: int, code: int) -> None:
    stranger = Topic("no-" + topic_name, bytes(range(16)))
    assert produce(wire, stranger, build(TWO), version=version).error_code == code


def test_one_partition_s_failure_does_not_harm_its_neighbours(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, partitions=3)
    parts = [(0, build(TWO)), (7, build(TWO)), (1, build(TWO, crc=1)), (2, build(TWO))]
    data = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index, batch in parts]
    entry = ProduceRequest.TopicProduceData(name=topic.name, partition_data=data)
    response = wire.call(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[entry]), 9)
    answers = {p.index: (p.error_code, p.base_offset) for p in response.responses[0].partition_responses}
    assert answers == {0: (0, 0), 7: (UNKNOWN_TOPIC, -1), 1: (CORRUPT, -1), 2: (0, 0)}


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(wire: Wire, topic: Topic, acks: int) -> None:
    assert produce(wire, topic, build(TWO), acks=acks).error_code == BAD_ACKS
    assert end_offset(wire, topic) == 0


def test_an_unknown_topic_matters_more_than_the_acks(wire: Wire, topic: Topic) -> None:
    assert produce(wire, Topic("no-" + topic.name, b""), build(TWO), acks=2).error_code == UNKNOWN_TOPIC
    assert produce(wire, topic, build(TWO), partition=7, acks=2).error_code == UNKNOWN_TOPIC


def test_the_log_start_is_told_only_when_the_log_refused_the_batch(wire: Wire, topic: Topic) -> None:
    unread = {
        "nothing": b"",
        "two batches": build(TWO) * 2,
        "an old format": build(TWO, magic=1),
        "wrong CRC": build(TWO, crc=1),
        "cut short": build(TWO)[:-1],
    }
    for why, batch in unread.items():
        answer = produce(wire, topic, batch)
        assert (answer.error_code != 0, answer.log_start_offset) == (True, -1), why
    for batch in (build(TWO, count=5), build(TWO, timestamp_ms=now_ms() + 3 * HOUR_MS)):
        answer = produce(wire, topic, batch)
        assert (answer.error_code != 0, answer.log_start_offset) == (True, 0)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_topic_without_partitions_is_not_answered_for(wire: Wire, topic: Topic, version: int) -> None:
    empty, full = (produce_request(topic, build(TWO), version=version) for _ in range(2))
    empty.topic_data[0].partition_data = []
    assert wire.call(empty, version).responses == []
    full.topic_data = [*empty.topic_data, *full.topic_data]
    assert [len(t.partition_responses) for t in wire.call(full, version).responses] == [1]


@pytest.mark.parametrize("version", [3, 9, 13])
def test_an_internal_topic_is_written_by_admins_only(
    connect: Callable[..., Wire], wire: Wire, internal_topic: Topic, version: int
) -> None:
    batch = build([Rec(b"v", b"k")])
    answer = produce(wire, internal_topic, batch, version=version)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (INVALID_TOPIC, -1, -1)
    admin = connect(client_id="__admin_client")
    assert produce(admin, internal_topic, batch, version=version).error_code == 0


def test_without_acks_there_is_no_answer(wire: Wire, topic: Topic) -> None:
    wire.send(produce_request(topic, build(TWO), version=9, acks=0), 9)
    wire.assert_silent()
    eventually(lambda: end_offset(wire, topic) == 2)


@pytest.mark.parametrize("bad", ["topic", "batch"])
def test_without_acks_an_error_closes_the_connection(
    connect: Callable[..., Wire], wire: Wire, topic: Topic, bad: str
) -> None:
    target = Topic("no-" + topic.name, b"") if bad == "topic" else topic
    other = connect()
    other.send(produce_request(target, build(TWO, crc=1), version=9, acks=0), 9)
    other.assert_closed()
    assert end_offset(wire, topic) == 0


def test_the_size_limit_counts_the_whole_batch(wire: Wire, topic_name: str) -> None:
    batch = build([b"x" * 1_000])
    topic = create_topic(wire, topic_name, configs={"max.message.bytes": str(len(batch))})
    assert append(wire, topic, batch) == 0
    assert produce(wire, topic, build([b"x" * 1_001])).error_code == TOO_LARGE
    assert end_offset(wire, topic) == 1


def test_min_insync_replicas_above_the_replication_factor_does_not_stop_acks_all(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, configs={"min.insync.replicas": "2"})
    assert append(wire, topic, build(TWO), acks=-1) == 0


def test_append_time_is_in_the_answer_and_in_the_batch(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, configs={"message.timestamp.type": "LogAppendTime"})
    for codec in CODECS:
        answer = produce(wire, topic, build(TWO, codec=codec, timestamp_ms=5))
        assert answer.error_code == 0 and abs(answer.log_append_time_ms - now_ms()) < HOUR_MS
        batch = stored(wire, topic, offset=answer.base_offset)[0]
        assert (batch.max_timestamp, batch.attributes & 8, batch.crc_is_right) == (answer.log_append_time_ms, 8, True)


def test_a_topic_may_choose_its_own_codec(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, configs={"compression.type": "zstd"})
    for codec in CODECS:
        append(wire, topic, build([b"words " * 100] * 3, codec=codec))
    assert [(b.codec, b.count, b.crc_is_right) for b in stored(wire, topic)] == [(CODECS["zstd"], 3, True)] * 5


def test_a_compacted_topic_refuses_records_without_key(wire: Wire, topic_name: str) -> None:
    topic = create_topic(wire, topic_name, configs={"cleanup.policy": "compact"})
    answer = produce(wire, topic, build([Rec(b"v", b"k"), Rec(b"v", None)]))
    assert (answer.error_code, [e.batch_index for e in answer.record_errors]) == (INVALID_RECORD, [1])
    assert append(wire, topic, build([Rec(b"v", b"k"), Rec(None, b"k")], codec="gzip")) == 0
