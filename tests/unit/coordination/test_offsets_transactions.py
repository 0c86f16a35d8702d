"""Offsets of a transaction count when it is committed; until then they make the partition unstable."""

from __future__ import annotations

import pytest

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.offset_records import tombstone
from headpond.coordination.home import Producer
from headpond.coordination.runtime import Decision
from headpond.model import BrokerError, ErrorCode
from unit.coordination.offsets_rig import GROUP, TOPIC, FakeGroup, Rig

ONE, TWO = Producer(1, 0), Producer(2, 0)


def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    rig = Rig()
    rig.commit({0: 1})
    assert rig.commit_in_transaction(ONE, {0: 5, 1: 5}) == {0: ErrorCode.NONE, 1: ErrorCode.NONE}
    assert (rig.offset(0), rig.offset(1)) == (1, -1)
    rig.end(ONE, commit=True)
    assert (rig.offset(0), rig.offset(1)) == (5, 5)
    rig.restart()
    assert (rig.offset(0), rig.offset(1)) == (5, 5)


def test_offsets_of_an_aborted_transaction_never_were() -> None:
    rig = Rig()
    rig.commit({0: 1})
    rig.commit_in_transaction(ONE, {0: 5, 1: 5})
    rig.end(ONE, commit=False)
    assert (rig.offset(0), rig.offset(1)) == (1, -1)
    rig.restart()
    assert (rig.offset(0), rig.offset(1)) == (1, -1)


def test_a_pending_offset_is_unstable_for_who_wants_to_know() -> None:
    rig = Rig()
    rig.commit({0: 1, 1: 2})
    rig.commit_in_transaction(ONE, {0: 5})
    rows = rig.fetch(0, 1, require_stable=True)
    assert (rows[0].error_code, rows[0].committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert (rows[1].error_code, rows[1].committed_offset) == (ErrorCode.NONE, 2)
    assert rig.fetch(0)[0].committed_offset == 1
    rig.end(ONE, commit=True)
    assert rig.fetch(0, require_stable=True)[0].committed_offset == 5


def test_a_partition_stays_unstable_until_the_last_of_its_transactions_ends() -> None:
    rig = Rig()
    rig.commit_in_transaction(ONE, {0: 5})
    rig.commit_in_transaction(TWO, {0: 6})
    rig.end(ONE, commit=False)
    assert rig.fetch(0, require_stable=True)[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    rig.end(TWO, commit=True)
    assert rig.fetch(0, require_stable=True)[0].committed_offset == 6


@pytest.mark.parametrize("restarts", [False, True])
def test_of_a_plain_commit_and_a_transaction_the_one_written_later_counts(restarts: bool) -> None:
    rig = Rig()
    rig.commit_in_transaction(ONE, {0: 5, 1: 5})
    rig.commit({0: 9})
    rig.end(ONE, commit=True)
    if restarts:
        rig.restart()
    assert (rig.offset(0), rig.offset(1)) == (9, 5)


def test_of_two_transactions_the_one_written_later_counts_whichever_ends_first() -> None:
    rig = Rig()
    rig.commit_in_transaction(ONE, {0: 5})
    rig.commit_in_transaction(TWO, {0: 6})
    rig.end(TWO, commit=True)
    rig.end(ONE, commit=True)
    assert rig.offset() == 6


def test_a_tombstone_takes_pending_offsets_along() -> None:
    rig = Rig()
    rig.commit_in_transaction(ONE, {0: 5, 1: 5})
    rig.carry_out(Decision(None, [tombstone(GROUP, TOPIC, 0)]))
    assert rig.fetch(0, require_stable=True)[0].error_code == ErrorCode.NONE
    rig.end(ONE, commit=True)
    assert (rig.offset(0), rig.offset(1)) == (-1, 5)


def test_a_marker_of_a_stranger_changes_nothing() -> None:
    rig = Rig()
    rig.commit({0: 1})
    rig.end(TWO, commit=True)
    assert rig.offset() == 1


def test_a_transactional_commit_without_a_group_needs_no_generation_and_takes_none() -> None:
    rig = Rig()
    with pytest.raises(BrokerError) as raised:
        rig.commit_in_transaction(ONE, {0: 1}, generation=0)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION
    rig.commit_in_transaction(ONE, {0: 1})
    assert GROUP in rig.groups


def test_a_stale_member_epoch_is_an_illegal_generation_here() -> None:
    rig = Rig()
    group = rig.groups[GROUP] = FakeGroup(kind="consumer")
    group.refusal = ErrorCode.STALE_MEMBER_EPOCH
    with pytest.raises(BrokerError) as raised:
        rig.commit_in_transaction(ONE, {0: 1}, generation=1)
    assert raised.value.code is ErrorCode.ILLEGAL_GENERATION


def test_metadata_is_bounded_in_transactions_too() -> None:
    rig = Rig(GroupSettings(metadata_characters_max=-1))
    assert rig.commit_in_transaction(ONE, {0: 1}) == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
