"""The options of ``format("headpond")``: the connector's names, defaults and forms, and sentences for what is wrong."""

from __future__ import annotations

import logging
import pickle

import pytest

from headpond.client.offsets import EARLIEST, LATEST
from headpond.client.security import Sasl, Security
from headpond.model import TopicPartition
from headpond.ports import Tls
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.reading.options import SourceOptions, parse_include_headers, parse_options
from headpond.spark.reading.positions import AtOffsets, AtTimestamps, Everywhere, specs_of

MINIMUM = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def stream(**more: str) -> SourceOptions:
    return parse_options({**MINIMUM, **more}, is_stream=True)


def batch(**more: str) -> SourceOptions:
    return parse_options({**MINIMUM, **more}, is_stream=False)


def refusal(given: dict[str, str], *, is_stream: bool = True) -> str:
    with pytest.raises(WrongOption) as caught:
        parse_options(given, is_stream=is_stream)
    return str(caught.value)


def wrong(name: str, value: str, *, is_stream: bool = True) -> str:
    return refusal({**MINIMUM, name: value}, is_stream=is_stream)


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_connectors_but_for_the_isolation_level() -> None:
    options = stream()
    assert [str(one) for one in options.client.bootstrap] == ["127.0.0.1:9092"]
    assert options.subscription.topics == ("orders",)
    assert options.start == Everywhere(LATEST)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.group_id is None
    assert options.partitions_min is None and options.records_per_partition_max is None
    assert options.rate.offsets_max is None and options.rate.offsets_min is None
    assert options.rate.delay_ms_max == 15 * 60_000
    assert (options.client.retries, options.client.retry_interval_s) == (3, 0.01)
    assert options.client.poll_timeout_s == 120
    assert options.client.isolation == "read_committed"


