"""``headpond produce`` and ``consume`` against a running broker: every way in and out, bad lines, signals, pipes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from support.cli import Cli
from support.variants import rare
from support.waiting import DEADLINE_S, eventually


@pytest.fixture
def headpond(bootstrap: str) -> Cli:
    return Cli(bootstrap)


@pytest.fixture
def orders(headpond: Cli, topic_name: str) -> str:
    headpond.ok("topics", "create", topic_name, "--partitions", 2)
    return topic_name


@pytest.fixture
def started(headpond: Cli) -> Iterator[Any]:
    """Commands that run until the test, or this, ends them."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        running.append(headpond.start(*arguments, **options))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def consumed(headpond: Cli, topic: str, *arguments: object) -> list[dict[str, Any]]:
    return headpond.ok("consume", topic, "--json", *arguments).lines


# --- in and out -------------------------------------------------------------------------------------------------------


def test_lines_go_in_and_come_out(headpond: Cli, orders: str) -> None:
    said = headpond.ok("produce", orders, "--partition", 0, stdin="one\ntwo\r\n\nlast")
    assert said.err == f"4 records written to {orders} (partition 0: offsets 0 to 3)\n" and said.out == ""
    assert headpond.ok("consume", orders).out == "one\ntwo\n\nlast\n"


def test_keys_headers_and_the_rest_are_shown_when_asked_for(headpond: Cli, orders: str) -> None:
    headpond.ok("produce", orders, "-k", "=>", "--header", "a=1", "--header", "b=x=y", stdin="k=>v=>w\n")
    (record,) = consumed(headpond, orders)
    assert (record["key"], record["value"]) == ("k", "v=>w")
    assert record["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": "x=y"}]
    line = headpond.ok("consume", orders, "--show-key", "--show-headers", "--show-offset", "--separator", "|").out
    assert line == f"{record['partition']}:0|a=1,b=x=y|k|v=>w\n"
    assert headpond.ok("consume", orders, "--show-timestamp").out.split("\t")[0].endswith("Z")


def test_json_lines_say_everything_about_a_record(headpond: Cli, orders: str) -> None:
    given = [
        {"key": "k", "value": "text", "partition": 1, "timestamp": 1_700_000_000_000, "headers": {"h": "x"}},
        {"value": {"n": 1}, "partition": 1},
        {"key": "k", "value": None, "partition": 1},
        {"value_base64": "/wA=", "partition": 1, "headers": [{"key": "h", "value": None}]},
    ]
    headpond.ok("produce", orders, "--json", stdin="\n".join(map(json.dumps, given)))
    first, second, third, fourth = consumed(headpond, orders)
    assert first["timestamp"] == 1_700_000_000_000 and first["headers"] == [{"key": "h", "value": "x"}]
    assert second["value"] == '{"n": 1}' and second["key"] is None
    assert (third["key"], third["value"]) == ("k", None)
    assert fourth["value_base64"] == "/wA=" and fourth["headers"] == [{"key": "h", "value": None}]
    assert {one["partition"] for one in (first, second, third, fourth)} == {1}


def test_a_topic_copied_through_json_is_the_same_byte_for_byte(headpond: Cli, orders: str) -> None:
    rows = [
        {"key_base64": "gIE=", "value": "é\n\u0000", "headers": [{"key_base64": "/w==", "value_base64": "/g=="}]},
        {"key": "", "value": None},
        {"key": None, "value": ""},
    ]
    headpond.ok("produce", orders, "--json", stdin="\n".join(map(json.dumps, rows)))
    copy = f"{orders}-copy"
    headpond.ok("topics", "create", copy, "--partitions", 2)
    before = headpond.ok("consume", orders, "--json").out
    headpond.ok("produce", copy, "--json", "--compression", "gzip", stdin=before)
    forget = {"topic": None}
    by_place = [
        sorted(
            ({**one, **forget} for one in consumed(headpond, name)), key=lambda one: (one["partition"], one["offset"])
        )
        for name in (orders, copy)
    ]
    assert by_place[0] == by_place[1] and len(by_place[0]) == 3


@pytest.mark.parametrize(
    ("acks", "compression"),
    [rare("all", "none"), rare("1", "gzip"), ("0", "snappy"), ("all", "lz4"), rare("1", "zstd")],
)
def test_every_acks_and_compression_arrives(headpond: Cli, orders: str, acks: str, compression: str) -> None:
    said = headpond.ok("produce", orders, "--acks", acks, "--compression", compression, stdin="x\n" * 500)
    assert said.err.startswith(f"500 records {'sent' if acks == '0' else 'written'} to")
    eventually(lambda: headpond.ok("consume", orders).out == "x\n" * 500, what="500 records")


