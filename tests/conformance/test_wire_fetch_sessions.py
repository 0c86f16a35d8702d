"""Fetch sessions (KIP-227): the broker remembers what a reader follows, the reader says only what changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headpond.protocol.schema.fetch import FetchRequest
from support.batches import build
from support.verbs import FETCH_WITH_ID, Topic, append, batches, create_topic, fetch_partition, fetch_request
from support.wire import Wire

SESSION_NOT_FOUND, WRONG_EPOCH = 70, 71
OUT_OF_RANGE, UNKNOWN_TOPIC = 1, 3


class Session:
    """A reader's end of a fetch session."""

    def __init__(self, wire: Wire, topic: Topic, version: int) -> None:
        self.wire, self.topic, self.version = wire, topic, version
        self.id, self.epoch = 0, 0

    def fetch(self, *partitions: Any, forget: tuple[int, ...] = (), **fields: Any) -> dict[int, Any]:
        """The partitions in the answer, by index."""
        named = {"topic_id": self.topic.id} if self.version >= FETCH_WITH_ID else {"topic": self.topic.name}
        if forget:
            fields["forgotten_topics_data"] = [FetchRequest.ForgottenTopic(partitions=list(forget), **named)]
        wanted = {self.topic: list(partitions)} if partitions else {}
        request = fetch_request(
            wanted, version=self.version, **{"session_id": self.id, "session_epoch": self.epoch, **fields}
        )
        response = self.wire.call(request, self.version)
        self.error = response.error_code
        if response.error_code == 0:
            self.id = response.session_id
            self.epoch += 1
        return {p.partition_index: p for t in response.responses for p in t.partitions}


@pytest.fixture
def topic(wire: Wire, topic_name: str) -> Topic:
    return create_topic(wire, topic_name, partitions=3)


@pytest.fixture(params=[7, 11, 12, 13, 17, 18])
def session(request: pytest.FixtureRequest, wire: Wire, topic: Topic) -> Session:
    return Session(wire, topic, request.param)


def followed(session: Session) -> None:
    """All three partitions from their start."""
    assert set(session.fetch(*(fetch_partition(n) for n in range(3)))) == {0, 1, 2}
    assert session.id > 0


def test_the_first_answer_has_every_partition_and_the_next_only_what_is_new(session: Session, wire: Wire) -> None:
    followed(session)
    assert session.fetch() == {}
    append(wire, session.topic, build([b"x"]), partition=1)
    found = session.fetch()
    assert {n: len(batches(p)) for n, p in found.items()} == {1: 1}
    assert found[1].high_watermark == 1


def test_what_was_not_read_on_comes_again_and_a_moved_offset_moves_on(session: Session, wire: Wire) -> None:
    followed(session)
    append(wire, session.topic, build([b"x"]), partition=1)
    assert set(session.fetch()) == {1}
    assert set(session.fetch()) == {1}
    assert session.fetch(fetch_partition(1, 1)) == {}
    append(wire, session.topic, build([b"y"]), partition=1)
    assert [b.base_offset for b in batches(session.fetch()[1])] == [1]


def test_a_forgotten_partition_is_no_longer_answered(session: Session, wire: Wire) -> None:
    followed(session)
    session.fetch(forget=(1,))
    for partition in range(3):
        append(wire, session.topic, build([b"x"]), partition=partition)
    assert set(session.fetch()) == {0, 2}
    assert set(session.fetch(fetch_partition(1))) == {0, 1, 2}, "and can be followed again"


def test_a_wrong_epoch_is_refused_and_the_right_one_still_works(session: Session) -> None:
    followed(session)
    assert session.fetch(session_epoch=session.epoch + 5) == {}
    assert session.error == WRONG_EPOCH
    session.fetch()
    assert session.error == 0


def test_an_unknown_session_is_not_found(session: Session) -> None:
    followed(session)
    session.fetch(session_id=session.id ^ 0x55555)
    assert session.error == SESSION_NOT_FOUND


def test_a_closed_session_is_gone(session: Session) -> None:
    followed(session)
    old = session.id
    session.fetch(session_epoch=-1)
    assert (session.error, session.id) == (0, 0)
    session.fetch(session_id=old, session_epoch=2)
    assert session.error == SESSION_NOT_FOUND


def test_a_full_fetch_replaces_the_session(session: Session) -> None:
    followed(session)
    old = session.id
    session.epoch = 0
    assert set(session.fetch(fetch_partition(2))) == {2}
    assert session.error == 0 and session.id not in (0, old)
    session.fetch(session_id=old, session_epoch=1)
    assert session.error == SESSION_NOT_FOUND


def test_an_incremental_fetch_waits_and_is_woken(session: Session, connect: Callable[..., Wire]) -> None:
    followed(session)
    other = connect()
    request = fetch_request(
        {}, version=session.version, max_wait_ms=300_000, session_id=session.id, session_epoch=session.epoch
    )
    session.wire.send(request, session.version)
    append(other, session.topic, build([b"x"]), partition=2)
    _, response = session.wire.receive()
    assert [p.partition_index for t in response.responses for p in t.partitions] == [2]


def test_an_error_is_said_every_time(session: Session) -> None:
    followed(session)
    for _ in range(2):
        found = session.fetch(fetch_partition(0, 99))
        assert found[0].error_code == OUT_OF_RANGE
    session.fetch(fetch_partition(0, 0))
    assert session.error == 0
    assert session.fetch(fetch_partition(9))[9].error_code == UNKNOWN_TOPIC


def test_no_partition_starves_behind_full_ones(session: Session, wire: Wire) -> None:
    followed(session)
    for partition in range(3):
        for _ in range(5):
            append(wire, session.topic, build([b"x" * 1_000]), partition=partition)
    at, turns = {0: 0, 1: 0, 2: 0}, 0
    moved: list[Any] = []
    while min(at.values()) < 5:
        turns += 1
        assert turns <= 30, f"partitions starve: {at}"
        found = session.fetch(*moved, max_bytes=1_200)
        moved = []
        for partition, answer in found.items():
            if got := batches(answer):
                at[partition] = got[-1].last_offset + 1
                moved.append(fetch_partition(partition, at[partition]))
    assert turns <= 18, "each answer has room for one batch, and none comes twice"


def test_a_session_belongs_to_no_connection(session: Session, connect: Callable[..., Wire]) -> None:
    followed(session)
    session.wire = connect()
    assert session.fetch() == {}
    assert session.error == 0
