"""The image: what it shows is a function of what the store holds, however it got there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headpond.cluster import keys
from headpond.cluster.delta import Delta
from headpond.cluster.image import MetadataImage
from headpond.cluster.rows import BrokerRow, ClusterRow, FeatureRow, PartitionState, TopicRow, encode
from headpond.model import InvariantBroken, TopicId
from headpond.model.ids import id_text
from headpond.ports import Change, Changes, Delete, Entry, Listing, Put
from simulation.harness.clock import ManualClock
from simulation.harness.metastore import StoreServer
from support.variants import examples

IDS = [TopicId(bytes([n]) * 16) for n in (1, 2, 3, 4)]
TOPICS = [("a", IDS[0]), ("a", IDS[1]), ("b.c", IDS[2]), ("d_e", IDS[3])]
"""Ids are never shared by two names; a name may have several, one after the other."""


def state(leader: int = 1, epoch: int = 0) -> PartitionState:
    return PartitionState(leader=leader, leader_epoch=epoch, partition_epoch=epoch, replicas=(1, 2), isr=(leader,))


def topic_put(name: str, topic_id: TopicId, partitions: int) -> Put:
    return Put(keys.topic(name), encode(TopicRow(id_text(topic_id), partitions)))


def partition_put(topic_id: TopicId, index: int, value: PartitionState) -> Put:
    return Put(keys.partition(topic_id, index), encode(value))


class Mirror:
    """A store and an image that hears every change of it."""

    def __init__(self) -> None:
        self.server = StoreServer(ManualClock())
        self.image = MetadataImage()

    def commit(self, *writes: Put | Delete) -> Delta | None:
        before = self.server.revision
        self.server.transact([], writes)
        if self.server.revision == before:
            return None
        (changes,) = self.server.changes_after(before)
        return self.image.apply(changes)


def everything(image: MetadataImage) -> dict[str, Any]:
    return {
        name: value.items() if hasattr(value, "items") and not isinstance(value, dict) else value
        for name, value in vars(image).items()
    }


writes = st.one_of(
    st.builds(lambda topic, count: topic_put(*topic, count), st.sampled_from(TOPICS), st.integers(1, 3)),
    st.builds(
        partition_put,
        st.sampled_from(IDS),
        st.integers(0, 3),
        st.builds(state, st.integers(1, 2), st.integers(0, 3)),
    ),
    st.builds(Delete, st.sampled_from([keys.topic(name) for name, _ in TOPICS])),
    st.builds(Delete, st.sampled_from([keys.partition(uuid, i) for uuid in IDS for i in range(4)])),
    st.builds(
        lambda kind, name, value: Put(keys.config(kind, name), encode({"x": value})),
        st.sampled_from(["topic", "broker"]),
        st.sampled_from(["", "1"]),
        st.sampled_from(["1", "2"]),
    ),
    st.builds(Delete, st.sampled_from([keys.config("topic", "1"), keys.config("broker", "")])),
    st.builds(
        lambda n, i: Put(keys.broker(n), encode(BrokerRow((), f"incarnation {i}"))),
        st.integers(1, 2),
        st.integers(0, 2),
    ),
    st.builds(Delete, st.sampled_from([keys.broker(1), keys.broker(2)])),
    st.builds(lambda n: Put(keys.feature("f"), encode(FeatureRow(n))), st.integers(0, 3)),
    st.builds(lambda i: Put(keys.CLUSTER, encode(ClusterRow(i))), st.sampled_from(["c1", "c2"])),
    st.just(Put("somebody-else/1", b"not ours")),
    st.just(Delete("somebody-else/1")),
)


whole_topics = st.builds(
    lambda topic, count: (
        [topic_put(*topic, count)] + [partition_put(topic[1], index, state()) for index in range(count)]
    ),
    st.sampled_from(TOPICS),
    st.integers(1, 3),
)
transactions = st.one_of(whole_topics, st.lists(writes, min_size=1, max_size=5, unique_by=lambda write: write.key))
histories = st.lists(transactions, max_size=25)


@given(histories)
@settings(max_examples=examples(200), deadline=None)
def test_following_a_history_and_listing_its_end_give_the_same_image(history: list[list[Put | Delete]]) -> None:
    mirror = Mirror()
    for transaction in history:
        mirror.commit(*transaction)
    fresh = MetadataImage()
    fresh.load(mirror.server.list(""))
    assert everything(fresh) == everything(mirror.image)


@given(histories, st.data())
@settings(max_examples=examples(200), deadline=None)
def test_a_listing_in_the_middle_leads_to_the_same_image_too(history: list[list[Put | Delete]], data: Any) -> None:
    mirror = Mirror()
    at = data.draw(st.integers(0, len(history)))
    late = MetadataImage()
    for number, transaction in enumerate(history):
        if number == at:
            late.load(mirror.server.list(""))
        mirror.commit(*transaction)
    late.load(mirror.server.list(""))
    assert everything(late) == everything(mirror.image)


@given(histories)
@settings(max_examples=examples(200), deadline=None)
def test_whoever_only_hears_the_deltas_knows_every_partition(history: list[list[Put | Delete]]) -> None:
    mirror = Mirror()
    known: dict[tuple[str, TopicId, int], PartitionState] = {}
    for transaction in history:
        delta = mirror.commit(*transaction)
        for change in delta.partitions if delta is not None else ():
            at = (change.topic, change.topic_id, change.partition)
            assert known.pop(at, None) == change.before
            if change.after is not None:
                known[at] = change.after
    assert known == {
        (topic.name, topic.topic_id, index): value
        for topic in mirror.image.topics.values()
        for index, value in enumerate(topic.partitions)
    }


def test_partitions_without_their_topic_are_loose_until_the_topic_appears_in_one_step() -> None:
    mirror = Mirror()
    for index in range(3):
        delta = mirror.commit(partition_put(IDS[0], index, state()))
        assert delta is not None and delta.partitions == ()
    assert list(mirror.image.loose[IDS[0]]) == [0, 1, 2]
    delta = mirror.commit(topic_put("a", IDS[0], 2))
    assert delta is not None
    assert delta.topics_created == ("a",)
    assert [change.partition for change in delta.partitions] == [0, 1]
    assert list(mirror.image.loose[IDS[0]]) == [2]


def test_a_topic_deleted_and_made_anew_between_two_listings_is_first_gone_then_new() -> None:
    mirror = Mirror()
    mirror.commit(topic_put("a", IDS[0], 1), partition_put(IDS[0], 0, state()))
    late = MetadataImage()
    late.load(mirror.server.list(""))
    mirror.commit(Delete(keys.topic("a")), Delete(keys.partition(IDS[0], 0)))
    mirror.commit(topic_put("a", IDS[1], 1), partition_put(IDS[1], 0, state()))
    delta = late.load(mirror.server.list(""))
    assert delta.topics_deleted == (("a", IDS[0]),)
    assert delta.topics_created == ("a",)
    assert [(change.topic_id, change.after is None) for change in delta.partitions] == [(IDS[0], True), (IDS[1], False)]


def test_a_changed_partition_is_the_only_one_in_the_delta() -> None:
    mirror = Mirror()
    mirror.commit(topic_put("a", IDS[0], 3), *(partition_put(IDS[0], i, state()) for i in range(3)))
    delta = mirror.commit(partition_put(IDS[0], 1, state(epoch=1)))
    assert delta is not None
    assert [
        (c.partition, c.before and c.before.leader_epoch, c.after and c.after.leader_epoch) for c in delta.partitions
    ] == [(1, 0, 1)]
    assert delta.topics_created == ()
    changed = mirror.image.partition("a", 1)
    assert changed is not None and changed.revision == mirror.server.revision


def test_a_broker_that_registers_anew_has_a_larger_epoch() -> None:
    mirror = Mirror()
    mirror.commit(Put(keys.broker(1), encode(BrokerRow((), "first"))))
    first = mirror.image.brokers[1].epoch
    mirror.commit(Put(keys.broker(1), encode(BrokerRow((), "first", fenced=True))))
    assert mirror.image.brokers[1].epoch == first
    mirror.commit(Delete(keys.broker(1)))
    mirror.commit(Put(keys.broker(1), encode(BrokerRow((), "second"))))
    assert mirror.image.brokers[1].epoch > first


def test_the_revision_never_goes_back() -> None:
    image = MetadataImage()
    image.apply(Changes(5, (Change("x", b"", 5),)))
    with pytest.raises(InvariantBroken):
        image.apply(Changes(5, (Change("x", b"", 5),)))
    with pytest.raises(InvariantBroken):
        image.load(Listing(4, ()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topics/a", b"{"),
        ("topics/a", b'{"id": "short", "partitions": 1}'),
        ("partitions/x/0", b"{}"),
        ("cluster", b"7"),
    ],
)
def test_a_value_that_can_not_be_read_is_named_not_guessed(key: str, value: bytes) -> None:
    with pytest.raises(InvariantBroken, match=key):
        MetadataImage().load(Listing(1, (Entry(key, value, 1, 1),)))