def test_a_missing_topic_is_created_only_when_asked_for(headpond: Cli, topic_name: str) -> None:
    assert "--create makes it" in headpond("produce", topic_name, stdin="x").failed_with(1)
    assert topic_name not in headpond.ok("topics", "list").out
    headpond.ok("produce", topic_name, "--create", "-q", stdin="x")
    headpond.ok("produce", topic_name, "--create", "-q", stdin="y")
    assert sorted(headpond.ok("consume", topic_name).out.split()) == ["x", "y"]


# --- where to start ---------------------------------------------------------------------------------------------------


def test_reading_starts_where_it_is_told_to(headpond: Cli, orders: str) -> None:
    rows = [{"value": str(n), "partition": 0, "timestamp": 1_700_000_000_000 + n * 1_000} for n in range(10)]
    headpond.ok("produce", orders, "--json", stdin="\n".join(map(json.dumps, rows)))

    def values(*arguments: object) -> str:
        return headpond.ok("consume", orders, *arguments).out.replace("\n", "")

    assert values() == values("--from-beginning") == values("--offset", "earliest") == "0123456789"
    assert values("--offset", 7) == "789"
    assert values("--offset", -3) == "789"
    assert values("--offset", -100) == "0123456789"
    assert values("--offset", 10) == values("--offset", "latest") == ""
    assert values("--timestamp", 1_700_000_007_500) == "89"
    assert values("--timestamp", "2023-11-14T22:13:28Z") == values("--timestamp", "2023-11-14T23:13:28+01:00") == "89"
    assert values("--timestamp", "2040-01-01") == values("--timestamp", (1 << 63) - 1) == ""
    assert values("--timestamp", "1900-01-01") == values("--timestamp", "1969-12-31T23:59:59.999Z") == "0123456789"
    assert values("--max-messages", 4) == "0123"
    assert values("--partition", 1) == ""


def test_follow_prints_what_comes_from_now_on(headpond: Cli, orders: str, started: Any) -> None:
    headpond.ok("produce", orders, "-q", stdin="before\n")
    process = started("consume", orders, "--follow", "--max-messages", 2)
    # It reads from the end: what is written before it has found that end is not for it, so write until it prints.
    reader = process.stdout
    os.set_blocking(reader.fileno(), False)
    seen = b""

    def two_lines() -> bool:
        nonlocal seen
        if process.poll() is None:
            headpond.ok("produce", orders, "-q", stdin="after\n")
        seen += reader.read() or b""
        return seen.count(b"\n") >= 2

    eventually(two_lines, what="two lines")
    assert seen == b"after\nafter\n" and process.wait(DEADLINE_S) == 0


def test_follow_from_the_beginning_goes_on(headpond: Cli, orders: str, started: Any) -> None:
    headpond.ok("produce", orders, "-q", stdin="old\n")
    process = started("consume", orders, "-f", "--from-beginning", "-n", 2)
    assert process.stdout.readline() == b"old\n"
    headpond.ok("produce", orders, "-q", stdin="new\n")
    assert process.stdout.readline() == b"new\n" and process.wait(DEADLINE_S) == 0


def test_lines_are_written_as_they_come(headpond: Cli, orders: str, started: Any) -> None:
    process = started("produce", orders)
    process.stdin.write(b"first\n")
    process.stdin.flush()
    eventually(lambda: headpond.ok("consume", orders).out == "first\n", what="the first line, with stdin still open")
    process.stdin.close()
    assert process.wait(DEADLINE_S) == 0


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{bad", "invalid JSON"),
        rare("[1]", "it should be an object"),
        rare('{"key": "k"}', "it has no value"),
        rare('{"vaule": 1}', "did you mean value?"),
        ('{"value": "x", "partition": 7}', "has no partition 7"),
        rare('{"value": "x", "partition": "0"}', "partition should be a whole number"),
        rare('{"value": "x", "timestamp": -5}', "timestamp should be a whole number"),
        rare('{"value_base64": "!"}', "value_base64 is no base64"),
        rare('{"value": "x", "value_base64": "eA=="}', "it has both value and value_base64"),
        rare('{"value": "x", "headers": 3}', "headers should be"),
        ("", "the line is empty"),
        pytest.param(
            '{"value": ' + "[" * 3_000 + "]" * 3_000 + "}", "nested too deeply", id="deep", marks=pytest.mark.long
        ),
    ],
)
def test_a_bad_line_is_named_and_exactly_those_before_it_are_written(
    headpond: Cli, orders: str, line: str, says: str
) -> None:
    good = '{"value": "good"}\n'
    said = headpond("produce", orders, "--json", stdin=good * 2 + line + "\n" + good * 5).failed_with(1)
    assert says in said and "line 3: " in said
    assert f"2 records written to {orders}, nothing from line 3 on" in said
    assert headpond.ok("consume", orders).out == "good\n" * 2


