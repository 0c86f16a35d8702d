"""TLS and SASL with a real Kafka: every mechanism, every way to fail, the command line."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headpond.client import BrokerUnreachable, Client, ClientError, SecurityFailed
from headpond.client.security import Security
from headpond.client.security_settings import parse_security
from interop.oracle import Oracle
from interop.programs import needs_kafka
from interop.secured import PASSWORD, USER, Secured, start_secured
from support.certificates import needs_openssl
from support.cli import Cli
from support.internal_client import run_with_client

pytestmark = [pytest.mark.interop, needs_kafka, needs_openssl]

TOKEN_FILE = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    found = start_secured(Oracle, tmp_path_factory.mktemp("secured"))
    yield found
    found.kafka.kill()


def security(settings: dict[str, str]) -> Security:
    return parse_security(settings, lambda path: Path(path).read_bytes())


def ask(address: str, settings: dict[str, str], timeout_s: float = 20.0) -> str | None:
    async def metadata(client: Client) -> str | None:
        return (await client.metadata([])).cluster_id

    return run_with_client(address, metadata, security=security(settings), timeout_s=timeout_s)


def refused(address: str, settings: dict[str, str], kind: type[ClientError] = SecurityFailed) -> str:
    with pytest.raises(kind) as error:
        ask(address, settings, timeout_s=3.0)
    assert PASSWORD not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_kafka_lets_us_in_by_a_password(secured: Secured, mechanism: str) -> None:
    assert ask(secured.at("SASL_SSL"), secured.sasl_ssl(mechanism))


def test_a_kafka_lets_us_in_by_a_certificate(secured: Secured) -> None:
    ours = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(secured.client.both)}
    assert ask(secured.at("SSL"), {"security.protocol": "SSL", **secured.trust()})
    assert ask(secured.at("MUTUAL"), {"security.protocol": "SSL", **secured.trust(), **ours})
    said = refused(secured.at("MUTUAL"), {"security.protocol": "SSL", **secured.trust()})
    assert "wants a certificate of ours that it trusts" in said


def test_a_kafka_lets_us_in_by_a_token(secured: Secured, tmp_path: Path) -> None:
    settings = {name: value for name, value in secured.sasl_ssl().items() if name != "sasl.jaas.config"}
    settings |= {"sasl.mechanism": "OAUTHBEARER", TOKEN_FILE: (tmp_path / "token").as_uri()}
    now_s = int(time.time())
    (tmp_path / "token").write_text(token(sub=USER, iat=now_s, exp=now_s + 3_600))
    assert ask(secured.at("SASL_SSL"), settings)
    (tmp_path / "token").write_text(token(sub=USER, iat=now_s - 7_200, exp=now_s - 3_600))
    assert "does not let our token in by OAUTHBEARER" in refused(secured.at("SASL_SSL"), settings)


def token(**claims: object) -> str:
    """An unsecured one, which a Kafka takes that was told nothing else."""
    parts = ({"alg": "none"}, claims)
    return "".join(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") + "." for one in parts)


def test_a_kafka_that_asks_again_is_answered_on_the_same_connection(secured: Secured) -> None:
    """Its sessions last two seconds; without an answer it closes the connection."""

    async def go_on(client: Client) -> None:
        connection = await client.connection()
        until_s = client.clock.monotonic() + 6.0  # three sessions
        while client.clock.monotonic() < until_s:
            await client.metadata([])
            await asyncio.sleep(0.05)
        assert connection.is_open and await client.connection() is connection

    settings = security(secured.sasl_ssl("SCRAM-SHA-256"))
    run_with_client(secured.at("SASL_SSL"), go_on, security=settings, timeout_s=20)


def test_each_way_to_be_refused_by_a_kafka_is_one_sentence(secured: Secured) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-512"):
        said = refused(secured.at("SASL_SSL"), secured.sasl_ssl(mechanism, "wrong"))
        assert f"does not let user {USER} in by {mechanism}: " in said
    without_tls = {**secured.sasl_ssl("PLAIN"), "security.protocol": "SASL_PLAINTEXT"}
    said = refused(secured.at("SASL_PLAINTEXT"), without_tls)
    assert "does not take the SASL mechanism PLAIN, only SCRAM-SHA-256" in said
    assert "does not speak SASL" in refused(secured.kafka.bootstrap_servers, without_tls)
    assert "speaks TLS, and we did not" in refused(secured.at("SASL_SSL"), {})
    assert "is security.protocol right?" in refused(secured.at("SASL_PLAINTEXT"), {}, ClientError)
    tls = {"security.protocol": "SSL", **secured.trust()}
    assert "broke off the TLS handshake" in refused(secured.kafka.bootstrap_servers, tls, BrokerUnreachable)
    assert "is not to be trusted" in refused(secured.at("SSL"), {"security.protocol": "SSL"})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_command_line_works_with_a_secured_kafka(secured: Secured, mechanism: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    settings = secured.sasl_ssl(mechanism)
    config.write_text("".join(f"{name}={value}\n".replace("\\", "\\\\") for name, value in settings.items()))
    cli, topic = Cli(secured.at("SASL_SSL")), f"orders-{mechanism.lower()}"
    there = ("--command-config", config)
    cli.ok("topics", "create", topic, *there)
    cli.ok("produce", topic, *there, stdin="one\ntwo\n")
    assert cli.ok("consume", topic, *there).out == "one\ntwo\n"
    (described,) = cli.ok("topics", "describe", topic, "--json", *there).document
    assert [one["end_offset"] for one in described["partitions"]] == [2]
    cli.ok("topics", "delete", topic, *there)
