"""``headpond groups`` and ``headpond transactions`` against a running broker, with real clients as members."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from support.cli import Cli
from support.variants import rare
from support.waiting import eventually

RECORDS = 10


@pytest.fixture
def headpond(bootstrap: str) -> Cli:
    return Cli(bootstrap)


@pytest.fixture
def topic(headpond: Cli, topic_name: str) -> str:
    """Two partitions with five records each, a second between one and the next."""
    headpond.ok("topics", "create", topic_name, "--partitions", 2)
    producer = Producer({"bootstrap.servers": headpond.env["HEADPOND_BOOTSTRAP_SERVER"]})
    for number in range(RECORDS):
        producer.produce(topic_name, b"%d" % number, partition=number % 2, timestamp=1_700_000_000_000 + number * 1_000)
    assert producer.flush(30) == 0
    return topic_name


@contextmanager
def member(bootstrap: str, group: str, topic: str, protocol: str = "consumer") -> Iterator[Consumer]:
    """Has read everything and committed it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "reader",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        count = 0

        def has_all() -> bool:
            nonlocal count
            count += sum(message.error() is None for message in consumer.consume(RECORDS, timeout=0.2))
            return count >= RECORDS

        eventually(has_all, what=lambda: f"{RECORDS} records, of which {count} came")
        consumer.commit(asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def described(headpond: Cli, group: str) -> dict[str, Any]:
    (found,) = headpond.ok("groups", "describe", group, "--json").document
    assert isinstance(found, dict)
    return found


def committed(headpond: Cli, group: str) -> dict[int, int]:
    return {one["partition"]: one["committed_offset"] for one in described(headpond, group)["partitions"]}


def commit(headpond: Cli, group: str, topic: str, offset: int = 2) -> None:
    headpond.ok("groups", "reset-offsets", group, "--topic", topic, "--to-offset", offset, "--execute")


def test_a_group_with_a_name_that_no_terminal_should_obey_is_shown_on_a_line_of_its_own(
    headpond: Cli, topic: str
) -> None:
    name = f"{topic}\nb\x1b[31m"
    shown = f"{topic}\\nb\\x1b[31m"
    commit(headpond, name, topic)
    assert any(line.startswith(f"{shown} ") for line in headpond.ok("groups", "list").out.splitlines())
    assert headpond.ok("groups", "describe", name).out.startswith(f"{shown}: ")
    assert described(headpond, name)["group"] == name
    assert f"did you mean {shown}?" in headpond("groups", "describe", name[:-1]).err
    assert headpond.ok("groups", "delete", name).out == f"deleted {shown}\n"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_listed_and_described_with_its_members_and_its_lag(
    headpond: Cli, bootstrap: str, topic: str, protocol: str
) -> None:
    with member(bootstrap, topic, topic, protocol):
        headpond.ok("produce", topic, "--partition", 1, stdin="a\nb\nc\n")
        (listed,) = [one for one in headpond.ok("groups", "list", "--json").document if one["group"] == topic]
        assert listed == {"group": topic, "type": protocol, "state": "Stable", "protocol_type": "consumer"}
        assert topic in headpond.ok("groups", "list", "--state", "stable", "--type", protocol).out
        assert topic not in headpond.ok("groups", "list", "--state", "empty").out
        found = described(headpond, topic)
        assert (found["type"], found["state"], found["lag"]) == (protocol, "Stable", 3)
        (who,) = found["members"]
        assert (who["client"], who["host"]) == ("reader", "127.0.0.1")
        assert who["assignment"] == [{"topic": topic, "partition": number} for number in (0, 1)]
        assert [
            (one["partition"], one["committed_offset"], one["end_offset"], one["lag"], one["member"])
            for one in found["partitions"]
        ] == [(0, 5, 5, 0, who["id"]), (1, 5, 8, 3, who["id"])]
        text = headpond.ok("groups", "describe", topic).out
        assert f"{topic}: {protocol} group, Stable, 1 member, lag 3" in text and f"{topic} 0-1" in text
    assert described(headpond, topic)["members"] == []


def test_a_group_with_members_is_neither_moved_nor_deleted(headpond: Cli, bootstrap: str, topic: str) -> None:
    with member(bootstrap, topic, topic):
        move = ["groups", "reset-offsets", topic, "--topic", topic, "--to-earliest", "--execute"]
        assert "has 1 member and is Stable" in headpond(*move).failed_with(1)
        assert "stop them first" in headpond("groups", "delete", topic).failed_with(1)
        assert committed(headpond, topic) == {0: 5, 1: 5}
    headpond.ok(*move)
    assert committed(headpond, topic) == {0: 0, 1: 0}


@pytest.mark.parametrize(
    ("where", "expected"),
    [  # from offset 2
        rare(["--to-earliest"], {0: 0, 1: 0}),
        rare(["--to-latest"], {0: 5, 1: 5}),
        rare(["--to-offset", 4], {0: 4, 1: 4}),
        (["--shift-by", 1], {0: 3, 1: 3}),
        rare(["--shift-by=-1"], {0: 1, 1: 1}),
        (["--to-timestamp", 1_700_000_005_000], {0: 3, 1: 2}),
        rare(["--to-timestamp", "2023-11-14T22:13:25Z"], {0: 3, 1: 2}),
        rare(["--to-timestamp", 1_900_000_000_000], {0: 5, 1: 5}),
        (["--to-offset", 99], {0: 5, 1: 5}),
        rare(["--shift-by", -99], {0: 0, 1: 0}),
    ],
    ids=str,
)
def test_offsets_go_where_they_are_told_and_not_before_it_is_meant(
    headpond: Cli, topic: str, where: list[object], expected: dict[int, int]
) -> None:
    commit(headpond, topic, topic)
    shown = headpond.ok("groups", "reset-offsets", topic, "--all-topics", *where, "--json")
    assert shown.document["executed"] is False
    assert {one["partition"]: one["new_offset"] for one in shown.document["partitions"]} == expected
    assert committed(headpond, topic) == {0: 2, 1: 2}
    done = headpond.ok("groups", "reset-offsets", topic, "--all-topics", *where, "--execute", "--json")
    assert done.document == {**shown.document, "executed": True}
    assert committed(headpond, topic) == expected
    assert ("is the nearest" in done.err) == (where[-1] in (99, -99))


def test_only_the_named_partitions_move(headpond: Cli, topic: str) -> None:
    commit(headpond, topic, topic)
    said = headpond.ok("groups", "reset-offsets", topic, "--topic", f"{topic}:1", "--to-latest")
    assert said.err == "nothing was changed: --execute does it\n"
    headpond.ok("groups", "reset-offsets", topic, "--topic", f"{topic}:1", "--to-latest", "--execute")
    assert committed(headpond, topic) == {0: 2, 1: 5}


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (["--topic", "{topic}:7", "--to-latest"], "has no partition 7"),
        rare(["--topic", "{topic}x", "--to-latest"], "does not exist (did you mean"),
        rare(["--all-topics", "--to-latest"], "does not exist"),
        (["--topic", "{topic}", "--shift-by", "1"], "no committed offset to shift"),
    ],
)
def test_what_can_not_be_done_is_said_and_leaves_no_group_behind(
    headpond: Cli, topic: str, wish: list[str], says: str
) -> None:
    arguments = [each.format(topic=topic) for each in wish]
    said = headpond("groups", "reset-offsets", f"never-{topic}", *arguments, "--execute")
    assert says in said.failed_with(1)
    assert f"never-{topic}" not in headpond.ok("groups", "list").out


