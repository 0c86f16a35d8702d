"""Kafka Streams: repartition topics, state stores with changelogs, windows and joins, and exactly once while the broker
and the application are killed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from headpond.testing import Record, StoredRecord
from interop.frameworks import Framework, Frameworks, held_back
from support.broker import BrokerProcess
from support.cli import Cli
from support.waiting import eventually

pytestmark = pytest.mark.interop

HOUR_MS = 3_600_000
FIRST_HOUR = int(time.time() * 1000) // HOUR_MS - 5
"""Recent: the changelog of a window store has a retention."""
QUICK = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
"""Streams does not leave its group when it is closed: its successor waits for this."""
WORDS_PER_LINE = 3


@pytest.fixture
def broker(frameworks: Frameworks) -> Iterator[BrokerProcess]:
    settings = {"group.initial.rebalance.delay.ms": 0, "log.cleaner.backoff.ms": 500, "log.retention.ms": -1}
    process = BrokerProcess(frameworks.folder / "broker", settings=settings)
    try:
        process.start()
        for topic in ("lines", "counts", "hours", "people", "orders", "joined"):
            process.create_topic(f"app-{topic}", partitions=2)
        yield process
        process.stop()
        assert "Traceback" not in process.logs(), process.logs()
    finally:
        process.close()


def write_lines(broker: BrokerProcess, first: int, end: int, *, hour: int = 0) -> None:
    """Numbered, each with three words, one of them the same in all."""
    lines = [
        Record(f"all odd{n % 2} word{n % 7}", key=str(n % 5), timestamp_ms=(FIRST_HOUR + hour) * HOUR_MS + n)
        for n in range(first, end)
    ]
    broker.produce("app-lines", lines)


def counts(broker: BrokerProcess, application: Framework, lines: int) -> dict[str, list[int]]:
    """What was said of each word, in its order, when all of that many lines are counted."""
    found = defaultdict(list)
    for record in application.written(broker, "app-counts", lines * WORDS_PER_LINE):
        found[as_text(record.key)].append(int(as_text(record.value)))
    return found


def counted_once(lines: int) -> dict[str, list[int]]:
    words = [word for n in range(lines) for word in ("all", f"odd{n % 2}", f"word{n % 7}")]
    return {word: list(range(1, words.count(word) + 1)) for word in words}


def as_text(data: Any) -> str:
    assert isinstance(data, bytes)
    return data.decode()


def pairs(records: list[StoredRecord]) -> list[tuple[str, str]]:
    return sorted((as_text(record.key), as_text(record.value)) for record in records)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_application_that_lost_its_store_counts_on_from_the_changelog(
    frameworks: Frameworks, broker: BrokerProcess, guarantee: str
) -> None:
    write_lines(broker, 0, 100)
    application = frameworks.streams(broker, "app", "state-1", processing_guarantee=guarantee, **QUICK)
    assert counts(broker, application, 100) == counted_once(100)
    assert application.end() == 0
    write_lines(broker, 100, 200)
    application = frameworks.streams(broker, "app", "state-2", processing_guarantee=guarantee, **QUICK)
    assert counts(broker, application, 200) == counted_once(200)
    assert application.end() == 0


def test_every_word_is_counted_exactly_once_while_broker_and_application_are_killed(
    frameworks: Frameworks, broker: BrokerProcess
) -> None:
    # Compaction takes part: the store is restored from a changelog that it has been through.
    compacted = {"topic_segment_ms": 1_000, "topic_min_cleanable_dirty_ratio": 0.01}
    settings = {"processing_guarantee": "exactly_once_v2", "commit_interval_ms": 1_000, **QUICK, **compacted}
    application = frameworks.streams(broker, "app", "state", **settings)
    application.until(lambda: '"RUNNING"' in application.log(), "it runs")
    lines = 0
    for _ in range(4):
        for _ in range(5):
            write_lines(broker, lines, lines + 200)
            lines += 200
        application.written(broker, "app-counts", (lines - 900) * WORDS_PER_LINE)  # and the rest is on its way
        broker.restart(kill=True)
    counts(broker, application, lines)
    write_lines(broker, lines, lines + 200)
    lines += 200
    application.kill_in_a_transaction(broker, "app-counts")
    application = frameworks.streams(broker, "app", "state", **settings)
    assert counts(broker, application, lines) == counted_once(lines)
    assert application.end() == 0
    assert counts(broker, application, lines) == counted_once(lines), "and nothing came after"
    assert held_back(broker, "app-counts"), "what was aborted"


def test_windows_close_tables_are_joined_and_what_was_repartitioned_is_purged(
    frameworks: Frameworks, broker: BrokerProcess
) -> None:
    broker.produce("app-people", [("1", "anna"), ("2", "bob")])
    application = frameworks.streams(broker, "app", "state", **QUICK)
    application.until(lambda: '"RUNNING"' in application.log(), "it runs")
    broker.produce("app-orders", [("1", "apples"), ("2", "bread"), ("3", "for nobody")])
    for hour, (first, end) in enumerate([(0, 14), (14, 42), (42, 56)]):  # the last closes the windows of those before
        write_lines(broker, first, end, hour=hour)
        counts(broker, application, end)
    words = ["all", "odd0", "odd1", *(f"word{n}" for n in range(7))]
    hours = pairs(application.written(broker, "app-hours", 2 * len(words)))
    lines_with = {"all": 14, "odd0": 7, "odd1": 7}
    assert hours == sorted(
        (f"{word}@{FIRST_HOUR + hour}", str((hour + 1) * lines_with.get(word, 2))) for word in words for hour in (0, 1)
    )
    joined = pairs(application.written(broker, "app-joined", 2))
    assert joined == [("1", "anna ordered apples"), ("2", "bob ordered bread")]
    eventually(lambda: kept(broker) == 0, what="the repartition topic to be purged")
    assert policy(broker, "app-counts-changelog") == "compact"
    assert policy(broker, "app-hourly-changelog") == "compact,delete"
    assert application.end() == 0


def kept(broker: BrokerProcess) -> int:
    """Records in the repartition topic that are not deleted yet."""
    partitions = described(broker, "app-words-repartition")["partitions"]
    assert sum(each["end_offset"] for each in partitions)
    return sum(each["end_offset"] - each["start_offset"] for each in partitions)


def policy(broker: BrokerProcess, topic: str) -> str:
    return next(each["value"] for each in described(broker, topic)["configs"] if each["name"] == "cleanup.policy")


def described(broker: BrokerProcess, topic: str) -> Any:
    return Cli(broker.bootstrap_servers).ok("topics", "describe", topic, "--json").document[0]
