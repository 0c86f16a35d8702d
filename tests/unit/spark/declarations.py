"""Declarations of pipelines in files, and the mistakes that are found in them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from headpond.spark.pipeline.load import load_pipeline
from headpond.spark.pipeline.mistakes import WrongDeclaration

VARIABLES = {"HOST": "10.0.0.1", "PASSWORD": "pa55w0rd"}


def written(folder: Path, text: str, name: str = "p.toml") -> str:
    file = folder / name
    file.write_text(textwrap.dedent(text))
    return str(file)


def mistakes(folder: Path, text: str, name: str = "p.toml") -> list[str]:
    file = written(folder, text, name)
    with pytest.raises(WrongDeclaration) as caught:
        load_pipeline(file, VARIABLES)
    return [str(one).removeprefix(f"{folder}/") for one in caught.value.mistakes]
