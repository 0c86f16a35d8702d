"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeLogDirs: where a log starts, ends, and what it weighs."""

from __future__ import annotations

from typing import Any

import pytest

from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.describe_log_dirs import DescribeLogDirsRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from support.batches import CODECS, Rec, build, now_ms
from support.verbs import EARLIEST, LATEST, MAX_TIMESTAMP, Topic, append, fetch, list_offset, stored
from support.wire import Wire

UNKNOWN_SERVER_ERROR, OUT_OF_RANGE, UNKNOWN_TOPIC, UNSUPPORTED_VERSION, INVALID_REQUEST = -1, 1, 3, 35, 42
INVALID_TOPIC, FENCED_EPOCH, UNKNOWN_EPOCH = 17, 74, 75
LIST_VERSIONS = range(1, 12)


def three_batches(wire: Wire, topic: Topic, **fields: Any) -> int:
    """Offsets 0-8; timestamps base+0/10/20, base+100/110/120, base+50/60/70. Gives base."""
    base = now_ms() - 1_000_000
    for step in (0, 100, 50):
        rows = [Rec(b"v", timestamp_delta_ms=delta) for delta in (0, 10, 20)]
        append(wire, topic, build(rows, timestamp_ms=base + step, **fields))
    return base


@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_every_version_knows_the_start_and_the_end(wire: Wire, topic: Topic, version: int) -> None:
    for timestamp, offset in ((EARLIEST, 0), (LATEST, 0)):
        assert list_offset(wire, topic, timestamp, version=version).offset == offset
    three_batches(wire, topic)
    for timestamp, offset in ((EARLIEST, 0), (LATEST, 9)):
        answer = list_offset(wire, topic, timestamp, version=version)
        assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, -1)
        assert (answer.leader_epoch >= 0) == (version >= 4)


@pytest.mark.parametrize("version", LIST_VERSIONS)
def test_special_timestamps_exist_from_their_version_on(wire: Wire, topic: Topic, version: int) -> None:
    base = three_batches(wire, topic)
    since_and_answer = {
        MAX_TIMESTAMP: (7, 5, base + 120),
        -4: (8, 0, -1),  # the earliest on local disk
        -5: (9, -1, -1),  # the latest in tiered storage, of which there is none
        -6: (11, -1, -1),  # the earliest not yet tiered, likewise
        -7: (99, -1, -1),
    }
    for timestamp, (since, offset, at) in since_and_answer.items():
        answer = list_offset(wire, topic, timestamp, version=version)
        if version < since:
            assert (answer.error_code, answer.offset) == (UNSUPPORTED_VERSION, -1), timestamp
        else:
            assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, at), timestamp


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", [1, 5, 7, 11])
def test_a_timestamp_finds_its_record_inside_the_batch(wire: Wire, topic: Topic, version: int, codec: str) -> None:
    base = three_batches(wire, topic, codec=codec)
    for asked, offset, at in ((-5, 0, 0), (0, 0, 0), (11, 2, 20), (21, 3, 100), (101, 4, 110), (120, 5, 120)):
        answer = list_offset(wire, topic, base + asked, version=version)
        assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, base + at)
    assert list_offset(wire, topic, base + 121, version=version).offset == -1


def test_the_max_timestamp_of_an_empty_log_is_none(wire: Wire, topic: Topic) -> None:
    answer = list_offset(wire, topic, MAX_TIMESTAMP)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, -1, -1)


def test_list_offsets_checks_topic_partition_and_epoch(wire: Wire, topic: Topic) -> None:
    assert list_offset(wire, Topic("no-" + topic.name, b""), LATEST).error_code == UNKNOWN_TOPIC
    assert list_offset(wire, topic, LATEST, partition=5).error_code == UNKNOWN_TOPIC
    assert list_offset(wire, topic, LATEST, current_leader_epoch=99).error_code == UNKNOWN_EPOCH


@pytest.mark.parametrize("version", [1, 6, 11])
def test_each_partition_is_answered_once_however_often_it_is_named(wire: Wire, topic: Topic, version: int) -> None:
    wanted = [ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=at) for at in (EARLIEST, LATEST)]
    entries = [ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[one]) for one in wanted]
    entries.append(ListOffsetsRequest.ListOffsetsTopic(name="empty-" + topic.name))
    answer = wire.call(ListOffsetsRequest(replica_id=-1, topics=entries), version)
    assert [(t.name, [p.error_code for p in t.partitions]) for t in answer.topics] == [(topic.name, [INVALID_REQUEST])]


@pytest.mark.parametrize("isolation_level", [2, -1])
def test_an_isolation_level_that_does_not_exist_finds_nothing(wire: Wire, topic: Topic, isolation_level: int) -> None:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    entry = ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[wanted])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[entry])
    answer = wire.call(request, 9).topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (UNKNOWN_SERVER_ERROR, -1)


