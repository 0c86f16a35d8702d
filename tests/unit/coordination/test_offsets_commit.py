"""Offsets are committed and fetched; groups and topics that are not there have none; what is deleted is gone."""

from __future__ import annotations

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.home import Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import finish_now
from headpond.model import BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from unit.coordination.offsets_rig import GROUP, TOPIC, TOPIC_ID, FakeGroup, Rig

OTHER_ID = TopicId(b"\2" * 16)


def delete(rig: Rig, *partitions: int, topic: str = TOPIC) -> dict[int, ErrorCode]:
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=topic, partitions=[partition(index) for index in partitions]
            )
        ],
    )
    response = rig.carry_out(rig.store.delete(request))
    return {row.partition_index: ErrorCode(row.error_code) for row in response.topics[0].partitions}


def test_what_was_committed_last_is_fetched() -> None:
    rig = Rig()
    assert rig.commit({0: 5, 1: 7}) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    rig.commit({0: 6}, metadata="half way", leader_epoch=3)
    row = rig.fetch(0)[0]
    assert (row.committed_offset, row.metadata, row.committed_leader_epoch) == (6, "half way", 3)
    assert rig.everything() == {(TOPIC, 0): 6, (TOPIC, 1): 7}


def test_a_restart_knows_the_same_offsets() -> None:
    rig = Rig()
    rig.commit({0: 5, 1: 7}, metadata="m", leader_epoch=4)
    rig.commit({0: 6})
    before = rig.fetch(0, 1, 2)
    rig.restart()
    assert rig.fetch(0, 1, 2) == before
    assert rig.store.count == 2


def test_without_an_offset_the_answer_is_minus_one_and_no_error() -> None:
    rig = Rig()
    for _ in range(2):
        row = rig.fetch(3)[3]
        assert (row.committed_offset, row.committed_leader_epoch, row.metadata, row.error_code) == (-1, -1, "", 0)
        rig.commit({0: 1})
    assert rig.everything("never seen") == {}


def test_null_metadata_is_stored_as_empty() -> None:
    rig = Rig()
    rig.commit({0: 1}, metadata=None)
    assert rig.fetch(0)[0].metadata == ""


def test_too_much_metadata_refuses_its_partition_and_no_other() -> None:
    rig = Rig(GroupSettings(metadata_characters_max=4))
    assert rig.commit({0: 1}, metadata="12345") == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert rig.commit({0: 1}, metadata="äöüß") == {0: ErrorCode.NONE}
    assert rig.offset() == 1


def test_metadata_is_as_long_as_java_says() -> None:
    rig = Rig(GroupSettings(metadata_characters_max=4))
    assert rig.commit({0: 1}, metadata="🐧🐧") == {0: ErrorCode.NONE}
    assert rig.commit({0: 2}, metadata="🐧🐧🐧") == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert rig.offset() == 1


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_no_group_can_not_commit(version: int, code: ErrorCode) -> None:
    rig = Rig()
    with pytest.raises(BrokerError) as raised:
        rig.commit({0: 1}, generation=3, version=version)
    assert raised.value.code is code
    assert rig.log == []


def test_a_commit_of_nobody_makes_a_simple_group_when_it_is_written() -> None:
    rig = Rig()
    rig.commit({0: 1})
    assert GROUP in rig.groups


def test_what_the_group_refuses_is_not_written() -> None:
    rig = Rig()
    group = rig.groups[GROUP] = FakeGroup()
    group.refusal = ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(BrokerError) as raised:
        rig.commit({0: 1}, generation=1)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(BrokerError) as raised:
        rig.fetch(0)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
    assert rig.log == []


def test_a_consumer_group_is_told_what_its_member_wants_to_commit() -> None:
    rig = Rig()
    group = rig.groups[GROUP] = FakeGroup(kind="consumer")
    rig.commit({0: 1, 4: 1}, topic_id=TOPIC_ID, generation=1, version=10)
    assert [(each.topic, each.partition, each.topic_id) for each in group.asked[0]] == [
        (TOPIC, 0, TOPIC_ID),
        (TOPIC, 4, TOPIC_ID),
    ]


def test_a_dead_group_has_no_offsets() -> None:
    rig = Rig()
    rig.commit({0: 1})
    rig.groups[GROUP].refusal = ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.offset() == -1
    assert rig.everything() == {}


def test_a_topic_made_anew_has_none_of_the_old_ones_offsets() -> None:
    rig = Rig()
    rig.commit({0: 5})
    rig.topic_ids[TOPIC] = OTHER_ID
    assert rig.offset() == -1
    assert rig.everything() == {}
    assert rig.fetch(0, topic_id=TOPIC_ID)[0].committed_offset == 5
    rig.commit({0: 1}, topic_id=OTHER_ID, version=10)
    assert rig.offset() == 1


def test_deleted_offsets_are_gone_and_missing_ones_no_error() -> None:
    rig = Rig()
    rig.commit({0: 5, 1: 6})
    assert delete(rig, 0, 9) == {0: ErrorCode.NONE, 9: ErrorCode.NONE}
    assert rig.everything() == {(TOPIC, 1): 6}
    assert len(rig.log) == 3  # two offsets, one tombstone
    rig.restart()
    assert rig.everything() == {(TOPIC, 1): 6}


def test_offsets_of_subscribed_topics_are_left_alone() -> None:
    rig = Rig()
    rig.commit({0: 5})
    rig.groups[GROUP].subscribed = {TOPIC}
    assert delete(rig, 0) == {0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert rig.offset() == 5


def test_deleting_needs_a_group_that_agrees() -> None:
    rig = Rig()
    with pytest.raises(BrokerError) as raised:
        delete(rig, 0)
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    rig.commit({0: 1})
    rig.groups[GROUP].refusal = ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(BrokerError) as raised:
        delete(rig, 0)
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP


def test_all_offsets_of_a_group_go_pending_ones_included() -> None:
    rig = Rig()
    producer = Producer(7, 0)
    rig.commit({0: 5})
    rig.commit({0: 8}, group="others")
    rig.commit_in_transaction(producer, {0: 6, 1: 6})
    rig.commit_in_transaction(Producer(8, 0), {1: 7})
    tombstones: list[CoordinatorRecord] = list(rig.store.all_tombstones(GROUP))
    assert len(tombstones) == 2
    rig.carry_out(Decision(None, tombstones))
    rig.end(producer, commit=True)
    assert rig.everything() == {}
    assert rig.offset(group="others") == 8


def test_offsets_of_a_deleted_topic_go_but_not_those_that_came_after() -> None:
    rig = Rig()
    rig.commit({0: 5, 1: 5})
    rig.commit({0: 5}, topic="other")
    rig.commit({0: 5}, group="others")
    looking = rig.store.committed_for([TOPIC])
    rig.commit({1: 9, 2: 9})  # of the topic that was made anew meanwhile
    deleted = finish_now(looking)
    rig.commit({0: 9}, group="others")
    rig.carry_out(Decision(None, rig.store.tombstones_of(deleted)))
    assert rig.everything() == {(TOPIC, 1): 9, (TOPIC, 2): 9, ("other", 0): 5}
    assert rig.everything("others") == {(TOPIC, 0): 9}
