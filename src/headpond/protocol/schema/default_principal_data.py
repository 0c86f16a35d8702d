"""A principal as a delegation token or a forwarded request carries it."""

from __future__ import annotations

from headpond.protocol.types import Message, versions


class DefaultPrincipalData(Message):
    VERSIONS = versions(0, 0)
    FLEXIBLE = 0

    type: str = ""
    name: str = ""
    token_authenticated: bool = False
