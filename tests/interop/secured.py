"""A real Kafka that asks who we are: one listener for each security protocol, three users, one password each."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from interop.oracle import Oracle
from support.certificates import Authority, Certificate

USER, PASSWORD = "alice", 'canary "quoted" \\ =,;pass'
REAUTHENTICATE_MS = 2_000
_MODULES = "org.apache.kafka.common.security"
LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL", "MUTUAL")


class Secured(NamedTuple):
    kafka: Oracle
    authority: Authority
    client: Certificate
    ports: dict[str, int]

    def at(self, listener: str, host: str = "localhost") -> str:
        return f"{host}:{self.ports[listener]}"

    def trust(self) -> dict[str, str]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.path)}

    def sasl_ssl(self, mechanism: str = "PLAIN", password: str = PASSWORD) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            **self.trust(),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": login_module(mechanism, password),
        }


def login_module(mechanism: str, password: str = PASSWORD) -> str:
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_MODULES}.{kind}LoginModule required username="{USER}" password="{escaped}";'


def start_secured(make_kafka: Callable[..., Oracle], folder: Path) -> Secured:
    authority = Authority(folder / "certificates")
    server, client = authority.certificate("broker"), authority.certificate("client")
    ports = dict(zip(LISTENERS, _free_ports(len(LISTENERS)), strict=True))
    kafka = make_kafka(folder / "kafka", {})
    kafka.settings = _settings(authority, server, ports)
    kafka.listeners = ports
    kafka.start()
    _add_scram_users(kafka)
    return Secured(kafka, authority, client, ports)


def _settings(authority: Authority, server: Certificate, ports: dict[str, int]) -> dict[str, object]:
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{escaped}";'
    scram = f"{_MODULES}.scram.ScramLoginModule required;"
    oauth = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    sasl = {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": module.replace("\\", "\\\\")
        for listener in ("sasl_ssl", "sasl_plaintext")
        for mechanism, module in (
            ("plain", plain),
            ("scram-sha-256", scram),
            ("scram-sha-512", scram),
            ("oauthbearer", oauth),
        )
    }
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,MUTUAL:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": server.both,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.path,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_ssl.connections.max.reauth.ms": REAUTHENTICATE_MS,
        **sasl,
    }


def _add_scram_users(kafka: Oracle) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = ScramCredentialInfo(mechanism, 4_096)
        wanted = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
        for done in admin.alter_user_scram_credentials([wanted]).values():
            done.result(60)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
