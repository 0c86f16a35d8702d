"""The internal client and the command line with brokers that ask who one is: TLS and SASL, and each way to fail."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond.client import BrokerUnreachable, Client, ClientError, SecurityFailed
from headpond.client.security_settings import parse_security
from headpond.model import ErrorCode
from headpond.testing import Broker
from support.certificates import KEY_PASSWORD, Authority, locked, needs_openssl
from support.cli import Cli
from support.gate import Gate, secured_broker
from support.internal_client import run_with_client

pytestmark = needs_openssl

USER, PASSWORD = "alice", "canary-pass,word="
SCRAM = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": USER, "sasl.password": PASSWORD}
PLAIN = {**SCRAM, "sasl.mechanism": "PLAIN"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def gate_of() -> Iterator[Callable[..., Gate]]:
    """``gate_of(certificate=..., users=...)``: a gate with a broker behind it."""
    with _Gates() as gates:
        yield gates.open


@pytest.fixture(scope="module")
def open_gate(authority: Authority) -> Iterator[Gate]:
    """TLS and SASL, shared by those who only look."""
    with _Gates() as gates:
        yield gates.open(certificate=authority.certificate("broker"), users={USER: PASSWORD})


class _Gates:
    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Gates:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open(self, **options: Any) -> Gate:
        gate = Gate(**options)
        self._stack.enter_context(secured_broker(gate))
        return gate


def ask(address: str, settings: dict[str, str], **options: Any) -> str | None:
    security = parse_security(settings, lambda path: Path(path).read_bytes())

    async def metadata(client: Client) -> str | None:
        return (await client.metadata([])).cluster_id

    return run_with_client(address, metadata, security=security, **{"timeout_s": 10.0, **options})


def refused(address: str, settings: dict[str, str], kind: type[ClientError] = SecurityFailed, **options: Any) -> str:
    with pytest.raises(kind) as error:
        ask(address, settings, **options)
    assert PASSWORD not in str(error.value)
    return str(error.value)


def tls(authority: Authority, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.path),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def both(authority: Authority, sasl: dict[str, str]) -> dict[str, str]:
    return {**tls(authority), **sasl, "security.protocol": "SASL_SSL"}


# --- what works -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_has_a_password_is_let_in(open_gate: Gate, authority: Authority, mechanism: str) -> None:
    assert ask(open_gate.bootstrap_servers, both(authority, {**SCRAM, "sasl.mechanism": mechanism}))


def test_sasl_works_without_tls_too(gate_of: Callable[..., Gate]) -> None:
    gate = gate_of(users={USER: PASSWORD})
    assert ask(gate.bootstrap_servers, {**SCRAM, "security.protocol": "SASL_PLAINTEXT"})


def test_certificates_come_from_files_or_from_the_setting_itself(
    gate_of: Callable[..., Gate], authority: Authority
) -> None:
    ours = authority.certificate("client")
    gate = gate_of(certificate=authority.certificate("broker"), clients_of=authority.path)
    address = gate.bootstrap_servers
    key = str(locked(ours.key))
    assert ask(
        address,
        tls(authority, ssl_certificate_location=str(ours.path), ssl_key_location=key, ssl_key_password=KEY_PASSWORD),
    )
    written = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": ours.path.read_text().replace("\n", " "),
        "ssl.keystore.key": ours.key.read_text().replace("\n", " "),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.path.read_text(),
    }
    assert ask(address, {"security.protocol": "SSL", **written})
    # Whether its reason reaches us before the end of the connection does is not ours to say.
    assert "wants a certificate of ours that it trusts" in refused(address, tls(authority), ClientError)
    stranger = Authority(authority.path.parent, "stranger").certificate("unknown")
    theirs = tls(authority, ssl_keystore_type="PEM", ssl_keystore_location=str(stranger.both))
    assert "wants a certificate of ours that it trusts" in refused(address, theirs, ClientError)


def test_a_session_that_ends_is_begun_again_on_the_same_connection_while_requests_wait(
    gate_of: Callable[..., Gate], authority: Authority
) -> None:
    gate = gate_of(certificate=authority.certificate("broker"), users={USER: PASSWORD}, lifetime_ms=300)

    async def go_on(client: Client) -> None:
        connection = await client.connection()
        while gate.logins < 4:
            await asyncio.gather(*(client.metadata([]) for _ in range(5)))
        assert connection.is_open and gate.connections == 1

    security = parse_security(both(authority, SCRAM), lambda path: Path(path).read_bytes())
    run_with_client(gate.bootstrap_servers, go_on, security=security, timeout_s=30)


def test_who_is_not_let_in_again_is_told_when_the_next_connection_is_made(
    gate_of: Callable[..., Gate], authority: Authority
) -> None:
    gate = gate_of(certificate=authority.certificate("broker"), users={USER: PASSWORD}, lifetime_ms=200)

    async def go_on(client: Client) -> None:
        await client.metadata([])
        gate.users = {USER: "changed"}
        with pytest.raises(SecurityFailed, match="does not let user alice in"):
            while True:
                await client.metadata([])

    security = parse_security(both(authority, SCRAM), lambda path: Path(path).read_bytes())
    run_with_client(gate.bootstrap_servers, go_on, security=security, timeout_s=30)


# --- what does not ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sasl", [PLAIN, SCRAM], ids=["plain", "scram"])
def test_a_wrong_password_is_said_once_and_not_tried_again(
    gate_of: Callable[..., Gate], authority: Authority, sasl: dict[str, str]
) -> None:
    gate = gate_of(certificate=authority.certificate("broker"), users={USER: "another"})
    said = refused(gate.bootstrap_servers, both(authority, sasl))
    assert f"does not let user alice in by {sasl['sasl.mechanism']}: no such user, or another password" in said
    assert gate.connections == 1


def test_a_broker_that_does_not_know_the_password_is_not_talked_to(
    gate_of: Callable[..., Gate], authority: Authority
) -> None:
    gate = gate_of(certificate=authority.certificate("broker"), users={USER: PASSWORD})
    gate.lie()
    settings = both(authority, {**SCRAM, "sasl.mechanism": "SCRAM-SHA-256"})
    assert "does not prove that it knows the password" in refused(gate.bootstrap_servers, settings)


def test_a_mechanism_that_the_broker_does_not_have_is_named_with_those_it_has(gate_of: Callable[..., Gate]) -> None:
    gate = gate_of(users={USER: PASSWORD}, mechanisms=["SCRAM-SHA-256"])
    said = refused(gate.bootstrap_servers, {**PLAIN, "security.protocol": "SASL_PLAINTEXT"})
    assert "does not take the SASL mechanism PLAIN, only SCRAM-SHA-256" in said


def test_a_certificate_of_somebody_unknown_or_for_another_host_is_not_trusted(
    gate_of: Callable[..., Gate], open_gate: Gate, authority: Authority
) -> None:
    other = Authority(authority.path.parent / "other")
    assert "is not to be trusted" in refused(open_gate.bootstrap_servers, both(other, SCRAM))
    gate = gate_of(certificate=authority.certificate("elsewhere", "DNS:elsewhere.example"))
    assert "has a certificate for another host" in refused(gate.bootstrap_servers, tls(authority))
    assert ask(gate.bootstrap_servers, tls(authority, ssl_endpoint_identification_algorithm=""))


def test_files_that_cannot_be_used_are_named(open_gate: Gate, authority: Authority, tmp_path: Path) -> None:
    address = open_gate.bootstrap_servers
    ours = authority.certificate("mine")
    other = authority.certificate("yours")
    key = str(locked(ours.key))
    own = {"ssl_certificate_location": str(ours.path)}
    assert f"{tmp_path}/no.pem: no such file" in refused(address, tls(authority, ssl_ca_location=f"{tmp_path}/no.pem"))
    assert "no certificates in PEM" in refused(address, tls(authority, ssl_ca_location=str(ours.key)))
    mixed = tls(authority, **own, ssl_key_location=str(other.key))
    assert "does not belong to the certificate" in refused(address, mixed)
    assert "ssl.key.password is missing" in refused(address, tls(authority, **own, ssl_key_location=key))
    assert "does not open the private key" in refused(
        address, tls(authority, **own, ssl_key_location=key, ssl_key_password=PASSWORD)
    )


def test_a_protocol_that_is_not_the_brokers_is_suspected(
    open_gate: Gate, gate_of: Callable[..., Gate], authority: Authority
) -> None:
    suspicion = "is security.protocol right?"
    assert suspicion in refused(open_gate.bootstrap_servers, {}, ClientError)
    sasl_only = gate_of(users={USER: PASSWORD}).bootstrap_servers
    assert suspicion in refused(sasl_only, {}, ClientError, timeout_s=0.5)
    assert suspicion in refused(sasl_only, tls(authority), BrokerUnreachable)
    with Broker() as broker:
        assert "broke off the TLS handshake" in refused(broker.bootstrap_servers, tls(authority), BrokerUnreachable)
        with pytest.raises(SecurityFailed, match=r"does not speak SASL: is security\.protocol right") as error:
            ask(broker.bootstrap_servers, {**SCRAM, "security.protocol": "SASL_PLAINTEXT"})
        assert error.value.code is ErrorCode.ILLEGAL_SASL_STATE


# --- the command line -------------------------------------------------------------------------------------------------


def properties(path: Path, settings: dict[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


def test_every_command_takes_a_file_as_kafkas_tools_do(open_gate: Gate, authority: Authority, tmp_path: Path) -> None:
    config = properties(tmp_path / "client.properties", {"client.id": "x", **both(authority, SCRAM)})
    cli = Cli(open_gate.bootstrap_servers)
    cli.ok("topics", "create", "secured", "--command-config", config)
    cli.ok("produce", "secured", "--command-config", config, stdin="hello\n")
    from_variable = {"HEADPOND_COMMAND_CONFIG": str(config)}
    assert cli("consume", "secured", env=from_variable).out == "hello\n"
    assert cli("groups", "list", env=from_variable).code == 0


def test_a_command_that_is_not_let_in_says_why_in_one_sentence(
    open_gate: Gate, authority: Authority, tmp_path: Path
) -> None:
    cli = Cli(open_gate.bootstrap_servers)
    settings = both(authority, {**SCRAM, "sasl.password": f"{PASSWORD}-wrong"})
    config = properties(tmp_path / "client.properties", settings)
    said = cli("topics", "list", "--command-config", config).failed_with(1)
    assert "does not let user alice in by SCRAM-SHA-512" in said and PASSWORD not in said
    assert "is security.protocol right?" in cli("topics", "list", "--timeout", 2).failed_with(1)
    said = cli("topics", "list", "--command-config", tmp_path / "nothing").failed_with(2)
    assert said == f"headpond: {tmp_path}/nothing can't be read: No such file or directory\n"
    properties(config, {"security.protocol": "SASL_SSL", "sasl.jaas.config": PASSWORD, "sasl.mechanism": "PLAIN"})
    said = cli("topics", "list", "--command-config", config).failed_with(2)
    assert f"{config}: sasl.jaas.config is not a login module" in said and PASSWORD not in said


def test_a_broker_does_not_mind_the_variable(tmp_path: Path) -> None:
    with Broker(env={"HEADPOND_COMMAND_CONFIG": str(tmp_path / "x")}) as broker:
        assert broker.is_running


def test_a_command_without_such_a_file_loads_none_of_it() -> None:
    program = "import sys, headpond.cli.common.connection; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "headpond.client.connection" in loaded
    assert not {"headpond.runtime.tls", "headpond.client.security_settings", "hashlib", "dataclasses"} & set(loaded)