def test_a_first_line_that_is_bad_writes_nothing(headpond: Cli, orders: str) -> None:
    assert "nothing was written" in headpond("produce", orders, "-k", ":", stdin="no separator\na:b\n").failed_with(1)
    assert headpond.ok("consume", orders).out == ""


def test_a_record_that_the_broker_refuses_is_named_with_its_line(headpond: Cli, topic_name: str) -> None:
    headpond.ok("topics", "create", topic_name, "--config", "max.message.bytes=1000")
    said = headpond("produce", topic_name, stdin="a\n" + "x" * 5_000 + "\n").failed_with(1)
    assert "line 2" in said and "1 record written" in said and "1 refused" in said
    assert headpond.ok("consume", topic_name).out == "a\n"


@pytest.mark.parametrize("partitions", [(0, 0, 0), (0, 1, 0)], ids=["beside it", "with another partition between"])
def test_the_line_that_the_broker_minds_is_named_and_not_one_that_was_in_its_batch(
    headpond: Cli, topic_name: str, partitions: tuple[int, int, int]
) -> None:
    headpond.ok("topics", "create", topic_name, "--partitions", 2, "--config", "cleanup.policy=compact")
    rows: list[dict[str, Any]] = [{"key": "k", "value": str(number)} for number in range(3)]
    del rows[2]["key"]
    lines = [json.dumps({**row, "partition": partition}) for row, partition in zip(rows, partitions, strict=True)]
    said = headpond("produce", topic_name, "--json", stdin="\n".join(lines)).failed_with(1)
    assert f"line 3: {topic_name}-0: " in said and "without key" in said
    assert f"{partitions.count(0)} refused" in said


def test_a_wrong_partition_is_told_with_those_that_exist(headpond: Cli, orders: str) -> None:
    for command in ("consume", "produce"):
        said = headpond(command, orders, "--partition", 7).failed_with(1)
        assert "has no partition 7: it has partitions 0 to 1" in said
    assert "ends at offset 0" in headpond("consume", orders, "--partition", 0, "--offset", 5).failed_with(1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--offset", "soon"],
        ["--timestamp", "yesterday"],
        ["--timestamp", "99999999999999999999"],
        ["--from-beginning", "--offset", "3"],
        ["--max-messages", "0"],
        ["--partition", "-1"],
        ["--jsno"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_refused_before_anything_is_done(headpond: Cli, arguments: list[str]) -> None:
    assert "--help shows how" in headpond("consume", "anything", *arguments).failed_with(2)


# --- signals and pipes ------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_a_follower_quietly_with_130(headpond: Cli, orders: str, started: Any) -> None:
    headpond.ok("produce", orders, "-q", stdin="x\n")
    process = started("consume", orders, "--follow", "--from-beginning")
    assert process.stdout.readline() == b"x\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_writing_tells_what_was_written(
    headpond: Cli, orders: str, started: Any, with_signal: signal.Signals, code: int
) -> None:
    process = started("produce", orders)
    process.stdin.write(b"one\ntwo\nhalf a li")
    process.stdin.flush()
    eventually(lambda: headpond.ok("consume", orders).out.count("\n") == 2, what="two records")
    process.send_signal(with_signal)
    process.wait(DEADLINE_S)
    assert process.returncode == code
    assert process.stderr.read().decode() == f"headpond: stopped: 2 records written to {orders}\n"
    assert sorted(headpond.ok("consume", orders).out.split()) == ["one", "two"]


def test_a_reader_that_has_seen_enough_is_no_failure(headpond: Cli, orders: str, started: Any) -> None:
    headpond.ok("produce", orders, "-q", "--partition", 0, stdin="x" * 1_000 + "\n" + ("y" * 1_000 + "\n") * 2_000)
    process = started("consume", orders)
    assert process.stdout.readline() == b"x" * 1_000 + b"\n"
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(DEADLINE_S) == 0


def test_a_follower_ends_when_its_reader_has_gone_though_nothing_more_is_written(
    headpond: Cli, orders: str, started: Any
) -> None:
    headpond.ok("produce", orders, "-q", stdin="x\n")
    process = started("consume", orders, "--follow", "--from-beginning")
    assert process.stdout.readline() == b"x\n"
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait(DEADLINE_S) == 0


def test_a_broker_that_goes_away_is_told_with_the_count(fresh_broker: Any, started: Any) -> None:
    headpond = Cli(fresh_broker.bootstrap_servers)
    headpond.ok("topics", "create", "orders")
    process = headpond.start("produce", "orders", "--timeout", 2)
    try:
        process.stdin.write(b"one\n")
        process.stdin.flush()
        eventually(lambda: headpond.ok("consume", "orders").out == "one\n", what="the first record")
        fresh_broker.kill()
        out, err = process.communicate(b"two\n", timeout=DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1 and out == b"" and b"Traceback" not in err
    assert len(err.splitlines()) == 1 and b"line 2: " in err and b"1 record written to orders" in err
