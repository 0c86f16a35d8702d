"""Groups and transactions with clients of other languages: Java, Go (franz-go, kafka-go, Sarama) and JavaScript.

The programs print what they saw, in each of the protocols that they know; here is what is right, which is what they
print with a real Kafka. What one can't do it says (``left_out``), and the test is skipped with its reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from interop.programs import CLIENTS_OF_GROUPS, client_program, java, needs_kafka
from support.broker import BrokerProcess

pytestmark = pytest.mark.interop

QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}
"""A rebalance takes as long as it needs, not as long as it may."""

Checks = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def groups_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("groups"), settings=QUICK_GROUPS)
    try:
        yield broker.start()
        broker.stop()
        assert "Traceback" not in broker.logs(), broker.logs()
    finally:
        broker.close()


@pytest.fixture(scope="module")
def runs() -> dict[str, Checks]:
    """Of the clients so far."""
    return {}


@pytest.fixture(scope="module", params=CLIENTS_OF_GROUPS)
def said(request: pytest.FixtureRequest, runs: dict[str, Checks]) -> Checks:
    return said_by(request.param, request, runs)


@pytest.fixture(scope="module")
def said_by_java(request: pytest.FixtureRequest, runs: dict[str, Checks]) -> Checks:
    return said_by("java", request, runs)


def said_by(client: str, request: pytest.FixtureRequest, runs: dict[str, Checks]) -> Checks:
    """What the client's programs printed, by check."""
    if client not in runs:
        program = client_program(client, "groups")  # before there is a broker: it may not be there to run
        broker: BrokerProcess = request.getfixturevalue("groups_broker")
        lines = program(broker.bootstrap_servers, f"{client}-{uuid.uuid4().hex[:8]}")
        runs[client] = {"client": {"name": client}, **{line["check"]: line for line in lines}}
    return runs[client]


def of(said: Checks, check: str) -> dict[str, Any]:
    found = said[check]
    if "left_out" in found:
        pytest.skip(f"{said['client']['name']} does not do {check}: {found['left_out']}")
    return found


@pytest.mark.parametrize(
    ("protocol", "revoked", "kind"),
    [("eager", 4, "classic"), ("cooperative", 2, "classic"), ("consumer", 2, "consumer")],
)
def test_two_members_share_the_partitions_and_one_takes_over_from_the_other(
    said: Checks, protocol: str, revoked: int, kind: str
) -> None:
    found = of(said, f"rebalance-{protocol}")
    assert (found["shared"], found["apart"], found["revoked"]) == (True, True, revoked)
    assert found.get("type", kind) == kind


@pytest.mark.parametrize("protocol", ["eager", "cooperative", "consumer"])
def test_what_was_committed_is_not_read_again_in_the_next_life(said: Checks, protocol: str) -> None:
    found = of(said, f"commits-{protocol}")
    assert (found["count"], found["once"], found["lives"], found["committed"]) == (40, True, True, 40)


@pytest.mark.parametrize(
    ("protocol", "failed"),
    [
        ("eager", "older FencedInstanceIdException"),
        ("cooperative", "older FencedInstanceIdException"),
        ("consumer", "newer UnreleasedInstanceIdException"),
    ],
)
def test_a_static_member_comes_back_to_its_partitions(said_by_java: Checks, protocol: str, failed: str) -> None:
    found = said_by_java[f"static-{protocol}"]
    assert (found["same"], found["undisturbed"], found["failed"]) == (True, True, failed)


def test_what_was_aborted_is_invisible_for_read_committed(said: Checks, groups_broker: BrokerProcess) -> None:
    found = of(said, "visible")
    kept = ["kept-0", "kept-2", "kept-4"]
    assert values(found, "left", groups_broker) == values(found, "right", groups_broker) == kept
    everything = ["kept-0", "aborted-1", "kept-2", "aborted-3", "kept-4", "aborted-5"]
    assert values(found, "uncommitted", groups_broker) == everything


def test_what_is_read_and_written_in_transactions_happens_once(said: Checks, groups_broker: BrokerProcess) -> None:
    found = of(said, "exactly-once")
    assert values(found, "values", groups_broker) == [f"{n}!" for n in range(30)]
    assert (found["after_abort"], found["several"]) == ("", True)
    assert found.get("metadata", "by transaction") == "by transaction"


def test_a_second_producer_of_the_same_id_ends_the_first(said: Checks) -> None:
    found = of(said, "fenced")
    assert found["failed"] in ("Fenced", "InvalidProducerEpochException") and found["values"] == ["of the second"]


def test_an_open_transaction_holds_back_what_is_behind_it(said_by_java: Checks) -> None:
    found = said_by_java["open"]
    assert (found["stable"], found["meanwhile"]) == (1, ["before"])
    assert found["values"] == ["before", "inside", "behind"]
    assert said_by_java["version"]["level"] == 2, "transactions by the second version of their protocol"


@pytest.fixture(scope="module")
def administered(groups_broker: BrokerProcess) -> Checks:
    prefix = f"admin-{uuid.uuid4().hex[:8]}"
    return {line["check"]: line for line in java("GroupAdmin", groups_broker.bootstrap_servers, prefix)}


@needs_kafka
@pytest.mark.parametrize(
    "right",
    [
        {
            "check": "group-classic",
            "type": "Classic",
            "protocol": "consumer",
            "state": "Stable",
            "assignor": "range",
            "client": "me",
            "holds": 2,
            "coordinator": 1,
            "delete_in_use": "GroupNotEmptyException",
        },
        {
            "check": "group-consumer",
            "type": "Consumer",
            "protocol": "consumer",
            "state": "Stable",
            "assignor": "uniform",
            "client": "me",
            "holds": 2,
            "coordinator": 1,
            "delete_in_use": "GroupNotEmptyException",
        },
        {"check": "deleted-classic", "gone": True, "describe": "GroupIdNotFoundException"},
        {"check": "deleted-consumer", "gone": True, "describe": "GroupIdNotFoundException"},
        {
            "check": "offsets",
            "listed": [3, 5],
            "metadata": "three",
            "left": None,
            "kept": 5,
            "from": "0 5",
            "alter_in_use": "UnknownMemberIdException",
            "delete_in_use": "GroupSubscribedToTopicException",
        },
        {"check": "removed", "before": ["gone"], "after": [], "unknown": "UnknownMemberIdException", "all": 0},
        {
            "check": "transactions",
            "listed": "Ongoing",
            "filtered": True,
            "described": "Ongoing",
            "partitions": "[-topic-0]",
            "timeout": 60000,
            "same_producer": True,
            "started": True,
            "open_at": True,
            "sequence": 0,
            "still_open": False,
            "unknown": "TransactionalIdNotFoundException",
        },
        {"check": "hanging", "still_open": False},
        {"check": "fence-producers", "failed": "InvalidProducerEpochException"},
    ],
    ids=lambda right: right["check"],
)
def test_javas_admin_client_sees_and_does_what_it_does_with_kafka(administered: Checks, right: dict[str, Any]) -> None:
    assert administered[right["check"]] == right


def values(found: dict[str, Any], name: str, broker: BrokerProcess) -> list[str]:
    """What the program read; or, of one whose consumer can't, what there is to read, by librdkafka's."""
    if "topics" not in found:
        texts: list[str] = found[name]
        return texts
    level = "read_uncommitted" if name == "uncommitted" else "read_committed"
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "isolation.level": level}
    consumer = confluent_kafka.Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(found["topics"][name], 0, 0)])
    texts = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        texts.append(message.value().decode())
    consumer.close()
    assert message is not None and message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    return texts
