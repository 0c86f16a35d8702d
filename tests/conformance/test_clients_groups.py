"""Consumer groups with real clients: members come, share, go; what was committed is where the next one goes on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException

from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from support.broker import BrokerProcess, serving
from support.clients.base import Sent
from support.clients.confluent import ConfluentClient
from support.clients.members import KINDS, Member, Read, make_member
from support.variants import kinds, rare
from support.verbs import create_topic
from support.waiting import eventually
from support.wire import Wire

PARTITIONS = 4
DEADLINE_S = 60.0
OVERRIDE = os.environ.get("HEADPOND_TEST_BOOTSTRAP")

Joining = Callable[..., Member]


every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that does not wait for further members, and is told soon of those that come."""
    if OVERRIDE:
        yield OVERRIDE
        return
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 300,
        "group.consumer.heartbeat.interval.ms": 300,
    }
    with serving(BrokerProcess(tmp_path_factory.mktemp("broker"), settings=settings)) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def join(kind: str) -> Iterator[Joining]:
    """Members that are closed at the end, if the test did not."""
    open_members: list[Member] = []

    def make(bootstrap: str, group: str, topic: str) -> Member:
        open_members.append(make_member(kind, bootstrap, group, topic))
        return open_members[-1]

    yield make
    for member in open_members:
        member.abandon()


def fill(bootstrap: str, topic: str, numbers: range) -> None:
    client = ConfluentClient(bootstrap)
    for partition in range(PARTITIONS):
        values = [Sent(b"%d" % number) for number in numbers if number % PARTITIONS == partition]
        client.produce(topic, values, partition=partition)


def read(member: Member, numbers: range) -> list[Read]:
    """Poll until all of them came. Each comes once: nothing was read before, nothing is read again."""
    found: list[Read] = []

    def has_all() -> bool:
        found.extend(member.poll())
        return len(found) >= len(numbers)

    eventually(has_all, what=lambda: f"{len(numbers)} records, of which {len(found)} came", deadline_s=DEADLINE_S)
    assert sorted(int(each.value) for each in found) == list(numbers)
    return found


def hold(members: dict[str, Member], *counts: int) -> list[set[int]]:
    """Poll all of them until each holds so many partitions, all of them together."""

    def is_so() -> bool:
        for member in members.values():
            member.poll()
        held = [member.assignment() for member in members.values()]
        return sorted(map(len, held)) == sorted(counts) and set().union(*held) == set(range(PARTITIONS))

    eventually(
        is_so,
        what=lambda: f"{counts} partitions, with {[member.assignment() for member in members.values()]}",
        deadline_s=DEADLINE_S,
    )
    return [member.assignment() for member in members.values()]


@every_kind
def test_the_next_consumer_goes_on_where_the_last_one_committed(
    wire: Wire, bootstrap: str, topic_name: str, join: Joining
) -> None:
    create_topic(wire, topic_name, partitions=PARTITIONS)
    fill(bootstrap, topic_name, range(100))
    first = join(bootstrap, topic_name, topic_name)
    read(first, range(100))
    first.commit()
    first.close()
    fill(bootstrap, topic_name, range(100, 200))
    second = join(bootstrap, topic_name, topic_name)
    read(second, range(100, 200))  # and not committed
    second.close()
    third = join(bootstrap, topic_name, topic_name)
    read(third, range(100, 200))
    third.close()


@every_kind
def test_two_members_share_the_partitions_and_one_has_all_when_the_other_leaves(
    wire: Wire, bootstrap: str, topic_name: str, join: Joining
) -> None:
    create_topic(wire, topic_name, partitions=PARTITIONS)
    one = join(bootstrap, topic_name, topic_name)
    hold({"one": one}, PARTITIONS)
    two = join(bootstrap, topic_name, topic_name)
    hold({"one": one, "two": two}, 2, 2)
    one.close()
    hold({"two": two}, PARTITIONS)
    fill(bootstrap, topic_name, range(40))
    read(two, range(40))
    two.commit()
    two.close()


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        row if row in (("confluent-consumer", "stopped"), ("kafka-python", "killed")) else rare(*row)
        for row in itertools.product(KINDS, ("killed", "stopped"))
    ],
)
def test_committed_offsets_and_groups_outlive_their_broker(
    make_broker: Callable[..., BrokerProcess], kind: str, join: Joining, end: str
) -> None:
    broker = make_broker(settings={"group.initial.rebalance.delay.ms": 0}).start()
    bootstrap, topic = broker.bootstrap_servers, "letters"
    with Wire(bootstrap) as wire:
        create_topic(wire, topic, partitions=PARTITIONS)
    fill(bootstrap, topic, range(100))
    member = join(bootstrap, "readers", topic)
    read(member, range(100))
    member.commit()
    broker.restart(kill=end == "killed")
    assert broker.bootstrap_servers == bootstrap
    fill(bootstrap, topic, range(100, 200))
    read(member, range(100, 200))  # it is still a member, or becomes one again, and reads each record once
    member.commit()
    member.close()
    broker.restart(kill=end == "killed")
    fill(bootstrap, topic, range(200, 240))
    another = join(bootstrap, "readers", topic)
    read(another, range(200, 240))
    another.close()


@pytest.mark.parametrize("kind", kinds(KINDS, ordinary={"confluent-cooperative"}))
def test_members_wait_for_a_coordinator_that_takes_long_to_load(
    make_broker: Callable[..., BrokerProcess], kind: str, join: Joining
) -> None:
    settings = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    broker = make_broker(settings=settings).start()
    bootstrap, topic = broker.bootstrap_servers, "letters"
    with Wire(bootstrap) as wire:
        create_topic(wire, topic, partitions=PARTITIONS)
        fill_offsets(wire)
    fill(bootstrap, topic, range(40))
    member = join(bootstrap, "readers", topic)
    read(member, range(40))
    member.commit()
    for start in (40, 80):
        broker.restart(kill=True)
        fill(bootstrap, topic, range(start, start + 40))
        read(member, range(start, start + 40))
        # librdkafka leaves it to its user to commit again when the coordinator is loading.
        eventually(lambda: [member.commit()], retry_on=(KafkaException,))
    member.close()
    broker.restart(kill=True)
    another = join(bootstrap, "readers", topic)  # the first that it asks for is the coordinator
    fill(bootstrap, topic, range(120, 160))
    read(another, range(120, 160))
    another.close()


def fill_offsets(wire: Wire) -> None:
    """So many commits of other groups that reading them back takes a second."""
    create_topic(wire, "others", partitions=500)
    eventually(lambda: wire.call(FindCoordinatorRequest(coordinator_keys=["other"]), 4).coordinators[0].error_code == 0)
    rows = [
        OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=at, committed_offset=7, committed_metadata="")
        for at in range(500)
    ]
    request = OffsetCommitRequest(
        group_id="other", topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="others", partitions=rows)]
    )

    def is_committed() -> bool:
        return {row.error_code for row in wire.call(request, 9).topics[0].partitions} == {0}

    eventually(is_committed)
    for _ in range(200):
        assert is_committed()
