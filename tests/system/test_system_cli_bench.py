"""``headpond bench``: what it says adds up, and it leaves nothing behind."""

from __future__ import annotations

import signal

import pytest

from support.cli import Cli
from support.waiting import DEADLINE_S, eventually


@pytest.fixture
def headpond(bootstrap: str) -> Cli:
    return Cli(bootstrap)


def leftovers(headpond: Cli) -> list[str]:
    names = [one["name"] for one in headpond.ok("topics", "list", "--json").document]
    return [name for name in names if name.startswith("headpond-bench-")]


@pytest.mark.parametrize("action", ["produce", "consume"])
def test_it_says_what_it_did_and_removes_its_topic(headpond: Cli, action: str) -> None:
    load = ("--records", "2k", "--record-size", 100, "--batch-size", "4k", "--partitions", 3, "--compression", "lz4")
    found = headpond.ok("bench", action, *load, "--json").document
    assert (found["action"], found["records"], found["load"]["partitions"]) == (action, 2_000, 3)
    assert found["bytes"] == 200_000, "before compression"
    assert found["mb_per_s"] > 0 and found["seconds"] > 0
    latency = list(found["latency_ms"].values())
    assert list(found["latency_ms"]) == ["p50", "p90", "p99", "p99.9", "max"] and latency == sorted(latency)
    assert leftovers(headpond) == []
    text = headpond.ok("bench", action, *load).out
    assert text.startswith(f"{action}: 2,000 records, ") and "p99.9 ms" in text


def test_a_given_topic_gets_exactly_the_records_and_stays(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 2)
    headpond.ok("bench", "produce", "--topic", topic_name, "--records", 1_234, "--record-size", 10)
    lines = headpond.ok("consume", topic_name).out.splitlines()
    assert len(lines) == 1_234 and {len(line) for line in lines} == {10}
    assert headpond.ok("bench", "consume", "--topic", topic_name, "--json").document["records"] == 1_234


def test_a_compacted_topic_gets_records_with_keys(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 1, "--config", "cleanup.policy=compact,delete")
    load = ("--records", 25, "--record-size", 100, "--batch-size", 1_200)
    assert headpond.ok("bench", "produce", "--topic", topic_name, *load, "--json").document["bytes"] == 2_500
    records = headpond.ok("consume", topic_name, "--json").lines
    assert len(records) == 25 and {record["key"] for record in records} == {str(number) for number in range(10)}


def test_no_more_records_are_counted_than_were_asked_for(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 1)
    headpond.ok("produce", topic_name, "-q", stdin="one\ntwo\nthree\n")
    whole = headpond.ok("bench", "consume", "--topic", topic_name, "--json").document
    part = headpond.ok("bench", "consume", "--topic", topic_name, "--records", 1, "--json").document
    assert (whole["records"], part["records"]) == (3, 1)
    assert part["bytes"] == whole["bytes"] // 3


def test_an_empty_topic_can_t_be_read(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name)
    assert "is empty" in headpond("bench", "consume", "--topic", topic_name).failed_with(1)


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_the_middle_removes_the_topic(headpond: Cli, with_signal: signal.Signals, code: int) -> None:
    process = headpond.start("bench", "produce", "--records", "100M", "--rate", 100, "--batch-size", 1)
    try:
        eventually(lambda: leftovers(headpond), what="the topic of the test")
        process.send_signal(with_signal)
        _, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code and b"Traceback" not in err
    assert leftovers(headpond) == []


def test_with_nohup_a_closed_terminal_ends_nothing(headpond: Cli) -> None:
    process = headpond.start(
        *("bench", "produce", "--records", "100M", "--rate", 100, "--batch-size", 1),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )

    def written() -> int:
        (topic,) = headpond.ok("topics", "describe", *leftovers(headpond), "--json").document
        return sum(one["end_offset"] for one in topic["partitions"])

    try:
        eventually(lambda: leftovers(headpond) and written(), what="the first records")
        process.send_signal(signal.SIGHUP)
        before = written()
        eventually(lambda: written() > before + 100, what="a second's records more")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 143
