"""A settings file is TOML or a Kafka's ``server.properties``: by its name, and by what is in it where that says
nothing."""

from __future__ import annotations

import re

import pytest

from headpond.config.definition import ConfigError
from headpond.config.effective import Effective
from headpond.config.sources import load
from headpond.config.without_effect import unknown, without_effect

# What Kafka 4's own distribution comes with, and what a Kafka of the years before has in addition.
SERVER_PROPERTIES = """\
############################# Server Basics #############################
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
! Listeners
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
                               SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads : 16
socket.request.max.bytes 104857600
log.dirs=/tmp/kraft-\\u0063ombined-logs
num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
"""
OF_FORMER_YEARS = """\
broker.id=0
listeners=PLAINTEXT://:9092
log.dirs=/tmp/kafka-logs
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def loaded(text: str | bytes, path: str = "server.properties", sets: tuple[str, ...] = ()) -> Effective:
    data = text.encode() if isinstance(text, str) else text
    return load({"config": path}, sets, {}, lambda _: data, hostname="box")


@pytest.mark.parametrize("path", ["server.properties", "/etc/kafka/kafka.conf", "settings"])
def test_kafkas_own_file_makes_a_broker(path: str) -> None:
    effective = loaded(SERVER_PROPERTIES, path)
    settings = effective.settings
    assert settings.network.listeners == (("PLAINTEXT", "PLAINTEXT", "", 9092, "localhost", 9092),)
    assert (settings.broker_id, settings.topics.partitions) == (7, 3)
    assert settings.storage.data_dir == "/tmp/kraft-combined-logs"
    assert without_effect(effective.static) == [
        "controller.quorum.bootstrap.servers",
        "inter.broker.listener.name",
        "num.io.threads",
        "process.roles",
    ]
    assert unknown(effective.static) == []
    assert {row.origin for row in effective.rows()} == {path}


def test_what_kafka_has_no_more_and_what_its_plugins_read_is_named_and_left_alone() -> None:
    text = OF_FORMER_YEARS + "confluent.telemetry.enabled=true\nlog.retention.hour=1\nretention.ms=5\n"
    effective = loaded(text)
    assert effective.settings.broker_id == 0
    assert unknown(effective.static) == [
        "confluent.telemetry.enabled",
        "log.retention.hour, did you mean log.retention.hours?",
        "retention.ms, did you mean log.retention.ms?",
        "zookeeper.connect",
        "zookeeper.connection.timeout.ms",
    ]
    assert not any(row.has_effect for row in effective.rows() if row.name.startswith("zookeeper."))


@pytest.mark.parametrize(
    "line",
    [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "authorizer.class.nam=misspelt",
        "super.users=User:admin",
        "ssl.keystore.location=/etc/keys.p12",
        "sasl.something.that.is.unknown=x",
        "listener.name.plaintext.anything=x",
    ],
)
def test_a_security_setting_is_refused_as_from_anywhere_else_even_if_it_is_unknown(line: str) -> None:
    with pytest.raises(ConfigError, match="would have no effect"):
        loaded(SERVER_PROPERTIES + line + "\n")


@pytest.mark.parametrize("path", ["server.properties", "settings", "a.toml"])
def test_a_misspelt_name_of_our_own_is_refused_in_any_file(path: str) -> None:
    sentence = f"unknown setting headpond.flsh (from {path}), did you mean headpond.flush?"
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        loaded("headpond.flsh='interval'\n" if path == "a.toml" else "headpond.flsh=interval\n", path)


def test_the_command_line_is_stronger_than_the_file() -> None:
    settings = loaded(SERVER_PROPERTIES, sets=("log.dir=/flag", "num.partitions=5")).settings
    assert (settings.storage.data_dir, settings.topics.partitions) == ("/flag", 5)


def test_a_value_that_its_setting_does_not_take_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions: Not a number of type INT \(from server\.properties\)"):
        loaded("num.partitions=3 # three\n")


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("settings", 'broker.rack = "r 1"\n', "r 1"),
        ("settings", "broker.rack = r 1\n", "r 1"),
        ("settings", "broker.rack: r 1\n", "r 1"),
        ("settings", 'broker.rack: the "first"\n', 'the "first"'),
        ("settings", "[broker]\nrack = 'r 1'\n", "r 1"),
        ("a.toml", '"broker.rack" = "r 1"\n', "r 1"),
        ("a.properties", 'broker.rack="r 1"\n', '"r 1"'),  # in properties quotes are letters like others
    ],
)
def test_what_a_file_holds_decides_where_its_name_does_not(path: str, text: str, value: str) -> None:
    assert loaded(text, path).settings.rack == value


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("a.toml", "log.dirs=/tmp\n", "the settings file a.toml is not TOML"),
        ("settings", "[broker]\nrack = r1\n", "the settings file settings is not TOML"),
        ("settings", '"broker.rack" = r1\n', "the settings file settings is not TOML"),
        (
            "settings",
            'log.dirs = "/data"\nlog.cleanup.policy = delete\n',
            "settings is not TOML: Invalid value (at line 2",
        ),
        ("settings", "log.dirs = '/data' # here\nbroker.rack = r1\n", "the value of log.dirs would keep its quotes"),
        ("settings", 'log.dirs = [ "/data" ]\nbroker.rack = r1\n', "the value of log.dirs would keep its quotes"),
        ("settings.json", '{"broker.rack": "r1"}', "the settings file settings.json is not TOML"),
        ("settings.yaml", "broker:\n  rack: r1\n", "the settings file settings.yaml is not TOML"),
        ("a.properties", "broker.rack=\\u12", "is not a properties file: malformed \\uXXXX escape"),
        ("settings", "a\0b", "the settings file settings is not a text file"),
    ],
)
def test_a_file_of_neither_kind_is_refused_in_one_sentence(path: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(text, path)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)
