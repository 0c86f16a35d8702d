"""The four config APIs against what a real Kafka 4.3.1 answered to the same requests (see the JSON file beside)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.configs import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from headpond.broker.requests.context import Context, ListenerInfo
from headpond.broker.requests.pacing import Pacing
from headpond.config.dynamic import APPEND, DELETE, SET, check_topic
from headpond.config.effective import Effective
from headpond.coordination.slices import Slices
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.codec import decoder, encoder
from headpond.protocol.schema.alter_configs import AlterConfigsRequest
from headpond.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headpond.protocol.schema.list_config_resources import ListConfigResourcesRequest
from headpond.runtime.clock import SystemClock
from simulation.harness.workers import SimulatedWorkers

KAFKA = json.loads((Path(__file__).parent / "kafka-4.3.1-config-answers.json").read_text())
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

# What we answer otherwise, and why.
OTHERWISE = {
    "ELR": "a feature that is not finalized here guards min.insync.replicas",
    "thread": "Kafka's thread pools do not exist here, so their counts are not bounded",
    "/ by zero": "a slip of Kafka's with log.cleaner.threads=0",
    "[listeners]": "the listeners cannot change while running, neither for one broker nor for all",
    "org.apache": "a logger of Kafka's own",
    "NaN": "a number that is in every range: refused",
}


class FakeImage:
    """What the handlers read of the metadata image."""

    def __init__(self) -> None:
        self.topics: dict[str, object] = {"cfg-a": object(), "cfg-b": object()}
        self.brokers: dict[int, object] = {1: object()}
        self.stored: dict[tuple[str, str], Mapping[str, str]] = {}

    def configs(self, kind: str, name: str) -> Mapping[str, str]:
        return self.stored.get((kind, name), {})

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs("topic", name)

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        return self.configs("broker", "" if broker_id is None else str(broker_id))

    def configured(self, kind: str) -> list[str]:
        return sorted(name for stored_kind, name in self.stored if stored_kind == kind)


class FakeMetadataWriter:
    """Commits at once; ``meanwhile`` is what somebody else does between the check and the commit."""

    def __init__(self, image: FakeImage) -> None:
        self.image = image
        self.meanwhile: Callable[[], None] = lambda: None

    async def alter_configs(
        self, kind: str, name: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:
        self.meanwhile()
        if kind == "topic" and name not in self.image.topics:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        after = dict(change(self.image.configs(kind, name)))
        self.image.stored[kind, name] = after
        if not after:
            del self.image.stored[kind, name]


class World:
    def __init__(self, static: Mapping[str, str] | None = None) -> None:
        self.image = FakeImage()
        self.metadata_writer = FakeMetadataWriter(self.image)
        settings = Effective(static or {}).settings
        clock = SystemClock()
        slices = Slices(clock, SimulatedWorkers(clock))
        self.broker: Any = SimpleNamespace(
            settings=settings,
            image=self.image,
            metadata_writer=self.metadata_writer,
            clock=clock,
            pacing=Pacing(slices),
        )

    def context(self, version: int) -> Context:
        return Context(self.broker, ListenerInfo("PLAINTEXT", "PLAINTEXT", "h", 1), version)

    def alter(self, *resources: Any, validate_only: bool = False) -> list[list[Any]]:
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(
                    resource_type=type_,
                    resource_name=name,
                    configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in configs],
                )
                for type_, name, configs in resources
            ],
            validate_only=validate_only,
        )
        answer = asyncio.run(alter_configs.handle(self.context(2), request))
        return [[r.resource_type, r.resource_name, r.error_code, r.error_message] for r in answer.responses]

    def increment(self, *resources: Any, validate_only: bool = False) -> list[list[Any]]:
        alterable = IncrementalAlterConfigsRequest.AlterableConfig
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(
                    resource_type=type_,
                    resource_name=name,
                    configs=[alterable(name=key, config_operation=op, value=value) for key, op, value in configs],
                )
                for type_, name, configs in resources
            ],
            validate_only=validate_only,
        )
        answer = asyncio.run(incremental_alter_configs.handle(self.context(1), request))
        return [[r.resource_type, r.resource_name, r.error_code, r.error_message] for r in answer.responses]

    def describe(self, *resources: Any, synonyms: bool = False, docs: bool = False) -> DescribeConfigsResponse:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=type_, resource_name=name, configuration_keys=keys
                )
                for type_, name, keys in resources
            ],
            include_synonyms=synonyms,
            include_documentation=docs,
        )
        return asyncio.run(describe_configs.handle(self.context(4), request))

    def value(self, type_: int, name: str, key: str) -> str | None:
        [entry] = self.describe((type_, name, [key])).results[0].configs
        return entry.value

    def listed(self, version: int, *types: int) -> list[tuple[str, int]]:
        request = ListConfigResourcesRequest(resource_types=list(types))
        answer = asyncio.run(list_config_resources.handle(self.context(version), request))
        if answer.error_code:
            return [("error", answer.error_code)]
        return [(each.resource_name, each.resource_type) for each in answer.config_resources]


@pytest.fixture
def loggers_restored() -> Iterator[None]:
    level = logging.root.level
    yield
    logging.root.setLevel(level)
    logging.getLogger("headpond.server").setLevel(logging.NOTSET)


def comparable(kind: str) -> list[Any]:
    return [
        pytest.param(asked, answered, id=str(asked)[:90])
        for asked, answered in KAFKA[kind]
        if not any(word in str(asked) + str(answered) for word in OTHERWISE)
    ]


@pytest.mark.parametrize(("asked", "answered"), comparable("create"))
def test_a_topics_settings_are_checked_as_kafka_checks_them(asked: dict[str, str | None], answered: list[Any]) -> None:
    try:
        check_topic(asked, Effective())
        result: list[Any] = [0, None]
    except BrokerError as error:
        result = [error.code, error.message]
    assert result == answered


@pytest.mark.parametrize(("asked", "answered"), comparable("alter"))
def test_alter_configs_answers_as_kafka(asked: list[Any], answered: list[Any]) -> None:
    got = World().alter(*asked, validate_only=True)
    assert [_sorted_names(row) for row in got] == [_sorted_names(row) for row in answered]


@pytest.mark.parametrize(("asked", "answered"), comparable("incremental"))
def test_incremental_alter_configs_answers_as_kafka(asked: list[Any], answered: list[Any]) -> None:
    if answered[0][2] == ErrorCode.UNKNOWN_SERVER_ERROR:  # an operation that does not exist, on a topic
        answered = [[*answered[0][:2], ErrorCode.INVALID_REQUEST, "Unknown operations type 9"]]
    assert World().increment(*asked, validate_only=True) == answered


@pytest.mark.parametrize(("asked", "answered"), comparable("describe"))
def test_describe_configs_answers_as_kafka(asked: list[Any], answered: list[Any]) -> None:
    results = World().describe(*asked).results
    assert [[r.resource_type, r.resource_name, r.error_code, r.error_message] for r in results] == answered


def _sorted_names(row: list[Any]) -> list[Any]:
    """Kafka lists several names in no order."""
    head, bracket, names = (row[3] or "").partition(": [")
    return [*row[:3], head, sorted(names.rstrip("]").split(", ")) if bracket else None]


def test_a_resource_that_is_named_twice_is_refused_each_time_and_its_neighbour_is_not() -> None:
    world = World()
    twice = "Each resource must appear at most once."
    assert world.alter((TOPIC, "cfg-a", []), (TOPIC, "cfg-b", []), (TOPIC, "cfg-a", [])) == [
        [TOPIC, "cfg-a", 42, twice],
        [TOPIC, "cfg-b", 0, None],
        [TOPIC, "cfg-a", 42, twice],
    ]


def test_one_resources_failure_is_its_own_and_its_change_all_or_nothing() -> None:
    world = World()
    answers = world.increment(
        (TOPIC, "cfg-a", [("retention.ms", SET, "5"), ("segment.bytes", SET, "1")]),
        (TOPIC, "cfg-b", [("retention.ms", SET, "6")]),
    )
    assert [answer[2] for answer in answers] == [40, 0]
    assert world.image.stored == {("topic", "cfg-b"): {"retention.ms": "6"}}


def test_validate_only_changes_nothing() -> None:
    world = World()
    assert world.increment((TOPIC, "cfg-a", [("retention.ms", SET, "5")]), validate_only=True)[0][2] == 0
    assert world.alter((BROKER, "1", [("log.retention.ms", "5")]), validate_only=True)[0][2] == 0
    assert world.image.stored == {}


def test_alter_configs_replaces_everything_and_incremental_only_what_it_names() -> None:
    world = World()
    world.alter((TOPIC, "cfg-a", [("retention.ms", "5"), ("segment.ms", "7")]))
    world.increment((TOPIC, "cfg-a", [("retention.ms", SET, "6"), ("cleanup.policy", APPEND, "compact")]))
    assert world.image.stored["topic", "cfg-a"] == {
        "retention.ms": "6", "segment.ms": "7", "cleanup.policy": "delete,compact"
    }  # fmt: skip
    world.alter((TOPIC, "cfg-a", [("flush.ms", "8")]))
    assert world.image.stored["topic", "cfg-a"] == {"flush.ms": "8"}
    world.increment((TOPIC, "cfg-a", [("flush.ms", DELETE, None)]))
    assert world.image.stored == {}


def test_a_change_that_somebody_else_made_meanwhile_is_kept() -> None:
    world = World()

    def somebody_else() -> None:
        world.image.stored["topic", "cfg-a"] = {"segment.ms": "7"}

    world.metadata_writer.meanwhile = somebody_else
    world.increment((TOPIC, "cfg-a", [("retention.ms", SET, "6")]))
    assert world.image.stored["topic", "cfg-a"] == {"segment.ms": "7", "retention.ms": "6"}


def test_a_change_is_checked_again_against_what_somebody_else_made_meanwhile() -> None:
    world = World()

    def somebody_else() -> None:
        world.image.stored["topic", "cfg-a"] = {"max.compaction.lag.ms": "5"}

    world.metadata_writer.meanwhile = somebody_else
    [answer] = world.increment((TOPIC, "cfg-a", [("min.compaction.lag.ms", SET, "6")]))
    assert answer[2] == ErrorCode.INVALID_CONFIG
    assert world.image.stored["topic", "cfg-a"] == {"max.compaction.lag.ms": "5"}


def test_a_topic_that_is_deleted_meanwhile_is_told_as_not_existing() -> None:
    world = World()
    world.metadata_writer.meanwhile = lambda: world.image.topics.clear()
    assert world.increment((TOPIC, "cfg-a", [("retention.ms", SET, "6")])) == [
        [TOPIC, "cfg-a", 3, "The topic 'cfg-a' does not exist."]
    ]


def test_dynamic_broker_settings_reach_topics_and_this_brokers_beat_those_of_all() -> None:
    world = World()
    world.increment((BROKER, "", [("log.retention.ms", SET, "5000")]))
    assert world.value(TOPIC, "cfg-a", "retention.ms") == "5000"
    world.increment((BROKER, "1", [("log.retention.ms", SET, "6000")]))
    assert world.value(TOPIC, "cfg-a", "retention.ms") == "6000"
    [result] = world.describe((BROKER, "", None)).results
    assert [(entry.name, entry.value) for entry in result.configs] == [("log.retention.ms", "5000")]


def test_a_misspelt_setting_of_ours_is_refused_though_kafka_takes_any_name() -> None:
    world = World()
    assert world.increment((BROKER, "1", [("headpond.flsh", SET, "os")]))[0][2:] == [
        40, "Unknown config name: headpond.flsh"
    ]  # fmt: skip
    assert world.increment((BROKER, "1", [("my.own.plugin", SET, "x")]))[0][2] == 0
    [entry] = world.describe((BROKER, "1", ["my.own.plugin"])).results[0].configs
    assert (entry.value, entry.is_sensitive, entry.config_source) == (None, True, 2)


def test_the_listeners_cannot_be_changed_while_running() -> None:
    [answer] = World().increment((BROKER, "1", [("listeners", SET, "PLAINTEXT://:1")]))
    assert answer[2:] == [42, "Cannot update these configs dynamically: [listeners]"]


def test_documentation_and_synonyms_come_only_when_asked_for() -> None:
    world = World()
    [plain] = world.describe((TOPIC, "cfg-a", ["cleanup.policy"])).results[0].configs
    assert (plain.documentation, plain.synonyms) == (None, [])
    [full] = world.describe((TOPIC, "cfg-a", ["cleanup.policy"]), synonyms=True, docs=True).results[0].configs
    assert full.documentation is not None and full.documentation.startswith("What happens to old records")
    assert [(each.name, each.value, each.source) for each in full.synonyms] == [("log.cleanup.policy", "delete", 5)]
    for type_, name in ((BROKER, "1"), (GROUP, "g"), (METRICS, "m"), (LOGGER, "1")):
        [result] = world.describe((type_, name, None), docs=True).results
        assert result.configs and all(entry.documentation is not None for entry in result.configs)


def test_a_static_secret_is_never_shown() -> None:
    world = World({"ssl.key.password": "hunter2"})
    [entry] = world.describe((BROKER, "1", ["ssl.key.password"]), synonyms=True).results[0].configs
    assert (entry.value, entry.is_sensitive, entry.config_source) == (None, True, 4)
    assert [(each.value, each.source) for each in entry.synonyms] == [(None, 4)]


def test_loggers_are_described_and_changed_until_the_next_start(loggers_restored: None) -> None:
    world = World()
    logging.getLogger("headpond.server")
    assert world.increment((LOGGER, "1", [("root", SET, "WARN"), ("headpond.server", SET, "TRACE")]))[0][2] == 0
    entries = {entry.name: entry for entry in world.describe((LOGGER, "1", None)).results[0].configs}
    assert (entries["root"].value, entries["root"].config_source) == ("WARN", 6)
    assert entries["headpond.server"].value == "TRACE"
    assert world.increment((LOGGER, "1", [("headpond.server", DELETE, None)]))[0][2] == 0
    assert world.value(LOGGER, "1", "headpond.server") == "WARN"
    assert world.image.stored == {}


def test_loggers_are_not_changed_when_one_of_the_changes_is_wrong(loggers_restored: None) -> None:
    world = World()
    before = logging.root.level
    assert world.increment((LOGGER, "1", [("root", SET, "INFO"), ("no.such", SET, "INFO")]))[0][2] == 40
    assert world.increment((LOGGER, "1", [("root", SET, "INFO")]), validate_only=True)[0][2] == 0
    assert logging.root.level == before


def test_a_stored_value_that_cannot_be_is_an_error_of_that_resource_only() -> None:
    world = World()
    world.image.stored["topic", "cfg-a"] = {"retention.ms": "soon"}
    broken, fine = world.describe((TOPIC, "cfg-a", None), (TOPIC, "cfg-b", None)).results
    assert (broken.error_code, broken.configs) == (ErrorCode.INVALID_CONFIG, [])
    assert (fine.error_code, len(fine.configs)) == (0, 34)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_description_can_be_sent_in_every_version(version: int) -> None:
    answer = World().describe(
        *((kind, "1", None) for kind in (BROKER, LOGGER, METRICS, GROUP)), synonyms=True, docs=True
    )
    sent = encoder(DescribeConfigsResponse, version)(answer)
    received, _ = decoder(DescribeConfigsResponse, version)(sent, 0)
    assert [len(result.configs) for result in received.results] == [len(result.configs) for result in answer.results]
    assert received.results[0].configs[0].name == "add.partitions.to.txn.retry.backoff.max.ms"


def test_list_config_resources_names_what_can_have_settings() -> None:
    world = World()
    everything = [("1", LOGGER), ("1", BROKER), ("cfg-a", TOPIC), ("cfg-b", TOPIC)]
    assert world.listed(1) == everything
    assert world.listed(0) == []
    world.increment((METRICS, "m", [("interval.ms", SET, "1000")]))
    world.increment((GROUP, "g", [("consumer.session.timeout.ms", SET, "46000")]))
    assert world.listed(0) == [("m", METRICS)]
    assert world.listed(1) == [("g", GROUP), ("m", METRICS), *everything]
    assert world.listed(1, BROKER, BROKER) == [("1", BROKER)]
    assert world.listed(1, TOPIC, 99) == [("error", ErrorCode.UNSUPPORTED_VERSION)]
    assert world.listed(1, 0) == [("error", ErrorCode.UNSUPPORTED_VERSION)]


# --- client metrics


PATTERNS = [
    "client_id=(" + "(" * 5_000,
    "client_id=a{1000000000000000000000000000000}",
    "client_id=(?i)" + "[\0-\U0010ffff]" * 400,
    "client_id=" + "a" * 5_000,
    "client_id=[",
    "no_such_word=a",
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[:20])
def test_a_pattern_of_clients_that_is_wrong_or_too_large_is_refused(pattern: str) -> None:
    ((*_, code, message),) = World().increment((METRICS, "s", [("match", SET, pattern)]))
    assert code == ErrorCode.INVALID_CONFIG
    assert message.startswith("Illegal client matching pattern: ")


def test_patterns_of_clients_are_limited_together() -> None:
    world = World()
    many = ",".join(f"client_id={number:0400}" for number in range(10))
    ((*_, code, _),) = world.increment((METRICS, "s", [("match", SET, many)]))
    assert code == ErrorCode.INVALID_CONFIG
    ((*_, code, _),) = world.increment((METRICS, "s", [("match", SET, many[:3_200])]))
    assert code == ErrorCode.NONE


def test_other_requests_are_served_between_two_subscriptions_that_are_checked() -> None:
    world, turns = World(), 0

    async def sleep(seconds: float) -> None:
        nonlocal turns
        turns += 1

    world.broker.clock = SimpleNamespace(sleep=sleep)
    world.increment(*((METRICS, f"s{number}", [("match", SET, "client_id=a.*")]) for number in range(5)))
    assert turns == 5


# --- values that grow or are long


def test_a_list_can_not_grow_beyond_what_can_be_described() -> None:
    world = World()
    name = "leader.replication.throttled.replicas"
    words = [f"{number}:1" for number in range(10_000)]
    for start in range(0, 2_000, 1_000):
        assert world.increment((TOPIC, "cfg-a", [(name, APPEND, ",".join(words[start : start + 1_000]))]))[0][2] == 0
    ((*_, code, message),) = world.increment((TOPIC, "cfg-a", [(name, APPEND, ",".join(words[2_000:7_000]))]))
    assert code == ErrorCode.INVALID_CONFIG
    assert message.endswith("cannot be added because it exceeds the maximum value size of 32767 bytes.")


def test_a_limit_of_five_thousand_digits_is_refused() -> None:
    text = "1.2.3.4:" + "9" * 5_000
    ((*_, code, message),) = World().increment((BROKER, "", [("max.connections.per.ip.overrides", SET, text)]))
    assert code == ErrorCode.INVALID_REQUEST
    assert "should be HOST:COUNT" in message
