"""The log of a consumer group as a real Kafka 4.3.1 wrote it, and topics as the broker's image shows them.

Two members with the expression ``h848-a|h848-z[0-9]*``, the second of which waits for what the first is to give up;
then a third with another expression; all leave, and the empty group is deleted.
"""

from __future__ import annotations

from pathlib import Path

from headpond.cluster.image import MetadataImage, TopicImage
from headpond.cluster.rows import PartitionState
from headpond.coordination.groups.consumer import ConsumerGroup, ImageTopics, TopicFacts
from headpond.coordination.groups.consumer.member import MemberState
from headpond.coordination.groups.consumer.topics import metadata_hash
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.model import TopicId
from unit.coordination.consumer_world import World, topic_id
from unit.coordination.fixed_topics import FixedTopics

LOG = Path(__file__).with_name("consumer_group_of_kafka_4_3.hex")
TOPIC = TopicId(bytes.fromhex("b7f61e541d364eaab176ac92324bd10f"))
BEFORE_THEY_LEAVE = 16
BEFORE_IT_IS_DELETED = 30


def kafkas_records() -> list[tuple[bytes, bytes | None]]:
    lines = [line.split() for line in LOG.read_text().splitlines()]
    return [(bytes.fromhex(key), None if value == "-" else bytes.fromhex(value)) for key, value in lines]


def replayed(count: int) -> World:
    world = World()
    world._facts["h848-a"] = TopicFacts(TOPIC, 6)
    world.log = kafkas_records()[:count]
    world.restart()
    return world


def test_our_records_have_the_bytes_of_kafkas() -> None:
    for key, value in kafkas_records():
        record = GROUP_CODEC.decode(key, value)
        assert record is not None
        assert GROUP_CODEC.encode(record) == (key, value)


def test_a_group_that_kafka_wrote_is_found_as_it_was() -> None:
    (group,) = replayed(BEFORE_THEY_LEAVE).groups.values()
    assert isinstance(group, ConsumerGroup)
    assert (group.epoch, group.target_epoch, group.state) == (3, 3, "Reconciling")
    one, two, three = (group.members[each] for each in ("m1", "m2", "m3"))
    assert (one.epoch, one.previous_epoch, one.state) == (2, 2, MemberState.UNREVOKED_PARTITIONS)
    assert one.assigned == {TOPIC: {0: 2, 1: 2, 2: 2}}
    assert one.revoking == {TOPIC: {3: 2, 4: 2, 5: 2}}
    assert (two.epoch, two.state, two.assigned) == (3, MemberState.UNRELEASED_PARTITIONS, {})
    assert (three.epoch, three.state, three.topic_regex) == (3, MemberState.STABLE, "h848-b")
    assert group.regexes["h848-a|h848-z[0-9]*"].topics == {"h848-a"}
    assert set(group.owners.values()) == {"m1"}


def test_and_goes_on_here() -> None:
    world = replayed(BEFORE_THEY_LEAVE)
    (group_id,) = world.groups
    assert world.beat("m1", 2, group_id=group_id, owned={"h848-a": [0, 1, 2]}).error_code == 0
    member = world.group(group_id).members["m1"]
    # Our hash of the topics is another than Kafka's: once there is a new epoch, with the same assignment.
    assert (world.group(group_id).epoch, member.epoch, member.assigned) == (4, 4, {TOPIC: {0: 2, 1: 2, 2: 2}})
    assert world.held(world.beat("m2", 3, group_id=group_id)) == {"h848-a": [3, 4, 5]}
    world.beat("m3", 3, group_id=group_id)
    assert world.group(group_id).state == "Stable"


def test_what_kafka_emptied_is_empty() -> None:
    (group,) = replayed(BEFORE_IT_IS_DELETED).groups.values()
    assert isinstance(group, ConsumerGroup)
    assert (group.epoch, group.is_empty, group.targets, group.owners, group.regexes) == (6, True, {}, {}, {})


def test_what_kafka_deleted_is_gone() -> None:
    assert replayed(len(kafkas_records())).groups == {}


# --- topics


def test_the_image_shows_topics_by_name_and_by_id() -> None:
    image = MetadataImage()
    partition = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    image.topics["orders"] = TopicImage("orders", topic_id(1), (partition, partition), 3)
    image.topic_names[topic_id(1)] = "orders"
    image.revision = 9
    topics = ImageTopics(image)
    assert (topics.version, list(topics.names())) == (9, ["orders"])
    assert topics.facts("orders") == TopicFacts(topic_id(1), 2)
    assert (topics.facts("payments"), topics.name_of(topic_id(1)), topics.name_of(topic_id(2))) == (
        None,
        "orders",
        None,
    )


def test_the_hash_tells_topics_partitions_and_ids_apart_but_not_their_order() -> None:
    def of(names: list[str], **facts: tuple[int, int]) -> int:
        known = {name: TopicFacts(topic_id(number), count) for name, (number, count) in facts.items()}
        return metadata_hash(names, FixedTopics(known))

    both = of(["a", "b"], a=(1, 1), b=(2, 1))
    assert both == of(["b", "a"], a=(1, 1), b=(2, 1))
    others = [of(["a"], a=(1, 1), b=(2, 1)), of(["a", "b"], a=(1, 2), b=(2, 1)), of(["a", "b"], a=(3, 1), b=(2, 1))]
    assert len({both, *others}) == 4
    assert of(["a"]) == 0
    assert -(2**63) <= both < 2**63
