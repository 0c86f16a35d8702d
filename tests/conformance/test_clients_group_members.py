"""Members of real clients that crash, stall past their session time-out and come back, with and without a static id."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headpond.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headpond.protocol.schema.describe_groups import DescribeGroupsRequest
from headpond.protocol.schema.heartbeat import HeartbeatRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.broker import BrokerProcess
from support.clients.base import Sent
from support.clients.confluent import ConfluentClient
from support.clients.member_process import MemberFailed, MemberProcess
from support.clients.members import KINDS, Read
from support.variants import kinds
from support.verbs import create_topic
from support.waiting import eventually
from support.wire import Wire

PARTITIONS = 4
GROUP, TOPIC = "readers", "letters"
DEADLINE_S = 60.0
SHORT_MS, LONG_MS = 2_000, 30_000
"""A session that is over soon, and one that outlasts the start of a process on a loaded machine."""
CLASSIC_KINDS = [kind for kind in KINDS if kind != "confluent-consumer"]
# aiokafka does not name its static id in heartbeats, is told that it is unknown, and takes the id back.
KINDS_THAT_KNOW_OF_FENCING = [kind for kind in CLASSIC_KINDS if kind != "aiokafka"]

Join = Callable[..., MemberProcess]


@pytest.fixture
def session_ms(request: pytest.FixtureRequest) -> int:
    return LONG_MS if request.node.get_closest_marker("long_session") else SHORT_MS


@pytest.fixture
def bootstrap(make_broker: Callable[..., BrokerProcess], session_ms: int) -> str:
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        "group.consumer.min.session.timeout.ms": session_ms,
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.min.heartbeat.interval.ms": 300,
        "group.consumer.heartbeat.interval.ms": 300,
    }
    broker = make_broker(settings=settings).start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, TOPIC, partitions=PARTITIONS)
    return broker.bootstrap_servers


@pytest.fixture(params=kinds(KINDS, ordinary={"confluent-consumer", "kafka-python"}))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def join(bootstrap: str, kind: str, session_ms: int, tmp_path: Path) -> Iterator[Join]:
    made: list[MemberProcess] = []

    def make(instance_id: str | None = None) -> MemberProcess:
        output = tmp_path / f"member-{len(made)}"
        where = {"kind": kind, "bootstrap": bootstrap, "group": GROUP, "topic": TOPIC}
        made.append(MemberProcess(output, **where, instance_id=instance_id, session_ms=session_ms))
        return made[-1]

    yield make
    for member in made:
        member.abandon()


def fill(bootstrap: str, numbers: range) -> None:
    client = ConfluentClient(bootstrap)
    for partition in range(PARTITIONS):
        values = [Sent(b"%d" % number) for number in numbers if number % PARTITIONS == partition]
        client.produce(TOPIC, values, partition=partition)


def hold(*members: MemberProcess, counts: tuple[int, ...]) -> list[Read]:
    """Poll all of them until each holds so many partitions, all of them together; what they read meanwhile. Side by
    side, as processes do: kafka-python forgets a join that comes to its end while nobody polls, and begins anew."""
    reads: list[Read] = []

    def is_so() -> bool:
        with ThreadPoolExecutor(len(members)) as pool:
            for found in pool.map(MemberProcess.poll, members):
                reads.extend(found)
        held = [member.assignment() for member in members]
        return tuple(map(len, held)) == counts and set().union(*held) == set(range(PARTITIONS))

    eventually(is_so, what=lambda: f"{counts}, with {[each.assignment() for each in members]}", deadline_s=DEADLINE_S)
    return reads


def read(member: MemberProcess, count: int, before: list[Read] | None = None) -> list[int]:
    """Poll until there are so many; the sorted numbers."""
    found = list(before or [])

    def has_all() -> bool:
        found.extend(member.poll())
        return len(found) >= count

    eventually(has_all, what=lambda: f"{count} records, of which {len(found)} came", deadline_s=DEADLINE_S)
    return sorted(int(each.value) for each in found)


def committed(bootstrap: str) -> list[int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(range(PARTITIONS)))
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    with Wire(bootstrap) as wire:
        rows = wire.call(OffsetFetchRequest(groups=[group]), 9).groups[0].topics[0].partitions
    return [row.committed_offset for row in sorted(rows, key=lambda row: row.partition_index)]


def rounds(bootstrap: str, kind: str) -> int:
    """How often the group has rebalanced: its generation, or its epoch."""
    with Wire(bootstrap) as wire:
        if kind == "confluent-consumer":
            epoch: int = wire.call(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1).groups[0].group_epoch
            return epoch
        members = wire.call(DescribeGroupsRequest(groups=[GROUP]), 5).groups[0].members
        for generation in range(1, 100):  # nobody tells it, but a heartbeat with the right one is accepted
            request = HeartbeatRequest(
                group_id=GROUP,
                generation_id=generation,
                member_id=members[0].member_id,
                group_instance_id=members[0].group_instance_id,
            )
            if wire.call(request, 4).error_code == 0:
                return generation
    raise AssertionError("no generation is accepted")


def test_what_a_crashed_member_read_and_did_not_commit_the_other_one_reads(bootstrap: str, join: Join) -> None:
    fill(bootstrap, range(80))
    one = join()
    read(one, 80, hold(one, counts=(4,)))
    one.commit()
    two = join()
    hold(one, two, counts=(2, 2))
    fill(bootstrap, range(80, 160))
    assert len(read(one, 40)) == 40  # of its two partitions
    one.abandon()
    found: set[int] = set()

    def has_all() -> bool:
        found.update(int(each.value) for each in two.poll())
        return len(found) >= 80

    eventually(has_all, what=lambda: f"the records from 80 on, of which {sorted(found)} came", deadline_s=DEADLINE_S)
    # Some twice, perhaps: eager members begin anew at what was committed. None from before the commit.
    assert found == set(range(80, 160))
    hold(two, counts=(4,))
    two.commit()
    assert committed(bootstrap) == [40] * PARTITIONS


def test_a_member_that_stalled_past_its_session_commits_nothing_and_shares_again(bootstrap: str, join: Join) -> None:
    fill(bootstrap, range(40))
    one = join()
    read(one, 40, hold(one, counts=(4,)))  # and not committed
    two = join()
    one.freeze()
    fill(bootstrap, range(40, 80))
    assert read(two, 80) == list(range(80))
    two.commit()
    assert committed(bootstrap) == [20] * PARTITIONS
    one.thaw()
    with contextlib.suppress(MemberFailed):  # mostly so; it may also know already that it has nothing to commit
        one.commit()
    assert committed(bootstrap) == [20] * PARTITIONS
    hold(one, two, counts=(2, 2))
    one.close()
    hold(two, counts=(4,))


@pytest.mark.long_session
def test_a_static_member_that_closes_and_comes_back_has_its_partitions_without_a_rebalance(
    bootstrap: str, kind: str, join: Join
) -> None:
    one, two = join("one"), join("two")
    hold(one, two, counts=(2, 2))
    held, held_by_other, before = one.assignment(), two.assignment(), rounds(bootstrap, kind)
    one.close()
    one = join("one")
    hold(one, two, counts=(2, 2))
    assert (one.assignment(), two.assignment()) == (held, held_by_other)
    assert rounds(bootstrap, kind) == before
    fill(bootstrap, range(40))
    assert len(read(one, 20)) == 20
    one.commit()


@pytest.mark.long_session
@pytest.mark.parametrize("kind", kinds(CLASSIC_KINDS, ordinary={"confluent-cooperative"}))
def test_a_static_member_that_crashes_and_comes_back_has_its_partitions_without_a_rebalance(
    bootstrap: str, kind: str, join: Join
) -> None:
    one, two = join("one"), join("two")
    hold(one, two, counts=(2, 2))
    held, before = one.assignment(), rounds(bootstrap, kind)
    one.abandon()
    one = join("one")
    hold(one, two, counts=(2, 2))
    assert one.assignment() == held
    assert rounds(bootstrap, kind) == before


@pytest.mark.long_session
@pytest.mark.parametrize("kind", kinds(KINDS_THAT_KNOW_OF_FENCING, ordinary={"confluent-range", "kafka-python"}))
def test_a_second_process_with_the_same_static_id_fences_the_first(bootstrap: str, join: Join) -> None:
    fill(bootstrap, range(40))
    first = join("one")
    read(first, 40, hold(first, counts=(4,)))
    second = join("one")
    assert read(second, 40, hold(second, counts=(4,))) == list(range(40))
    second.commit()
    with pytest.raises(MemberFailed):
        first.commit()
    fill(bootstrap, range(40, 80))
    assert read(second, 40) == list(range(40, 80))
