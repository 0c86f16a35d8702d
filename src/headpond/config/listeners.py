"""Where the broker listens, and which address it tells its clients: ``listeners`` and ``advertised.listeners``.

Pure text in, ``Listener`` out. Raises ``ConfigError`` with one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headpond.config.definition import ConfigError, shortened, whole_number

EVERY_INTERFACE = ("", "0.0.0.0", "::")
"""Hosts of a listener that stand for all addresses of the machine."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SERVED_PROTOCOLS = ("PLAINTEXT",)


class Listener(NamedTuple):
    """``host`` "" is every interface; ``port`` 0 picks a free one; ``advertised_port`` 0 stands for the one picked."""

    name: str
    protocol: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int


def parse_listeners(
    listeners: Sequence[str],
    advertised: Sequence[str] | None,
    protocol_map: str,
    *,
    controller_names: Sequence[str] = (),
    hostname: str,
) -> tuple[Listener, ...]:
    """``hostname`` is advertised for a listener on every interface that no advertised address is given for."""
    protocols = _protocols(protocol_map)
    bound = [end for end in _endpoints("listeners", listeners) if end.name not in controller_names]
    told = {end.name: end for end in _endpoints("advertised.listeners", advertised or ())}
    if not bound:
        raise ConfigError("listeners names no listener for clients")
    _all_different("listeners", bound)
    for name in told:
        if name not in {end.name for end in bound} and name not in controller_names:
            raise ConfigError(f"advertised.listeners names the listener {name}, which listeners does not have")
    return tuple(_listener(end, told.get(end.name), protocols, hostname) for end in bound)


def parse_address(text: str) -> tuple[str, int]:
    """``host:port``, ``[ipv6]:port``, ``:port``. Raises ``ConfigError``."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"'{shortened(text)}' is not an address: write an IPv6 host in brackets, as in [::1]:9092")
    number = whole_number(port, 65_535) if port.isascii() and port.isdigit() else None
    if not colon or number is None:
        raise ConfigError(f"'{shortened(text)}' is not an address: it should be HOST:PORT, as in 127.0.0.1:9092")
    return host, number


def _listener(end: Endpoint, told: Endpoint | None, protocols: dict[str, str], hostname: str) -> Listener:
    protocol = protocols.get(end.name)
    if protocol is None:
        raise ConfigError(f"listener.security.protocol.map has no security protocol for the listener {end.name}")
    if protocol not in SERVED_PROTOCOLS:
        raise ConfigError(f"the listener {end.name} asks for {protocol}: only {', '.join(SERVED_PROTOCOLS)} is served")
    if told is None:
        told = Endpoint(end.name, hostname if end.host in EVERY_INTERFACE else end.host, end.port)
    elif told.host in EVERY_INTERFACE:
        raise ConfigError(f"advertised.listeners must name a host that clients can reach, not '{told.host}'")
    host = "" if end.host in ("0.0.0.0", "") else end.host
    return Listener(end.name, protocol, host, end.port, told.host, told.port)


def _endpoints(setting: str, texts: Sequence[str]) -> list[Endpoint]:
    found = []
    for text in texts:
        name, separator, address = text.strip().partition("://")
        if not separator or not name:
            raise ConfigError(
                f"{setting}: '{shortened(text)}' should be NAME://HOST:PORT, as in PLAINTEXT://127.0.0.1:9092"
            )
        try:
            host, port = parse_address(address)
        except ConfigError as error:
            raise ConfigError(f"{setting}: {error}") from None
        found.append(Endpoint(name.upper(), host, port))
    return found


def _all_different(setting: str, ends: Sequence[Endpoint]) -> None:
    names = [end.name for end in ends]
    if len(set(names)) != len(names):
        raise ConfigError(f"{setting}: each listener must have a different name, got {', '.join(names)}")
    addresses = [(end.host, end.port) for end in ends if end.port]
    if len(set(addresses)) != len(addresses):
        raise ConfigError(f"{setting}: each listener must have a different port")


def _protocols(text: str) -> dict[str, str]:
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not colon:
            raise ConfigError(f"listener.security.protocol.map: '{pair}' should be NAME:PROTOCOL")
        if protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(
                f"Invalid security protocol `{shortened(protocol.strip())}` defined in listener.security.protocol.map"
            )
        found[name.strip().upper()] = protocol.strip().upper()
    return found
