"""Names, ids, placement and plans: pure functions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.cluster import names
from headpond.cluster.ids import new_uuid
from headpond.cluster.placement import Candidate, place
from headpond.model import BrokerError, ErrorCode
from headpond.model.ids import id_text, parse_id
from simulation.harness.chance import SeededRandom


class ScriptedRandom:
    def __init__(self, *draws: bytes) -> None:
        self._draws = list(draws)

    def random_bytes(self, count: int) -> bytes:
        return self._draws.pop(0)

    def random_int(self, below: int) -> int:
        return 0


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    names.check_name(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("é", "'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_illegal_names_are_refused_with_the_words_of_kafka(name: str, problem: str) -> None:
    with pytest.raises(BrokerError) as caught:
        names.check_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == f"Topic name is invalid: {problem}"


def test_an_id_never_starts_with_a_dash_and_is_never_a_reserved_one() -> None:
    dashed, fine = b"\xf8" + bytes(15), b"\x01" + bytes(15)
    uuid = new_uuid(ScriptedRandom(dashed, fine))
    assert uuid[0] == 1
    assert uuid[6] >> 4 == 4 and uuid[8] >> 6 == 2  # a random UUID says so


@given(st.binary(min_size=16, max_size=16))
def test_the_text_of_an_id_leads_back_to_it(uuid: bytes) -> None:
    assert parse_id(id_text(uuid)) == uuid


@pytest.mark.parametrize("text", ["", "short", "x" * 23, "é" * 22])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_id(text)


brokers = st.lists(
    st.builds(Candidate, st.integers(0, 30), st.sampled_from([None, "a", "b", "c"]), st.booleans()),
    min_size=1,
    max_size=12,
    unique_by=lambda broker: broker.id,
).filter(lambda found: any(not broker.fenced for broker in found))


@given(brokers, st.integers(1, 40), st.data())
def test_replicas_are_distinct_brokers_on_as_many_racks_as_can_be_and_the_leader_is_up(
    found: list[Candidate], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(found)))
    placed = place(found, partitions=partitions, replication_factor=factor, random=SeededRandom())
    by_id = {broker.id: broker for broker in found}
    racks = {broker.rack for broker in found}
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert not by_id[replicas[0]].fenced
        assert len({by_id[replica].rack for replica in replicas}) == min(factor, len(racks))


@pytest.mark.parametrize("rack_count", [1, 3])
def test_leaders_and_replicas_are_spread_evenly(rack_count: int) -> None:
    found = [Candidate(n, f"rack {n % rack_count}", False) for n in range(6)]
    placed = place(found, partitions=60, replication_factor=3, random=SeededRandom())
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {10}
    everyone = Counter(replica for replicas in placed for replica in replicas)
    assert max(everyone.values()) <= 1.5 * min(everyone.values())


def test_too_few_brokers_are_named_in_the_refusal() -> None:
    with pytest.raises(BrokerError) as caught:
        place([Candidate(1, None, False)], partitions=1, replication_factor=3, random=SeededRandom())
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(BrokerError, match="All brokers are currently fenced"):
        place([Candidate(1, None, True)], partitions=1, replication_factor=1, random=SeededRandom())
