"""``headpond topics`` against a running broker: what people create, look at, change and delete."""

from __future__ import annotations

import os

import pytest

from support.cli import Cli
from support.variants import rare


@pytest.fixture
def headpond(bootstrap: str) -> Cli:
    return Cli(bootstrap)


def described(headpond: Cli, name: str) -> dict[str, object]:
    (found,) = headpond.ok("topics", "describe", name, "--json").document
    assert isinstance(found, dict)
    return found


def configs(headpond: Cli, name: str) -> dict[str, str]:
    entries = described(headpond, name)["configs"]
    return {one["name"]: one["value"] for one in entries if one["source"] == "dynamic topic"}  # type: ignore[attr-defined]


def test_a_created_topic_is_listed_and_described(headpond: Cli, topic_name: str) -> None:
    said = headpond.ok("topics", "create", topic_name, "--partitions", 3, "--config", "retention.ms=86400000")
    assert said.out == f"created {topic_name} with 3 partitions\n"
    assert topic_name in headpond.ok("topics", "list").out
    listed = {one["name"]: one for one in headpond.ok("topics", "list", "--json").document}
    assert (listed[topic_name]["partitions"], listed[topic_name]["replicas"]) == (3, 1)
    headpond.ok("produce", topic_name, "--partition", 1, stdin="a\nb\n")
    found = described(headpond, topic_name)
    partitions = found["partitions"]
    assert [(one["partition"], one["start_offset"], one["end_offset"]) for one in partitions] == [  # type: ignore[attr-defined]
        (0, 0, 0),
        (1, 0, 2),
        (2, 0, 0),
    ]
    sizes = [one["size_bytes"] for one in partitions]  # type: ignore[attr-defined]
    assert sizes[0] == sizes[2] == 0 < sizes[1]
    assert configs(headpond, topic_name) == {"retention.ms": "86400000"}
    text = headpond.ok("topics", "describe", topic_name).out
    assert "partition  leader  replicas  in sync  start  end  size" in text and "86400000  dynamic topic" in text


def test_a_topic_that_exists_is_no_failure_when_that_is_said(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 2)
    assert "already exists" in headpond("topics", "create", topic_name).failed_with(1)
    again = headpond.ok("topics", "create", topic_name, "--if-not-exists", "--json").document
    assert again == {"name": topic_name, "partitions": 2, "created": False}


def test_settings_and_partitions_change_together(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--config", "retention.ms=1000", "--partitions", 1)
    headpond.ok(
        "topics", "alter", topic_name, "--config", "segment.bytes=2000000", "--delete-config", "retention.ms",
        "--delete-config", "retention.ms", "--partitions", 4,
    )  # fmt: skip
    assert configs(headpond, topic_name) == {"segment.bytes": "2000000"}
    assert len(described(headpond, topic_name)["partitions"]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--config", "retention.mss=1", "--partitions", "9"], "did you mean retention.ms?"),
        rare(
            ["--delete-config", "retention.mss", "--partitions", "9"],
            "no setting retention.mss (did you mean retention.ms?)",
        ),
        rare(["--config", "segment.bytes=2000000", "--delete-config", "nothing.like.it"], "no setting nothing.like.it"),
        rare(["--config", "retention.ms=never", "--partitions", "9"], "retention.ms"),
        (["--config", "segment.bytes=2000000", "--partitions", "2"], "there can only be more"),
    ],
    ids=["a misspelt setting", "a misspelt one deleted", "an unknown one deleted", "a wrong value", "fewer partitions"],
)
def test_a_change_of_which_a_part_is_wrong_changes_nothing(
    headpond: Cli, topic_name: str, change: list[str], says: str
) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 3)
    assert says in headpond("topics", "alter", topic_name, *change).failed_with(1)
    assert configs(headpond, topic_name) == {}
    assert len(described(headpond, topic_name)["partitions"]) == 3  # type: ignore[arg-type]


def test_an_alter_without_a_change_is_a_wrong_command_line(headpond: Cli, topic_name: str) -> None:
    headpond("topics", "alter", topic_name).failed_with(2)
    said = headpond("topics", "alter", topic_name, "--config", "a=1", "--delete-config", "a").failed_with(2)
    assert "can't be set and deleted at once" in said


def test_an_unknown_topic_gets_the_nearest_name(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name)
    wrong = topic_name[:-1]
    for command in (("topics", "describe"), ("topics", "delete"), ("consume",), ("produce",)):
        said = headpond(*command, wrong).failed_with(1)
        assert f"topic {wrong} does not exist (did you mean {topic_name}?)" in said


def test_either_all_topics_are_deleted_or_none(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name)
    headpond("topics", "delete", topic_name, "no-such-topic-anywhere").failed_with(1)
    assert described(headpond, topic_name)["name"] == topic_name
    said = headpond.ok("topics", "delete", "--if-exists", topic_name, "no-such-topic-anywhere", "--json")
    assert said.document == {"deleted": [topic_name]}
    headpond("topics", "describe", topic_name).failed_with(1)


def test_a_wrong_name_or_replication_factor_is_refused_in_one_sentence(headpond: Cli, topic_name: str) -> None:
    headpond("topics", "create", "not a name!").failed_with(1)
    headpond("topics", "create", topic_name, "--replication-factor", 99).failed_with(1)
    assert "should be a whole number above 0" in headpond("topics", "create", "x", "--partitions", "0").failed_with(2)


def test_a_broker_that_is_not_there_is_told_with_what_to_do() -> None:
    nowhere = Cli("127.0.0.1:1")
    for command in (("topics", "list"), ("consume", "t"), ("produce", "t"), ("bench", "produce")):
        said = nowhere(*command).failed_with(1)
        assert "could not reach a broker at 127.0.0.1:1" in said and "HEADPOND_BOOTSTRAP_SERVER" in said
    given = nowhere("topics", "list", "--bootstrap-server", "127.0.0.1:2").failed_with(1)
    assert "127.0.0.1:2" in given and "--bootstrap-server" in given
    # An empty one is a variable that was not set, not a wish for the default.
    assert "no broker is named" in nowhere("topics", "list", "--bootstrap-server", "").failed_with(2)


def test_an_address_that_is_none_is_a_wrong_command_line(headpond: Cli) -> None:
    assert "is no port" in headpond("topics", "list", "-b", "localhost:kafka").failed_with(2)


def test_the_broker_s_own_commands_do_not_mind_the_variable(headpond: Cli) -> None:
    headpond.ok("config")


def test_a_name_that_is_no_text_is_refused(headpond: Cli) -> None:
    said = headpond("topics", "create", os.fsdecode(b"\xff"))
    assert "no UTF-8" in said.failed_with(2)
