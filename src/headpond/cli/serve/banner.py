"""What ``serve`` says when it is ready: one line on stdout for programs, the rest on stderr for people."""

from __future__ import annotations

from collections.abc import Sequence

from headpond.cli.common.arguments import BOOTSTRAP_DEFAULT
from headpond.config.broker import BrokerSettings
from headpond.config.listeners import EVERY_INTERFACE, Listener

Address = tuple[str, int]

_FROM_HERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""How a client on the same machine reaches a listener on every interface."""


def address_text(host: str, port: int) -> str:
    host = host or "0.0.0.0"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def advertised(listeners: Sequence[Listener], bound: Sequence[Address]) -> list[str]:
    """The addresses that clients are told, of the listeners at ``bound``."""
    return [
        address_text(listener.advertised_host, listener.advertised_port or port)
        for listener, (_, port) in zip(listeners, bound, strict=True)
    ]


def banner(settings: BrokerSettings, bound: Sequence[Address]) -> str:
    """For people: what is where, and the first commands to try from another terminal."""
    host, port = bound[0]
    reach = address_text(_FROM_HERE.get(host, host), port)
    option = "" if reach == BOOTSTRAP_DEFAULT else f" --bootstrap-server {reach}"
    lines = [
        f"Broker {settings.broker_id}, data in {settings.storage.data_dir} (flush: {settings.storage.flush}).",
        *_told(settings.network.listeners, bound),
        "From another terminal:",
        f"  echo hello | headpond produce greetings --create{option}",
        f"  headpond consume greetings{option}",
        f"Or with any Kafka client, bootstrap server {reach}, for example:",
        f"  kcat -b {reach} -C -t greetings -e",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def _told(listeners: Sequence[Listener], bound: Sequence[Address]) -> list[str]:
    """The line about advertised addresses: \"all interfaces\" does not say where clients are told to connect."""
    if not any(host in EVERY_INTERFACE for host, _ in bound):
        return []
    told = ", ".join(advertised(listeners, bound))
    return [f"Listening on all interfaces; clients are told to connect to {told} (--advertise changes it)."]
