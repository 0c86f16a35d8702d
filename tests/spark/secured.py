"""A broker that asks who one is, what opens it, and the search for the password in what is left behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from headpond.cli.main import main
from support.certificates import Authority
from support.gate import Gate, secured_broker

CANARY = "canary-7f3a91"
USER = "alice"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class Secured:
    """A gate with a broker behind it, and what opens it."""

    def __init__(self, gate: Gate, authority: Authority) -> None:
        self.address = gate.bootstrap_servers
        self._authority = authority
        self._client = authority.certificate("client")

    def settings(self, password: str = CANARY) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.path),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{MODULE} username="{USER}" password="{password}";',
        }

    def options(self, password: str = CANARY, **more: str) -> dict[str, str]:
        given = {f"kafka.{name}": value for name, value in self.settings(password).items()}
        return {"kafka.bootstrap.servers": self.address, **given, **more}

    def key_options(self) -> dict[str, str]:
        """A private key of the client's, in an option itself."""
        return {
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": self._client.key.read_text(),
            "kafka.ssl.keystore.certificate.chain": self._client.path.read_text(),
        }

    @property
    def key_line(self) -> str:
        """A line of that key which no other key has."""
        return self._client.key.read_text().splitlines()[2]

    def file(self, folder: Path, password: str = CANARY) -> Path:
        path = folder / f"client-{len(password)}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.settings(password).items()))
        return path


@contextlib.contextmanager
def secured_gate(folder: Path) -> Iterator[Secured]:
    """Its certificates are made in ``folder``."""
    authority = Authority(folder)
    gate = Gate(certificate=authority.certificate("broker"), users={USER: CANARY})
    with secured_broker(gate):
        yield Secured(gate, authority)


def opened(secured: Secured, folder: Path, password: str = CANARY) -> list[str]:
    """Options of a command; ``folder`` gets the file that they name."""
    return ["-b", secured.address, "--command-config", str(secured.file(folder, password))]


def headpond(*arguments: str) -> int:
    try:
        return main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)


def no_canary_in(*texts: str) -> None:
    for text in texts:
        assert CANARY not in text


def no_canary_below(folder: Path, *more: str) -> None:
    """``more``: other texts that must not be there."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith("properties")]
    assert files
    for file in files:
        text = file.read_bytes()
        for secret in (CANARY, *more):
            assert secret.encode() not in text, file