def test_groups_are_deleted_together_or_not_at_all(headpond: Cli, topic: str) -> None:
    one, other = f"{topic}-1", f"{topic}-2"
    commit(headpond, one, topic)
    commit(headpond, other, topic)
    assert "nothing was deleted" in headpond("groups", "delete", one, f"{topic}-3").failed_with(1)
    assert one in headpond.ok("groups", "list").out
    said = headpond.ok("groups", "delete", "--if-exists", one, other, f"{topic}-3", "--json")
    assert said.document == {"deleted": [one, other]}
    assert f"group {one} does not exist" in headpond("groups", "describe", one).failed_with(1)


def test_offsets_of_a_deleted_topic_do_not_hold_up_the_description(headpond: Cli, topic: str) -> None:
    commit(headpond, topic, topic)
    headpond.ok("topics", "delete", topic)
    assert described(headpond, topic)["lag"] == 0


# --- transactions -----------------------------------------------------------------------------------------------------


def open_transaction(bootstrap: str, transactional_id: str, topic: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"left open", partition=0)
    assert producer.flush(30) == 0
    return producer


def test_an_open_transaction_is_seen_and_aborted_and_its_producer_fenced(
    headpond: Cli, bootstrap: str, topic: str
) -> None:
    producer = open_transaction(bootstrap, topic, topic)
    listed = headpond.ok("transactions", "list", "--open", "--json").document
    assert [one["state"] for one in listed if one["id"] == topic] == ["Ongoing"]
    (found,) = headpond.ok("transactions", "describe", topic, "--json").document
    assert found["partitions"] == [{"topic": topic, "partition": 0}] and found["age_ms"] >= 0
    assert f"{topic} 0" in headpond.ok("transactions", "describe").out
    assert headpond.ok("transactions", "abort", topic).out == f"aborted the transaction of {topic}\n"
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(30)
    assert "left open" not in headpond.ok("consume", topic).out
    assert "has no open transaction" in headpond("transactions", "abort", topic).failed_with(1)
    assert "does not exist" in headpond("transactions", "abort", f"{topic}-never").failed_with(1)
    assert f"{topic}-never" not in headpond.ok("transactions", "list").out


def test_a_transaction_is_ended_in_its_partition_when_nobody_else_knows_it(
    headpond: Cli, bootstrap: str, topic: str
) -> None:
    open_transaction(bootstrap, topic, topic)
    abort = ["transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset"]
    assert "there are some from 5" in headpond(*abort, 0).failed_with(1)
    headpond.ok(*abort, 5)
    assert "there is none" in headpond(*abort, 5).failed_with(1)
    headpond.ok("produce", topic, "--partition", 0, stdin="after\n")
    assert "after" in headpond.ok("consume", topic).out, "the last stable offset has moved on"
