"""The command line and a real Kafka: its folders are read and found sound, its broker is served as our own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.folders import Written, write
from interop.oracle import Oracle
from interop.programs import needs_kafka
from support.cli import Cli

pytestmark = [pytest.mark.interop, needs_kafka]
headpond = Cli("127.0.0.1:1")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write(tmp_path_factory.mktemp("cli-folders"))


@pytest.mark.parametrize("copied", ["closed", "running"])
def test_folders_that_a_kafka_wrote_have_no_fault(written: Written, copied: str) -> None:
    source: Path = getattr(written, copied)
    report = headpond.ok("log", "verify", source, "--records", "--json").document
    assert report["faults"] == [] and report["batches"] > 0
    lines = headpond.ok("log", "dump", source, "--records", "--json").lines
    kinds = {line["kind"] for line in lines}
    assert kinds >= {"batch", "record", "entry", "producer", "line"}
    codecs = {line["codec"] for line in lines if line["kind"] == "batch" and "codecs-0" in line["file"]}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    markers = [line["marker"] for line in lines if line["kind"] == "record" and "marker" in line]
    assert {"commit", "abort"} <= set(markers)


def test_damage_in_a_folder_of_a_kafka_is_named(written: Written, tmp_path: Path) -> None:
    folder = tmp_path / "segments-0"
    shutil.copytree(written.closed / "segments-0", folder)
    segment = min(folder.glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[70] ^= 0xFF
    segment.write_bytes(data)
    said = headpond("log", "verify", folder, "--json")
    (fault,) = json.loads(said.out)["faults"]
    assert said.code == 1 and fault["path"] == str(segment) and "the CRC is" in fault["what"]


def test_a_kafka_is_worked_with_as_our_own_broker(make_kafka: Callable[..., Oracle], tmp_path: Path) -> None:
    cli = Cli(make_kafka(tmp_path / "kafka").start().bootstrap_servers)
    cli.ok("topics", "create", "orders", "--partitions", 2, "--config", "retention.ms=86400000")
    cli.ok("topics", "alter", "orders", "--partitions", 3, "--config", "segment.bytes=2000000")
    row = {"key": "k", "value": "v", "headers": [{"key": "h", "value_base64": "/w=="}], "timestamp": 1_700_000_000_000}
    cli.ok("produce", "orders", "--json", "--compression", "zstd", stdin=json.dumps({**row, "partition": 2}))
    (found,) = cli.ok("consume", "orders", "--json", "--timestamp", "2023-01-01").lines
    assert {name: found[name] for name in row} == row and found["partition"] == 2
    (described,) = cli.ok("topics", "describe", "orders", "--json").document
    assert [one["end_offset"] for one in described["partitions"]] == [0, 0, 1]
    assert "did you mean orders?" in cli("consume", "ordres").failed_with(1)
    assert cli.ok("bench", "produce", "--records", 500, "--json").document["records"] == 500
    assert cli.ok("bench", "consume", "--records", 500, "--json").document["records"] == 500
    cli.ok("topics", "delete", "orders")
    assert [one["name"] for one in cli.ok("topics", "list", "--json").document] == []
