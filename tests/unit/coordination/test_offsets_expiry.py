"""Offsets are forgotten (KIP-211): so long after their group became empty, or after they were committed, or when an old
client said."""

from __future__ import annotations

from headpond.config.groups import GroupSettings
from headpond.coordination.home import Producer
from unit.coordination.offsets_rig import GROUP, TOPIC, Rig

HOUR_MS = 3_600_000
RETENTION = GroupSettings(retention_ms=HOUR_MS)


def test_an_offset_is_forgotten_when_its_retention_is_over_and_not_before() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1})
    rig.clock.advance(HOUR_MS / 1000 - 1)
    rig.commit({1: 1})
    assert not rig.expire()
    rig.clock.advance(1)
    assert not rig.expire()
    assert rig.everything() == {(TOPIC, 1): 1}
    rig.clock.advance(HOUR_MS / 1000)
    assert rig.expire()
    assert rig.everything() == {}
    rig.restart()
    assert rig.everything() == {}


def test_what_counts_is_since_when_the_group_is_empty() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1})
    rig.clock.advance(10 * HOUR_MS / 1000)
    rig.groups[GROUP].empty_since_ms = rig.clock.now_ms()
    assert not rig.expire()
    rig.clock.advance(HOUR_MS / 1000)
    assert rig.expire()


def test_a_group_that_is_not_for_expiry_keeps_everything() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1})
    rig.groups[GROUP].never_expires = True
    rig.clock.advance(10 * HOUR_MS / 1000)
    assert not rig.expire()
    assert rig.offset() == 1


def test_subscribed_topics_are_kept() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1})
    rig.commit({0: 1}, topic="left behind")
    rig.groups[GROUP].subscribed = {TOPIC}
    rig.clock.advance(HOUR_MS / 1000)
    assert not rig.expire()
    assert rig.everything() == {(TOPIC, 0): 1}


def test_an_age_given_by_an_old_client_counts_instead_and_survives_a_restart() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1}, retention_ms=10 * HOUR_MS, version=4)
    rig.commit({1: 1}, retention_ms=60_000, version=4)
    rig.restart()
    rig.clock.advance(60)
    assert not rig.expire()
    assert rig.everything() == {(TOPIC, 0): 1}
    rig.clock.advance(10 * HOUR_MS / 1000)
    assert rig.expire()


def test_an_age_beyond_the_end_of_time_is_for_ever() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1}, retention_ms=(1 << 63) - 1, version=2)
    rig.commit({1: 1}, retention_ms=-(1 << 63), version=2)
    rig.restart()
    assert not rig.expire()
    assert rig.everything() == {(TOPIC, 0): 1}


def test_an_offset_with_a_pending_one_is_kept_and_so_is_its_group() -> None:
    rig = Rig(RETENTION)
    producer = Producer(3, 0)
    rig.commit({0: 1})
    rig.commit_in_transaction(producer, {0: 2})
    rig.clock.advance(HOUR_MS / 1000)
    assert not rig.expire()
    assert rig.offset() == 1
    rig.end(producer, commit=False)
    assert rig.expire()


def test_a_group_without_offsets_has_nothing_left_unless_a_transaction_is_open() -> None:
    rig = Rig(RETENTION)
    producer = Producer(3, 0)
    rig.commit_in_transaction(producer, {0: 2})
    assert not rig.expire()
    rig.end(producer, commit=False)
    assert rig.expire()


def test_a_changed_retention_takes_effect_at_once() -> None:
    rig = Rig(RETENTION)
    rig.commit({0: 1})
    rig.clock.advance(60)
    rig.settings = GroupSettings(retention_ms=60_000)
    assert rig.expire()
