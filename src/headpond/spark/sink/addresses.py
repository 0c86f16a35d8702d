"""Addresses of folders (``s3://bucket/staging``): whether credentials are in one, and what of it may be shown.

An option is no place for a secret: Spark writes options into plans, pages and logs of events. Not everything before an
``@`` is one, though: ``abfss://container@account...`` and ``hdfs://anna@namenode`` are names.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)  # one letter would be a drive
_PORT = re.compile(r"(\[[^\]]*\])?[^:]*(:[0-9]*)?")
_SECRET_PARAMETER = re.compile(r"secret|passw|token|key|^sig$", re.IGNORECASE)
_HOLDS_KEYS_ONLY = ("s3", "s3a", "s3n")
"""Where there is nothing to be named before a bucket but keys."""


class _Parts(NamedTuple):
    scheme: str
    user: str
    """Before the ``@``; "" if there is none."""
    host: str
    query: str


def holds_credentials(location: str) -> bool:
    parts = _parts_of(location)
    if parts is None:
        return False
    if ":" in unquote(parts.user) or (parts.user and parts.scheme in _HOLDS_KEYS_ONLY):
        return True
    # A secret that has a slash in it, pasted as it is: what comes before the slash looks like a host and no port.
    if _PORT.fullmatch(parts.host) is None or (":" in parts.host and parts.scheme in _HOLDS_KEYS_ONLY):
        return True
    names = (parameter.partition("=")[0] for parameter in parts.query.split("&"))
    return any(_SECRET_PARAMETER.search(unquote(name)) for name in names)


def shown(location: str) -> str:
    """For messages: a path as it is; of an address the scheme and the host, or the bucket, and no user."""
    parts = _parts_of(location)
    if parts is None:
        return location if location.startswith("/") else "..."
    return f"{parts.scheme}://..." if holds_credentials(location) else f"{parts.scheme}://{parts.host}/..."


def _parts_of(location: str) -> _Parts | None:
    """None: a path, or nothing that anybody could open."""
    found = _SCHEME.match(location)
    if found is None:
        return None
    rest = location[found.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    return _Parts(found[1].lower(), user, host, rest.partition("?")[2])