def test_only_minus_one_stands_for_no_leader_epoch(wire: Wire, topic: Topic) -> None:
    assert list_offset(wire, topic, LATEST, current_leader_epoch=-2).error_code == FENCED_EPOCH
    assert epoch_end(wire, topic, 0, version=4, current=-2).error_code == FENCED_EPOCH


def epoch_end(wire: Wire, topic: Topic, epoch: int, *, version: int, partition: int = 0, current: int = -1) -> Any:
    wanted = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    entry = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic.name, partitions=[wanted])
    return wire.call(OffsetForLeaderEpochRequest(replica_id=-1, topics=[entry]), version).topics[0].partitions[0]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_end_of_the_current_epoch_is_the_end_of_the_log(wire: Wire, topic: Topic, version: int) -> None:
    three_batches(wire, topic)
    epoch = stored(wire, topic)[0].leader_epoch
    answer = epoch_end(wire, topic, epoch, version=version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, epoch, 9)
    for unknown in (epoch + 1, -1):
        answer = epoch_end(wire, topic, unknown, version=version)
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, -1, -1)
    assert epoch_end(wire, topic, epoch, version=version, current=epoch + 9).error_code == UNKNOWN_EPOCH
    assert epoch_end(wire, topic, epoch, version=version, partition=9).error_code == UNKNOWN_TOPIC


def delete_records(wire: Wire, topic: Topic, offset: int, *, version: int, partition: int = 0) -> tuple[int, int]:
    wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
    entry = DeleteRecordsRequest.DeleteRecordsTopic(name=topic.name, partitions=[wanted])
    answer = wire.call(DeleteRecordsRequest(topics=[entry], timeout_ms=10_000), version).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", [0, 1, 2])
def test_deleting_records_moves_the_start_forward_only(wire: Wire, topic: Topic, version: int) -> None:
    base = three_batches(wire, topic)
    assert delete_records(wire, topic, 4, version=version) == (0, 4)
    assert delete_records(wire, topic, 2, version=version) == (0, 4)
    assert list_offset(wire, topic, EARLIEST).offset == 4
    assert list_offset(wire, topic, base).offset == 4, "a deleted record is not found by its time"
    assert fetch(wire, topic, 3).error_code == OUT_OF_RANGE
    answer = fetch(wire, topic, 4)
    assert (answer.error_code, answer.log_start_offset) == (0, 4)
    for offset in (10, -2):
        assert delete_records(wire, topic, offset, version=version) == (OUT_OF_RANGE, -1)
    assert delete_records(wire, topic, 0, version=version, partition=9) == (UNKNOWN_TOPIC, -1)
    assert delete_records(wire, topic, -1, version=version) == (0, 9)
    assert append(wire, topic, build([b"next"])) == 9


def test_records_of_an_internal_topic_are_not_deleted(wire: Wire, internal_topic: Topic) -> None:
    assert delete_records(wire, internal_topic, 0, version=2) == (INVALID_TOPIC, -1)
    assert delete_records(wire, internal_topic, 0, version=2, partition=999) == (UNKNOWN_TOPIC, -1)


def test_of_two_deletions_in_one_partition_the_last_counts_and_is_answered(wire: Wire, topic: Topic) -> None:
    three_batches(wire, topic)
    wanted = [DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (5, 4)]
    entries = [DeleteRecordsRequest.DeleteRecordsTopic(name=topic.name, partitions=[one]) for one in wanted]
    entries.append(DeleteRecordsRequest.DeleteRecordsTopic(name="empty-" + topic.name))
    (answer,) = wire.call(DeleteRecordsRequest(topics=entries, timeout_ms=10_000), 2).topics
    assert [(p.error_code, p.low_watermark) for p in answer.partitions] == [(0, 4)]


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs_say_what_a_partition_weighs(wire: Wire, topic: Topic, version: int) -> None:
    size = sum(len(b.data) for b in stored(wire, topic)) or len(build([b"x" * 100]))
    append(wire, topic, build([b"x" * 100]))
    wanted = DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic.name, partitions=[0, 7])
    response = wire.call(DescribeLogDirsRequest(topics=[wanted]), version)
    (folder,) = response.results
    assert (response.error_code, folder.error_code) == (0, 0)
    ((name, (part,)),) = [(t.name, t.partitions) for t in folder.topics]
    assert (name, part.partition_index, part.partition_size) == (topic.name, 0, size)
    assert (part.offset_lag, part.is_future_key) == (0, False)
    assert (folder.total_bytes > folder.usable_bytes > 0) == (version >= 4)


def test_log_dirs_of_everything_include_the_topic(wire: Wire, topic: Topic) -> None:
    append(wire, topic, build([b"x"]))
    (folder,) = wire.call(DescribeLogDirsRequest(topics=None), 4).results
    assert topic.name in {t.name for t in folder.topics}
