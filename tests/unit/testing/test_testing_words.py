"""What reaches a broker under test from the test's surroundings, and in which words."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, get_args

import pytest

import headpond.testing
from headpond.testing.command import SOURCE, headpond_command, headpond_environment
from headpond.testing.errors import BrokerFailed
from headpond.testing.sendable import Record, StoredRecord, whole
from headpond.testing.topics import create_topic
from headpond.testing.values import as_text


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, "true"), (False, "false"), (5, "5"), ("compact", "compact"), (["compact", "delete"], "compact,delete")],
)
def test_a_setting_is_said_as_a_broker_reads_it(value: object, said: str) -> None:
    assert as_text(value) == said


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ("text", r"takes a list of records, not the str 'text'\. A record is a value"),
        (b"data", "not the bytes b'data'"),
        ({"key": "value"}, "not the dict {'key': 'value'}"),
        (5, "not the int 5"),
        (None, "not the NoneType None"),
        (Record("one"), "not the Record "),
        (StoredRecord(b"one", None, (), 0, 0, 0, "t"), "not the StoredRecord "),
        (
            ("key", "value"),
            r"one record with key and value is \[\('key', 'value'\)\], two records are \['key', 'value'\]",
        ),
        ([5], "record 0 is the int 5: it should be a value"),
        (["a", {"b": 1}], "record 1 is the dict {'b': 1}: it should be a value"),
        ([None], "record 0 is the NoneType None"),
        ([("a", "b", "c")], "record 0 is the tuple "),
        ([["a", "b"]], "record 0 is the list "),
        ([("key", 5)], "the value of record 0 is the int 5: it should be str, bytes or None"),
        ([(5, "value")], "the key of record 0 is the int 5"),
        ([Record({"a": 1})], "the value of record 0 is the dict"),
        ([Record("x", headers="ab")], "the headers of record 0 are the str 'ab'"),
        ([Record("x", headers=["ab"])], "a header of record 0 is the str 'ab'"),
        ([Record("x", headers={"a": 5})], "the header 'a' of record 0 is the int 5"),
        ([Record("x", partition="1")], "the partition of record 0 is the str '1'"),
        ([Record("x", timestamp_ms=1.5)], "the timestamp_ms of record 0 is the float 1.5"),
    ],
)
def test_what_is_no_list_of_records_is_refused_with_a_sentence(records: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        whole(records)


@pytest.mark.parametrize(
    "records", [["a", ("k", "v")], ("a", "b", "c"), (("k", "v"), "b"), (each for each in ["a"]), {"a"}, []]
)
def test_any_iterable_of_records_is_taken(records: Any) -> None:
    assert all(isinstance(record.value, bytes) for record in whole(records))


def test_settings_for_tests_and_for_other_brokers_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADPOND_BROKER_ID", "PYTHONWARNINGS", "PYTHONDEVMODE", "COVERAGE_PROCESS_START"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LANG", "C")
    found = headpond_environment({"HEADPOND_FLUSH": "os"})
    assert (found["LANG"], found["HEADPOND_FLUSH"]) == ("C", "os")
    assert not {"HEADPOND_BROKER_ID", "PYTHONWARNINGS", "PYTHONDEVMODE", "COVERAGE_PROCESS_START"} & found.keys()


def test_the_broker_is_of_the_headpond_that_the_tests_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert headpond_environment()["PYTHONPATH"] == os.pathsep.join([str(SOURCE), "elsewhere"])
    assert Path(headpond.testing.__file__).parents[2] == SOURCE


def test_an_installed_one_needs_no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("headpond.testing.command.SOURCE", tmp_path / "site-packages")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "PYTHONPATH" not in headpond_environment()


def test_a_module_in_the_current_folder_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("raise ImportError('not the one that was meant')")
    done = subprocess.run(
        headpond_command("--version"), cwd=tmp_path, env=headpond_environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plugin_imports_nothing_before_a_fixture_is_asked_for() -> None:
    script = """
import sys, pytest, _pytest.config
before = set(sys.modules)
import headpond.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], env=headpond_environment(), capture_output=True, text=True)
    assert done.stdout.split() == ["headpond", "headpond.testing", "headpond.testing.plugin"], done.stderr


def test_what_the_package_promises_is_there() -> None:
    classes = [name for name in headpond.testing.__all__ if name != "Sendable"]
    assert [getattr(headpond.testing, name).__name__ for name in classes] == classes
    assert headpond.testing.Record in get_args(headpond.testing.Sendable)
    with pytest.raises(AttributeError, match="no attribute 'Brokers'"):
        headpond.testing.Brokers  # noqa: B018


def test_a_broker_that_hangs_up_is_said_to_have_given_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        hanging_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging_up.start()
        with pytest.raises(BrokerFailed, match=f"no answer from 127.0.0.1:{address[1]} to the creation of topic 't'"):
            create_topic(address, "t", 1, {})
        hanging_up.join()
