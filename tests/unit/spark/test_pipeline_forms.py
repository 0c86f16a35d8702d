"""Declarations in YAML and in Python say what those in TOML say, and their mistakes have lines, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.spark.pipeline.load import load_pipeline
from unit.spark.declarations import mistakes, written

YAML = """\
name: sessions
source:
  clicks:
    topic: clicks
    format: json
    schema: user STRING
step:
  counted:
    sql: |
      SELECT user
      FROM clicks
sink:
  out:
    from: counted
    console: true
"""


def test_yaml_says_the_same(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    pipeline = load_pipeline(written(tmp_path, YAML, "p.yaml"))
    assert (pipeline.name, pipeline.sinks[0].kind) == ("sessions", "console")
    assert mistakes(tmp_path, YAML.replace("FROM clicks", "FROM clics"), "p.yaml") == [
        "p.yaml:11: step counted: reads from clics, and there is no such source or step (did you mean clicks?)"
    ]
    assert mistakes(tmp_path, YAML.replace("    topic: clicks", "    topic: a\n    topic: b"), "p.yaml") == [
        "p.yaml:5: topic stands here twice"
    ]
    assert mistakes(tmp_path, YAML.replace("name: sessions", "name: [a"), "p.yaml")[0].startswith(
        "p.yaml:2: this is no YAML"
    )


AVRO_YAML = YAML.replace(
    "format: json\n    schema: user STRING",
    "format: avro\n    framing: confluent\n    schema_file: a.avsc\n    writer_schemas: {1: old.avsc, 2: a.avsc}",
)
AVRO_SCHEMA = '{"type": "record", "name": "Click", "fields": [{"name": "user", "type": "string"}]}'


def test_keys_of_yaml_that_look_like_numbers_and_truths_are_text(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    for name in ("a.avsc", "old.avsc"):
        (tmp_path / name).write_text(AVRO_SCHEMA)
    pipeline = load_pipeline(written(tmp_path, AVRO_YAML, "p.yaml"))
    assert pipeline.sources[0].format.writer_schemas == {1: AVRO_SCHEMA, 2: AVRO_SCHEMA}
    assert mistakes(tmp_path, YAML.replace("    console: true", "    console: true\n    on: x"), "p.yaml") == [
        "p.yaml:16: sink out: there is no key on here"
    ]
    assert mistakes(tmp_path, YAML + "1: x\n", "p.yaml") == ["p.yaml:16: there is no key 1 here"]
    merged = YAML.replace("sink:\n  out:\n", "sink:\n  out:\n    <<: {mode: update}\n")
    assert load_pipeline(written(tmp_path, merged, "p.yaml")).sinks[0].mode == "update"


def test_yaml_that_can_be_no_value_is_told_with_its_line(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    assert mistakes(tmp_path, YAML.replace("topic: clicks", "topic: 2026-13-01"), "p.yaml") == [
        "p.yaml:4: 2026-13-01 can't be read: month must be in 1..12"
    ]
    assert mistakes(tmp_path, YAML + "spark: &a\n  b: *a\n", "p.yaml") == ["p.yaml:17: b holds itself"]
    assert mistakes(tmp_path, YAML + "? [a]\n: b\n", "p.yaml")[0].startswith("p.yaml:16: this is no YAML")


PYTHON = """\
from headpond.spark.pipeline import Pipeline

pipeline = Pipeline("sessions", trigger="1 minute")
pipeline.source("clicks", topic="clicks", format="json", schema="user STRING")


@pipeline.step
def counted(clicks):
    return clicks


pipeline.sink("out", from_="counted", console=True)
"""


def test_python_says_the_same(tmp_path: Path) -> None:
    pipeline = load_pipeline(written(tmp_path, PYTHON, "p.py"))
    assert (pipeline.trigger, pipeline.steps[0].name, pipeline.sinks[0].input) == ("1 minute", "counted", "counted")
    assert mistakes(tmp_path, PYTHON.replace('"counted", console', '"count", console'), "p.py") == [
        "p.py:12: sink out: from is 'count', and there is no such source or step (did you mean counted?)"
    ]
    assert mistakes(tmp_path, PYTHON.replace("return clicks", "return (")[:-1] + "oops", "p.py")[0].startswith(
        "p.py:9: Syntax"
    )
    assert mistakes(tmp_path, PYTHON + "oops()\n", "p.py") == ["p.py:13: NameError: name 'oops' is not defined"]
    assert mistakes(tmp_path, "x = 1\n", "p.py") == [
        "p.py:1: this file has no `pipeline`: it should say pipeline = Pipeline(NAME)"
    ]


def test_keys_that_python_has_as_numbers_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(AVRO_SCHEMA)
    avro = 'format="avro", framing="confluent", schema_file="a.avsc", writer_schemas={7: "a.avsc"}'
    text = PYTHON.replace('format="json", schema="user STRING"', avro)
    pipeline = load_pipeline(written(tmp_path, text, "p.py"))
    assert pipeline.sources[0].format.writer_schemas == {7: AVRO_SCHEMA}
    assert mistakes(tmp_path, PYTHON.replace('"1 minute"', '"1 minute", broker={True: 1}'), "p.py") == [
        "p.py:3: broker: there is no key True here"
    ]
    assert mistakes(tmp_path, PYTHON.replace('sink("out"', 'sink(("a", "b")'), "p.py")[0].startswith("p.py:12: ")


def test_yaml_that_stands_for_more_than_it_has_lines_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for number in range(1, 10):
        laughs += f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n"
    (found,) = mistakes(tmp_path, laughs, "p.yaml")
    assert "it has more than 20,000 values" in found
    merged = "a0: &a0 {k: v}\n"
    for number in range(1, 10):
        merged += f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 10)}]}}\n"
    (found,) = mistakes(tmp_path, merged, "p.yaml")
    assert "it has more than 20,000 values" in found


@pytest.mark.parametrize(
    ("name", "text"), [("p.yaml", "name: " + "[" * 5_000), ("p.toml", "name = " + "[" * 5_000 + "]" * 5_000)]
)
def test_what_is_nested_too_deeply_is_told(tmp_path: Path, name: str, text: str) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    (found,) = mistakes(tmp_path, text, name)
    assert found == f"{name}:1: this is no pipeline: it is nested too deeply"


def test_a_number_that_is_too_long_is_told(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "name = " + "1" * 5_000)[0].startswith("p.toml:1: this is no TOML: Exceeds the limit")


def test_a_mistake_is_one_line_whatever_its_names_are(tmp_path: Path) -> None:
    text = 'name = "p"\n[source."a\\nb"]\n[sink."../x"]\n"k\\u0000y" = 1\n'
    found = mistakes(tmp_path, text)
    assert any("source a\\nb: " in one for one in found) and any("k\\x00y" in one for one in found)
    assert all("\n" not in one and "\0" not in one for one in found)
    assert any("'../x' is no name for a sink" in one for one in found)
