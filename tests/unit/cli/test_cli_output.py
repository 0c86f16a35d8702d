"""What the command says: addresses that can be pasted, errors in words, and no complaint about a reader that left."""

from __future__ import annotations

import errno
import shlex
import subprocess
from pathlib import Path

import pytest

from headpond.cli.common.failures import in_words
from support.broker import BrokerProcess, headpond_command, headpond_environment, run_headpond


def test_an_error_of_the_system_is_said_without_its_number_and_with_its_file() -> None:
    assert in_words(FileNotFoundError(errno.ENOENT, "No such file or directory", "/a/b")) == (
        "/a/b: No such file or directory"
    )
    assert in_words(OSError(errno.EADDRINUSE, "127.0.0.1:9092 is in use")) == "127.0.0.1:9092 is in use"
    assert in_words(ValueError("anything else")) == "anything else"


def test_a_refused_start_is_one_line_without_error_numbers(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file"))
    assert len(done.stderr.splitlines()) == 1 and "Errno" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_the_caller_closed_is_no_reason_to_crash(broker: BrokerProcess, closed: str) -> None:
    """A socket would get the stream's number, and libuv aborts the process that closes such a one."""
    command = shlex.join(headpond_command("topics", "list", "-b", broker.bootstrap_servers))
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], env=headpond_environment(None), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_a_character_set_lacks_is_no_traceback() -> None:
    environment = headpond_environment({"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    done = subprocess.run(headpond_command("--help"), env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"") and "exit codes: 0 done · 1 failed".encode() in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    process = subprocess.Popen(
        headpond_command("config", "--all"),
        env=headpond_environment(None),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait(30)) == (b"", 0)
    process.stderr.close()