def test_a_batch_read_begins_at_the_earliest_and_ends_at_the_latest_offset() -> None:
    assert batch().start == Everywhere(EARLIEST)
    assert batch().end == Everywhere(LATEST, "endingOffsets")


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [str.lower, str.upper])
def test_names_are_the_same_in_any_case(change: object) -> None:
    assert callable(change)
    given = {**MINIMUM, "maxOffsetsPerTrigger": "7", "kafka.group.id": "g", "failOnDataLoss": "FALSE"}
    options = parse_options({change(name): value for name, value in given.items()}, is_stream=True)
    assert (options.rate.offsets_max, options.group_id, options.fail_on_data_loss) == (7, "g", False)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("subscribes", "subscribe"),
        ("startingOffset", "startingOffsets"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("group.id", "kafka.group.id"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.isolation", "kafka.isolation.level"),
        ("kafka.fetch.max.wait", "kafka.fetch.max.wait.ms"),
        ("failondataloos", "failOnDataLoss"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_right_one(name: str, meant: str) -> None:
    assert wrong(name, "x") == f"unknown option {name} (did you mean {meant}?)"


def test_a_name_that_is_near_nothing_is_refused_without_a_guess() -> None:
    assert wrong("colour", "x") == "unknown option colour"


def test_a_path_is_told_apart_from_a_topic() -> None:
    assert "topics, not paths" in wrong("path", "/data")


@pytest.mark.parametrize(
    "setting",
    ["auto.offset.reset", "enable.auto.commit", "interceptor.classes", "key.deserializer", "value.deserializer"],
)
def test_settings_of_kafkas_consumer_that_the_source_decides_are_refused_with_the_reason(setting: str) -> None:
    assert wrong(f"kafka.{setting}", "x").startswith(f"kafka.{setting} can't be set: ")


@pytest.mark.parametrize("setting", names.IGNORED_SETTINGS)
def test_other_settings_of_kafkas_consumer_may_be_carried_along(setting: str) -> None:
    assert parse_options({**MINIMUM, f"kafka.{setting}": "1"}, is_stream=True) == stream()


def test_settings_of_the_client_reach_it() -> None:
    more = {
        "kafka.client.id": "me",
        "kafka.isolation.level": "read_uncommitted",
        "kafka.default.api.timeout.ms": "1500",
        "kafka.max.partition.fetch.bytes": "1000",
        "kafka.fetch.max.bytes": "2000",
        "kafka.fetch.max.wait.ms": "7",
        "kafka.fetch.min.bytes": "9",
        "kafka.check.crcs": "false",
        "kafkaConsumer.pollTimeoutMs": "2500",
        "fetchOffset.numRetries": "8",
        "fetchOffset.retryIntervalMs": "30",
    }
    client = parse_options({**MINIMUM, **more}, is_stream=True).client
    assert (client.client_id, client.isolation, client.api_timeout_s) == ("me", "read_uncommitted", 1.5)
    assert (client.partition_fetch_bytes, client.fetch_bytes) == (1000, 2000)
    assert (client.fetch_wait_ms, client.fetch_min_bytes, client.check_crcs) == (7, 9, False)
    assert (client.poll_timeout_s, client.retries, client.retry_interval_s) == (2.5, 8, 0.03)


def test_the_isolation_level_may_stand_without_the_prefix_but_not_against_it() -> None:
    bare = {"isolation.level": "read_uncommitted"}
    assert parse_options({**MINIMUM, **bare}, is_stream=True).client.isolation == "read_uncommitted"
    both = {**MINIMUM, **bare, "kafka.isolation.level": "read_committed"}
    assert "contradict" in refusal(both)
    assert "neither read_committed nor read_uncommitted" in wrong("kafka.isolation.level", "serializable")


# --- what is read -----------------------------------------------------------------------------------------------------


def test_brokers_must_be_named_as_addresses() -> None:
    assert "kafka.bootstrap.servers is missing" in refusal({"subscribe": "orders"})
    assert wrong("kafka.bootstrap.servers", "host:0").startswith("kafka.bootstrap.servers: ")


def test_one_of_the_three_ways_to_name_partitions_is_needed_and_no_more() -> None:
    servers = {"kafka.bootstrap.servers": "h:1"}
    assert "subscribe, subscribePattern or assign" in refusal(servers)
    assert refusal({**servers, "subscribe": "a", "assign": '{"a": [0]}'}) == (
        "subscribe and assign contradict each other: give one of them"
    )


def test_subscribe_is_a_list_with_commas() -> None:
    assert stream(subscribe=" b, a ,b").subscription.topics == ("b", "a")
    assert wrong("subscribe", " , ") == "subscribe names no topic"


def test_a_pattern_matches_whole_names_and_no_internal_topics() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribePattern": "orders.*"}
    subscription = parse_options(given, is_stream=True).subscription
    assert subscription.matches("orders-eu", is_internal=False)
    assert not subscription.matches("all-orders", is_internal=False)
    assert not subscription.matches("orders-internal", is_internal=True)
    with_internal = parse_options({**given, "kafka.exclude.internal.topics": "false"}, is_stream=True)
    assert with_internal.subscription.matches("orders-internal", is_internal=True)
    assert "is no regular expression" in refusal({**given, "subscribePattern": "("})
    assert refusal({**given, "subscribePattern": " "}) == "subscribePattern is empty"


def test_assign_names_partitions() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "assign": '{"orders": [1, 0], "bills": [2]}'}
    assert parse_options(given, is_stream=True).subscription.assigned == (
        TopicPartition("bills", 2),
        ORDERS_0,
        ORDERS_1,
    )


@pytest.mark.parametrize(
    "text",
    ["orders", "[]", "{}", '{"orders": 0}', '{"orders": [-1]}', '{"orders": ["x"]}', '{"orders": [true]}', '{"o": []}'],
)
def test_an_assignment_in_any_other_form_is_refused(text: str) -> None:
    assert refusal({"kafka.bootstrap.servers": "h:1", "assign": text}).startswith("assign")


# --- where it begins and ends -----------------------------------------------------------------------------------------


def test_starting_offsets_are_a_word_or_json_with_a_number_for_each_partition() -> None:
    assert stream(startingOffsets=" Earliest ").start == Everywhere(EARLIEST)
    start = stream(startingOffsets='{"orders": {"1": -2, "0": 23}}').start
    assert start == AtOffsets({ORDERS_0: 23, ORDERS_1: EARLIEST})


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "{",
        '{"orders": 5}',
        '{"orders": {"x": 5}}',
        '{"orders": {"0": "5"}}',
        '{"orders": {"0": 1.5}}',
        '{"orders": {"0": true}}',
        '{"orders": {"0": -3}}',
        '{"orders": {"0": 1, "0": 2}}',
    ],
)
def test_starting_offsets_in_any_other_form_are_refused(text: str) -> None:
    assert wrong("startingOffsets", text).startswith("startingOffsets")


