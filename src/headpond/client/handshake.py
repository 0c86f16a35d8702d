"""What goes wrong when a connection is made safe, in words; and whether trying again could help.

Python's ``ssl`` says why in attributes of its errors (``verify_code``, ``reason``); they are read without that module,
which costs time to import, and which only ``runtime`` may use.
"""

from __future__ import annotations

from headpond.client.errors import BrokerUnreachable, ClientError, SecurityFailed
from headpond.client.security import Security
from headpond.ports import TlsMisconfigured
from headpond.protocol.frame import InvalidFrameSize

OTHER_HOST = (62, 64)
UNKNOWN_ISSUER = (2, 18, 19, 20, 21)
"""OpenSSL's numbers of what is wrong with a certificate."""
NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
TLS_ALERT = b"\x15\x03"
"""How a peer with TLS begins that does not understand us."""

_RIGHT = "is security.protocol right?"
_OURS = "ssl.keystore.location or ssl.certificate.location names ours"


def security_failure(error: Exception | None, address: str, security: Security) -> ClientError | None:
    """None: it has nothing to do with security."""
    if isinstance(error, InvalidFrameSize) and error.first_bytes.startswith(TLS_ALERT):
        return SecurityFailed(f"{address} speaks TLS, and we did not: {_RIGHT}")
    if security.tls is None or not isinstance(error, OSError):
        return None
    if isinstance(error, TlsMisconfigured):
        return SecurityFailed(f"TLS can't be spoken: {error}")
    if (code := getattr(error, "verify_code", None)) is not None:
        return SecurityFailed(_about_certificate(code, getattr(error, "verify_message", ""), address))
    reason = str(getattr(error, "reason", None) or "")
    if reason in NOT_TLS:
        return SecurityFailed(f"{address} does not speak TLS: {_RIGHT}")
    if "ALERT" in reason:
        return SecurityFailed(_about_alert(reason, address))
    if reason and "EOF" not in reason:
        return SecurityFailed(f"TLS with {address} failed: {reason.replace('_', ' ').lower()}")
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError) or "EOF" in reason:
        # Perhaps it was just being stopped: that is worth another try.
        return BrokerUnreachable(f"{address} broke off the TLS handshake: does it speak TLS? {_RIGHT}")
    return None


def silent_end(address: str) -> ClientError:
    """TLS came about, and then the peer closed. Some who miss our certificate do that without a reason, or it is lost
    on the way; so does one that is being stopped, for which it is worth another try."""
    return BrokerUnreachable(
        f"{address} closed the connection behind the TLS handshake: perhaps it wants a certificate of ours that it "
        f"trusts ({_OURS}); {_RIGHT}"
    )


def _about_certificate(code: int, message: str, address: str) -> str:
    if code in OTHER_HOST:
        return f"{address} has a certificate for another host: ask for it by a name that is in there"
    more = ": ssl.truststore.location or ssl.ca.location names whom to trust" if code in UNKNOWN_ISSUER else ""
    return f"the certificate of {address} is not to be trusted ({message}){more}"


def _about_alert(reason: str, address: str) -> str:
    words = reason.partition("ALERT_")[2].replace("_", " ").lower()
    if words in ("certificate required", "bad certificate", "handshake failure", "unknown ca", "certificate unknown"):
        return f"{address} wants a certificate of ours that it trusts ({words}): {_OURS}"
    return f"{address} refuses TLS with us ({words})"
