"""The guide to pipelines does what it says."""

from __future__ import annotations

import re
from pathlib import Path

from docs.guide import steps_of
from docs.test_guides import GUIDES, Terminal
from headpond.spark.pipeline.load import load_pipeline
from spark.test_spark_guide import terminal

__all__ = ["terminal"]  # the fixture

GUIDE = GUIDES / "pipelines.md"


def test_the_guide_to_pipelines_does_what_it_says(terminal: Terminal, tmp_path: Path) -> None:
    ((name, text),) = re.findall(r"^```toml\n# (\S+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / name).write_text(text)
    for step in steps_of(GUIDE):
        terminal.do(step)


def test_the_python_form_in_the_guide_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```py\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "p.py").write_text(text)
    assert load_pipeline(str(tmp_path / "p.py")).steps[0].name == "sums"
