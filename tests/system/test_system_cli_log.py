"""``headpond log`` on the folders of a broker that runs, was stopped, was killed; and on files that can't be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.broker import BrokerProcess, headpond_command, headpond_environment
from support.cli import Cli


@pytest.fixture
def filled(make_broker: Callable[..., BrokerProcess]) -> tuple[BrokerProcess, Cli]:
    """A broker with several segments, codecs and producers, some index entries among them."""
    broker = make_broker().start()
    cli = Cli(broker.bootstrap_servers)
    cli.ok("topics", "create", "orders", "--partitions", 2, "--config", "segment.bytes=1048576")
    for compression in ("none", "zstd", "gzip"):
        cli.ok("bench", "produce", "--topic", "orders", "--records", "4k", "--compression", compression)
    cli.ok("produce", "orders", "-q", "-k", ":", stdin="".join(f"k{n}:v{n}\n" for n in range(1_000)))
    return broker, cli


def test_a_broker_s_folder_has_no_fault_while_it_runs_after_it_was_killed_and_after_it_stopped(
    filled: tuple[BrokerProcess, Cli],
) -> None:
    broker, cli = filled

    def check() -> None:
        report = cli.ok("log", "verify", broker.data_dir, "--records", "--json").document
        assert (report["faults"], report["partitions"], report["records"]) == ([], 2, 13_000)

    check()
    broker.kill()
    check()
    broker.start()
    broker.stop()
    check()
    assert len(list(broker.data_dir.rglob("*.index"))) > 2, "indexes were verified, too"
    lines = cli.ok("log", "dump", broker.data_dir, "--records", "--json").lines
    assert sum(line["kind"] == "record" for line in lines) == 13_000
    assert {line["kind"] for line in lines} >= {"batch", "record", "entry", "producer", "line"}


def test_a_reader_of_a_dump_that_has_seen_enough_is_no_failure(filled: tuple[BrokerProcess, Cli]) -> None:
    broker, _ = filled
    process = subprocess.Popen(
        headpond_command("log", "dump", str(broker.data_dir), "--records"),
        env=headpond_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait(30)) == (b"", 0)
    process.stderr.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(filled: tuple[BrokerProcess, Cli]) -> None:
    broker, cli = filled
    secret: Path = next(broker.log_folder("orders").glob("*.log"))
    secret.chmod(0)
    try:
        assert "Permission denied" in cli("log", "dump", secret).failed_with(1)
        (fault,) = cli("log", "verify", broker.data_dir, "--json").document["faults"]
        assert fault["path"] == str(secret) and "Permission denied" in fault["what"]
    finally:
        secret.chmod(0o644)


def test_what_is_no_file_at_all_is_refused(tmp_path: Path) -> None:
    cli = Cli("127.0.0.1:1")
    loop = tmp_path / f"{0:020d}.log"
    loop.symlink_to(loop)
    assert "there is no such file or folder" in cli("log", "dump", loop).failed_with(1)
    folder = tmp_path / f"{1:020d}.log"
    folder.mkdir()
    assert "no file of a broker in" in cli("log", "dump", folder).failed_with(1)
