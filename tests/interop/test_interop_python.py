"""Older releases of the Python clients, unchanged, and a stream processor: each in an environment of its own.

A program prints what it saw; here is what is right, which is what it prints with a real Kafka.
"""

from __future__ import annotations

import sys
import uuid
from typing import Any

import pytest

from interop.programs import HERE, prepared, require, run
from support.broker import BrokerProcess

pytestmark = pytest.mark.interop

FIRST_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CODEC_PACKAGES = ["lz4", "python-snappy", "zstandard", "cramjam"]

ONLY_PYTHON_3_11 = {"kafka-python==2.0.2", "aiokafka==0.8.1", "confluent-kafka==2.0.2"}
"""They were released before there was a newer one, and do not run there."""

OLDER = [
    ("kafka_python", ["kafka-python==2.0.2", *CODEC_PACKAGES]),
    ("kafka_python", ["kafka-python==2.1.6", *CODEC_PACKAGES]),
    ("kafka_python", ["kafka-python==2.3.3", *CODEC_PACKAGES]),
    ("aio", ["aiokafka==0.8.1", "kafka-python==2.0.2", *CODEC_PACKAGES]),
    ("aio", ["aiokafka==0.11.0", *CODEC_PACKAGES]),
    ("confluent", ["confluent-kafka==2.0.2"]),
    ("confluent", ["confluent-kafka==2.6.1"]),
]


def said(program: str, packages: list[str], broker: BrokerProcess) -> dict[str, Any]:
    """What the program printed, by check."""
    folder = prepared(
        f"{packages[0]}-python{sys.version_info.minor}",
        [HERE / "python" / f"{program}.py"],
        [sys.executable, "-m", "venv", "venv"],
        ["venv/bin/pip", "install", "-q", "--disable-pip-version-check", "--only-binary=:all:", *packages],
    )
    command = [str(folder / "venv/bin/python"), str(folder / f"{program}.py")]
    return {
        line["check"]: line["found"] for line in run([*command, broker.bootstrap_servers, f"p-{uuid.uuid4().hex[:8]}"])
    }


@pytest.mark.parametrize(("program", "packages"), OLDER, ids=lambda v: v if isinstance(v, str) else v[0])
def test_an_older_client_writes_every_codec_and_a_group_of_it_reads_everything_once(
    request: pytest.FixtureRequest, program: str, packages: list[str]
) -> None:
    require("python3")
    if packages[0] in ONLY_PYTHON_3_11 and sys.version_info >= (3, 12):
        pytest.skip(f"{packages[0]} needs Python 3.11 or older")
    found = said(program, packages, request.getfixturevalue("broker"))
    for turn, codec in enumerate(CODECS):
        assert found[f"produced-{codec}"] == list(range(turn * 8, turn * 8 + 8))
    assert found["read"] == [[n, FIRST_MS + n % 8, "key", f"value {n % 8}", "h"] for n in range(40)]
    assert (found["by_timestamp"], found["deleted"]) == (5, 0)


def test_quix_streams_counts_exactly_once_and_takes_its_state_from_the_changelog(
    request: pytest.FixtureRequest,
) -> None:
    require("python3")
    found = said("quix", ["quixstreams==3.28.1"], request.getfixturevalue("broker"))
    assert len(found["changelog"]) == 1
    assert found["counted"] == {f"k{n}": list(range(1, 21)) for n in range(3)}
