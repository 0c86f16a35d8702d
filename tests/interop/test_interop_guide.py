"""The guide's programs in other languages, as they stand there, with our broker."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from interop.programs import CLASSPATH, HERE, RUN_S, needs_kafka, prepared, require
from support.broker import BrokerProcess

pytestmark = pytest.mark.interop

GUIDE = HERE.parents[1] / "docs" / "guides" / "clients.md"


def program(language: str, broker: BrokerProcess) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found).replace("127.0.0.1:9092", broker.bootstrap_servers)


def output_of(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@needs_kafka
def test_the_one_in_java(broker: BrokerProcess, tmp_path: Path) -> None:
    (tmp_path / "Spices.java").write_text(program("java", broker))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    assert output_of(["java", quiet, "-cp", CLASSPATH, "Spices.java"], tmp_path) == "k cumin"


def test_the_one_in_go(broker: BrokerProcess, tmp_path: Path) -> None:
    require("go")
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go" / name, tmp_path)
    (tmp_path / "main.go").write_text(program("go", broker))
    assert output_of(["go", "run", "."], tmp_path) == "k ginger"


def test_the_one_in_javascript(broker: BrokerProcess) -> None:
    require("npm")
    require("node", " 20.19 or newer")
    folder = prepared("js", sorted((HERE / "js").iterdir()), ["npm", "ci", "--no-audit", "--no-fund"])
    (folder / "guide.mjs").write_text(program("javascript", broker))
    assert output_of(["node", "guide.mjs"], folder) == "k sesame"
