"""``host:port,host:port``, as people write where a cluster is."""

from __future__ import annotations

from headpond.client.connection import Address

PORT_DEFAULT = 9092


def parse_bootstrap(text: str) -> list[Address]:
    """``a:9092,b`` or ``[::1]:9092``; without a port it is 9092. Raises ``ValueError`` that says what is wrong."""
    addresses = [_parse_one(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no broker is named: write HOST:PORT")
    return list(dict.fromkeys(addresses))


def _parse_one(text: str) -> Address:
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text} is no address: write [HOST]:PORT")
        port = rest[1:]
        has_port = bool(rest)
    elif text.count(":") > 1:
        raise ValueError(f"{text} is no address: write an IPv6 address as [{text}]:{PORT_DEFAULT}")
    else:
        host, colon, port = text.partition(":")
        has_port = bool(colon)
    if not host:
        raise ValueError(f"{text} names no host: write HOST:PORT")
    if not has_port:
        return Address(host, PORT_DEFAULT)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise ValueError(f"{text}: {port or 'nothing'} is no port, which is a number from 1 to 65535")
    return Address(host, int(port))
