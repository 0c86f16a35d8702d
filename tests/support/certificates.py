"""Certificates for one test run, made by the ``openssl`` command: an authority, and what it has signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is not installed")
DAYS = "2"
KEY_PASSWORD = "opens-the-key"


class Certificate(NamedTuple):
    path: Path
    key: Path
    both: Path
    """Key and certificate in one file, as Kafka's PEM stores have it."""


class Authority:
    """``Authority(folder)`` trusts itself; ``certificate`` makes one more that it has signed."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        extensions = ["-addext", "keyUsage=critical,keyCertSign"]
        _openssl("req", "-x509", *_new_key(self._key), "-out", self.path, "-days", DAYS, *_subject(name), *extensions)

    def certificate(self, name: str, hosts: str = "DNS:localhost,IP:127.0.0.1") -> Certificate:
        path, key, request = (self._folder / f"{name}.{kind}" for kind in ("pem", "key", "request"))
        extensions = self._folder / f"{name}.extensions"
        extensions.write_text(f"subjectAltName={hosts}\n")
        _openssl("req", *_new_key(key), "-out", request, *_subject(name))
        signed_by = ("-CA", self.path, "-CAkey", self._key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, "-out", path, "-days", DAYS, *signed_by, "-extfile", extensions)
        both = self._folder / f"{name}.both.pem"
        both.write_text(key.read_text() + path.read_text())
        return Certificate(path, key, both)


def locked(key: Path) -> Path:
    """The same key behind ``KEY_PASSWORD``."""
    path = key.with_suffix(".locked")
    _openssl("pkcs8", "-topk8", "-in", key, "-out", path, "-passout", f"pass:{KEY_PASSWORD}")
    return path


def _new_key(path: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path)


def _subject(name: str) -> tuple[str, str]:
    return "-subj", f"/CN={name}"


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
