"""What a start leaves out is imported soon after it: no request waits for, or depends on, the files of a module."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from headpond.broker.start import later
from headpond.coordination.slices import finish_now

PROGRAM = """
import sys
import headpond.cli.serve.run
from headpond.broker.start import later
from headpond.broker.requests.routes import Route
from headpond.protocol.apis import SERVED
from headpond.coordination.slices import finish_now
from headpond.protocol.apis import APIS
from headpond.runtime.code_files import KeptCodeFiles
from headpond.telemetry.requests import RequestMeters

finish_now(later.imported((*later.MODULES, *KeptCodeFiles.later_modules)))
before = set(sys.modules)
for key in SERVED.keys() - {0, 1}:  # Produce and Fetch are there from the start
    for version in APIS[key].versions:
        route = Route(key, version, RequestMeters().of(APIS[key].name))
        route.decode_in_slices(b"", 0)
        route.append_in_slices(bytearray(), None)
print(sorted(set(sys.modules) - before))
"""


def test_nothing_is_imported_for_the_first_request_of_any_api() -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True).stdout
    assert output.strip() == "[]"


def test_modules_are_imported_one_in_each_slice() -> None:
    assert sum(1 for _ in later.imported(["json", "string"])) == 2


ONE_AT_A_TIME = """
import sys
from importlib import import_module
import headpond.cli.serve.run
from headpond.broker.start import later

for name in later.MODULES:
    before = set(sys.modules)
    import_module(name)
    brought = set(sys.modules) - before - {name}
    if others := [new for new in brought if not hasattr(sys.modules[new], "__path__")]:  # our packages are empty
        print(name, "brings", others)
"""


def test_no_module_brings_along_others_that_have_no_slice_of_their_own() -> None:
    output = subprocess.run([sys.executable, "-c", ONE_AT_A_TIME], capture_output=True, check=True, text=True).stdout
    assert output == ""


def test_a_module_that_is_not_there_keeps_no_other_from_being_imported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    finish_now(later.imported(["headpond.nothing", "string"]))
    assert "headpond.nothing can't be imported" in caplog.text and "everything is imported" in caplog.text


def test_a_module_that_is_broken_keeps_no_other_from_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "half_a_module.py").write_text("def half(")
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level(logging.DEBUG)
    finish_now(later.imported(["half_a_module", "string"]))
    assert "half_a_module can't be imported" in caplog.text and "everything is imported" in caplog.text
