"""Settings that mean nothing here: those about security are refused at the start, the others are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from headpond.cli.config.command import run
from headpond.config.definition import ConfigError
from headpond.config.dynamic import check_broker, describe_broker
from headpond.config.effective import DEFAULT, STATIC, Effective
from headpond.config.registry import broker_settings
from headpond.config.sources import load, variable_of
from headpond.config.without_effect import security_reason, without_effect


def loaded(sets: Sequence[str] = (), environ: Mapping[str, str] | None = None, toml: str | None = None) -> Effective:
    flags = {"config": "headpond.toml"} if toml is not None else {}
    return load(flags, sets, environ or {}, lambda path: (toml or "").encode())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "no authorizer"),
        ("super.users=User:admin", "no authorizer"),
        ("allow.everyone.if.no.acl.found=false", "no authorizer"),
        ("sasl.enabled.mechanisms=SCRAM-SHA-512", "without authentication"),
        ("sasl.jaas.config=secret", "without authentication"),
        ("ssl.keystore.location=/etc/keys.p12", "without authentication"),
        ("ssl.client.auth=required", "without authentication"),
        ("security.inter.broker.protocol=SASL_SSL", "without authentication"),
        ("security.providers=x", "without authentication"),
        ("connections.max.reauth.ms=1000", "without authentication"),
        ("principal.builder.class=x", "without authentication"),
        ("delegation.token.secret.key=secret", "no delegation tokens"),
        ("create.topic.policy.class.name=x", "can't load Java classes"),
        ("listener.name.plaintext.ssl.client.auth=required", "listeners have no settings of their own"),
        ("listener.name.plaintext.max.connections=3", "listeners have no settings of their own"),
        ("listener.name.x.scram-sha-512.sasl.jaas.config=secret", "listeners have no settings of their own"),
    ],
)
def test_a_security_setting_that_would_do_nothing_is_refused_from_every_source(given: str, reason: str) -> None:
    name, _, value = given.partition("=")
    sources: list[Callable[[], Effective]] = [
        lambda: loaded([given]),
        lambda: loaded(environ={"HEADPOND_SET": given}),
        lambda: loaded(toml=f'"{name}" = "{value}"\n'),
    ]
    if not name.startswith("listener.name."):
        sources.append(lambda: loaded(environ={variable_of(name): value}))
    for source in sources:
        with pytest.raises(ConfigError) as refused:
            source()
        sentence = str(refused.value)
        assert name in sentence and reason in sentence and "would have no effect" in sentence
        assert "secret" not in sentence.removeprefix(name)


@pytest.mark.parametrize(
    "given", ["ssl.client.auth=none", "sasl.enabled.mechanisms= GSSAPI ", "security.inter.broker.protocol=PLAINTEXT"]
)
def test_a_security_setting_with_its_default_is_taken(given: str) -> None:
    assert without_effect(loaded([given]).static) == []


def test_every_security_setting_of_kafka_is_known_as_one() -> None:
    words = ("authorizer", "sasl", "ssl.", "security", "token", "principal", "policy.class", "reauth")
    named = [name for name in broker_settings() if any(word in name for word in words)]
    taken = {name for name in named if security_reason(name) is None}
    assert taken == {"listener.security.protocol.map"}  # which protocol a listener has is checked with the listener


def test_other_settings_without_effect_are_named_when_their_value_is_not_the_default() -> None:
    effective = loaded(
        ["num.io.threads=16", "num.network.threads=3", "log.retention.hours=1"],
        {"HEADPOND_MIN_INSYNC_REPLICAS": "2"},
        "socket.send.buffer.bytes = 5\n",
    )
    assert without_effect(effective.static) == ["min.insync.replicas", "num.io.threads", "socket.send.buffer.bytes"]


def test_config_marks_what_has_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    run(loaded(["num.io.threads=16", "log.retention.hours=1"]))
    assert capsys.readouterr().out.splitlines() == [
        "setting              value  from",
        "log.retention.hours  1      --set",
        "num.io.threads       16     --set  no effect",
    ]
    run(loaded(["num.io.threads=16"]), json=True)
    assert '"has_effect": false' in capsys.readouterr().out
    run(loaded(), all=True)
    marks = {line.split()[0]: line.endswith("no effect") for line in capsys.readouterr().out.splitlines()}
    assert marks["sasl.jaas.config"] and marks["num.io.threads"] and not marks["num.partitions"]


def test_clients_may_still_describe_and_change_what_has_no_effect() -> None:
    effective = loaded(["num.io.threads=16"])
    (row,) = describe_broker(effective, ["num.io.threads"])
    assert (row.value, row.source) == ("16", STATIC)
    check_broker({"sasl.enabled.mechanisms": "PLAIN"}, effective, of_all_brokers=False)


@pytest.mark.parametrize(
    ("given", "value", "source"),
    [
        (["advertised.listeners=PLAINTEXT://h:1"], "PLAINTEXT://h:1", STATIC),
        (
            ["listeners=PLAINTEXT://127.0.0.1:1"],
            None,
            DEFAULT,
        ),  # as Kafka says it: what is advertised then is not shown
    ],
)
def test_advertised_listeners_are_described_as_they_were_given(
    given: list[str], value: str | None, source: int
) -> None:
    (row,) = describe_broker(loaded(given), ["advertised.listeners"])
    assert (row.value, row.source, [each.source for each in row.synonyms]) == (value, source, [source] if value else [])