def test_a_timestamp_for_all_goes_before_timestamps_for_each_before_offsets() -> None:
    by_partition = '{"orders": {"0": 5}}'
    all_three = {"startingTimestamp": "7", "startingOffsetsByTimestamp": by_partition, "startingOffsets": "earliest"}
    assert stream(**all_three).start == AtTimestamps("startingTimestamp", everywhere_ms=7)
    del all_three["startingTimestamp"]
    assert stream(**all_three).start == AtTimestamps("startingOffsetsByTimestamp", by_partition_ms={ORDERS_0: 5})
    ends = {"endingTimestamp": "7", "endingOffsetsByTimestamp": by_partition, "endingOffsets": "latest"}
    assert batch(**ends).end == AtTimestamps("endingTimestamp", everywhere_ms=7)
    del ends["endingTimestamp"]
    assert batch(**ends).end == AtTimestamps("endingOffsetsByTimestamp", by_partition_ms={ORDERS_0: 5})


def test_what_a_partition_without_so_late_a_record_does_is_an_error_or_the_end() -> None:
    start = stream(startingTimestamp="7", startingOffsetsByTimestampStrategy="LATEST").start
    assert isinstance(start, AtTimestamps) and start.no_match == "latest"
    assert "neither error nor latest" in refusal(
        {**MINIMUM, "startingTimestamp": "7", "startingOffsetsByTimestampStrategy": "skip"}
    )


@pytest.mark.parametrize("text", ["-1", "soon", "1.5", ""])
def test_a_timestamp_is_a_number_of_milliseconds(text: str) -> None:
    assert "is no whole number" in wrong("startingTimestamp", text)


@pytest.mark.parametrize("name", names.ENDINGS)
def test_a_stream_has_no_end(name: str) -> None:
    assert wrong(name, "latest") == f"{name}: a stream has no end: only batch reads take it"


def test_a_batch_read_neither_begins_at_the_end_nor_ends_at_the_beginning() -> None:
    assert wrong("startingOffsets", "latest", is_stream=False).startswith("startingOffsets can't be latest")
    assert "orders-0 can't be -1" in wrong("startingOffsets", '{"orders": {"0": -1}}', is_stream=False)
    assert wrong("endingOffsets", "earliest", is_stream=False).startswith("endingOffsets can't be earliest")
    assert "orders-0 can't be -2" in wrong("endingOffsets", '{"orders": {"0": -2}}', is_stream=False)


def test_a_position_names_every_partition_that_is_read_and_no_other() -> None:
    position = AtOffsets({ORDERS_0: 1, TopicPartition("bills", 0): 2})
    with pytest.raises(WrongOption, match="it leaves out orders-1; bills-0 is not among what is read"):
        specs_of(position, {ORDERS_0, ORDERS_1})
    assert specs_of(AtOffsets({ORDERS_0: 5}), {ORDERS_0}) == {ORDERS_0: 5}
    assert specs_of(Everywhere(LATEST), {ORDERS_1, ORDERS_0}) == {ORDERS_0: LATEST, ORDERS_1: LATEST}
    assert specs_of(AtTimestamps("startingTimestamp", everywhere_ms=9), {ORDERS_0}) == {ORDERS_0: 9}


