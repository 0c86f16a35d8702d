"""What can go wrong between bytes and messages: the peer's mistake, or ours."""

from __future__ import annotations


class ProtocolError(Exception):
    """The root of this package's errors."""


class MalformedMessage(ProtocolError):
    """The peer's mistake: these bytes are no message of that kind. Nothing has been done; close the connection."""


class UnsupportedField(ProtocolError):
    """Our mistake: the message holds a value that the version to be written cannot carry and may not drop."""


class UnsupportedVersion(ProtocolError):
    """That message does not exist in that version."""
