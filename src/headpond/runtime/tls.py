"""From ``ports.Tls`` to OpenSSL's context of a client. Raises ``TlsMisconfigured``, one sentence without secrets."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from headpond.ports import Tls, TlsMisconfigured

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def context_of(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.is_host_checked
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if known := [VERSIONS[name] for name in tls.versions]:
        context.minimum_version, context.maximum_version = min(known), max(known)
    _trust(context, tls)
    _identify(context, tls)
    return context


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    if tls.trusted_path is None and tls.trusted_pem is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    path = tls.trusted_path
    try:
        if path is not None and os.path.isdir(path):
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path, cadata=tls.trusted_pem)
    except ssl.SSLError:
        what = "the certificates to trust" if path is None else path
        raise TlsMisconfigured(f"{what}: no certificates in PEM") from None
    except OSError as error:
        raise TlsMisconfigured(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _identify(context: ssl.SSLContext, tls: Tls) -> None:
    if tls.certificate_pem is not None:
        with _as_file(tls.certificate_pem) as path:
            _load(context, path, None, tls, "our own certificate")
    elif tls.certificate_path is not None:
        _load(context, tls.certificate_path, tls.key_path, tls, tls.key_path or tls.certificate_path)


def _load(context: ssl.SSLContext, path: str, key_path: str | None, tls: Tls, what: str) -> None:
    asked: list[None] = []

    def password() -> str:
        """Always there, or OpenSSL would ask for one at the terminal."""
        asked.append(None)
        return tls.key_password or ""

    try:
        context.load_cert_chain(path, key_path, password=password)
    except ssl.SSLError as error:
        raise TlsMisconfigured(f"{what}: {_reason(error, tls, is_locked=bool(asked))}") from None
    except OSError as error:
        missing = next((one for one in (path, key_path) if one is not None and not os.access(one, os.R_OK)), path)
        raise TlsMisconfigured(f"{missing}: {(error.strerror or str(error)).lower()}") from None


def _reason(error: ssl.SSLError, tls: Tls, *, is_locked: bool) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the certificate"
    if not is_locked:
        return "no certificate with its private key in PEM"
    if tls.key_password is None:
        return "the private key has a password, and ssl.key.password is missing"
    return "ssl.key.password does not open the private key"


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Python's ``ssl`` reads keys from files only: one in memory where the system has that, else one that only we can
    read, and only for this moment."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("headpond-key")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        yield file.name