# --- rates, splits, truth ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition"]
)
@pytest.mark.parametrize("text", ["0", "-5", "many", "1e3", "99999999999999999999"])
def test_counts_are_whole_numbers_above_nothing(name: str, text: str) -> None:
    assert wrong(name, text).startswith(f"{name}: {text!r} is no whole number from 1 ")


def test_the_least_of_a_batch_is_not_above_its_most() -> None:
    given = {**MINIMUM, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}
    assert refusal(given) == "minOffsetsPerTrigger (9) is above maxOffsetsPerTrigger (8)"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("15m", 900_000),
        ("30s", 30_000),
        ("500ms", 500),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("250", 250),
        ("1 min", 60_000),
    ],
)
def test_a_delay_is_written_as_spark_writes_times(text: str, milliseconds: int) -> None:
    assert stream(maxTriggerDelay=text).rate.delay_ms_max == milliseconds


@pytest.mark.parametrize("text", ["soon", "-1s", "5 weeks", ""])
def test_anything_else_is_no_delay(text: str) -> None:
    assert "is no time" in wrong("maxTriggerDelay", text)


def test_rates_mean_nothing_in_a_batch_read_and_are_said_to(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headpond.spark"):
        batch(maxOffsetsPerTrigger="5")
    assert "maxOffsetsPerTrigger: without effect in a batch read" in caplog.text


@pytest.mark.parametrize("name", ["failOnDataLoss", "includeHeaders"])
def test_truth_is_true_or_false(name: str) -> None:
    assert wrong(name, "yes") == f"{name}: 'yes' is neither true nor false"


def test_headers_are_asked_for() -> None:
    assert parse_include_headers({**MINIMUM, "includeheaders": "true"})
    assert not parse_include_headers(MINIMUM)


# --- security ---------------------------------------------------------------------------------------------------------

SECRET = "hunter2-and-more"
SECRETS = {
    "kafka.ssl.keystore.password": SECRET,
    "kafka.ssl.key.password": SECRET,
    "kafka.sasl.jaas.config": f'org.apache.kafka...PlainLoginModule required username="u" password="{SECRET}";',
    "kafka.ssl.keystore.key": SECRET,
}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kafka.security.protocol": "SASL_SSL"},
        {"kafka.sasl.mechanism": "PLAIN", "startingOffsets": "soon"},
        {"colour": "red"},
        {"kafka.isolation.level": "x"},
        {"kafka.pasword": SECRET},
        {"kafka.security.protocol": SECRET},
    ],
)
def test_no_secret_is_in_a_message_or_in_what_is_printed(more: dict[str, str]) -> None:
    try:
        said = repr(parse_options({**MINIMUM, **SECRETS, **more}, is_stream=True))
    except WrongOption as error:
        said = f"{error} {error!r} {error.__cause__!r} {error.__context__!r}"
    assert SECRET not in said


def test_tls_and_sasl_reach_the_client_of_the_driver_and_of_each_task() -> None:
    given = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.ca.location": "/ca.pem",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": SECRETS["kafka.sasl.jaas.config"],
    }
    expected = Security(Tls(trusted_path="/ca.pem"), Sasl("PLAIN", "u", SECRET))
    assert stream(**given).client.security == expected
    assert pickle.loads(pickle.dumps(stream(**given))).client.security == expected
    assert stream(**{"kafka.security.protocol": "plaintext"}) == stream()


def test_mistakes_of_security_are_told_with_the_name_of_the_option() -> None:
    assert wrong("kafka.security.protocol", "SASL_SSL").startswith("kafka.sasl.mechanism is missing")
    assert wrong("kafka.ssl.trustore.location", "x") == (
        "unknown setting kafka.ssl.trustore.location, did you mean kafka.ssl.truststore.location?"
    )
