"""The command lines of ``headpond pipeline``: what is refused before anything starts, and what is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headpond.cli.main import main
from headpond.cli.pipeline.snapshot import until_offset
from headpond.cli.pipeline.spark import reason_of
from support.broker import headpond_environment

HEAVY = ("pyspark", "pyarrow", "numba", "numpy", "pandas", "headpond.spark.lake", "headpond.client")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["archive", "--to", "lake"], "give the topics to archive, or a --pattern for their names"),
        (["archive", "t", "--pattern", "t.*", "--to", "lake"], "give the topics to archive, or a --pattern"),
        (["archive", "t"], "--to is missing"),
        (["archive", "t", "--to", "l", "--file-size", "0"], "should be a number of bytes above 0"),
        (["archive", "t", "--to", "l", "--master", "local", "--remote", "sc://h"], "not allowed together with"),
        (["restore", "a", "b", "--from", "lake", "--as", "c"], "--as is the name for one topic"),
        (["restore"], "--from is missing"),
        (["snapshot", "t", "--to", "x", "--until-offset", "5", "--until-offset", "1:5"], "is for all partitions"),
        (["snapshot", "t", "--to", "x", "--until-offset", "a:b"], "should be a partition's number"),
        (["snapshot", "t", "--to", "x", "--until", "5", "--until-offset", "5"], "not allowed together with"),
        (["audit"], "TOPIC is missing"),
        (["audit", "t", "--as", "u"], "--as and --by are for a comparison"),
        (["audit", "t", "--against", "h:1", "--against-lake", "l"], "not allowed together with"),
        (["archive", "t", "--to", "l", "-b", "nonsense:x"], "--bootstrap-server: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "-b" in arguments:
        pytest.importorskip("pyarrow")
    try:
        code = main(["pipeline", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    assert code == 2 and said.out == ""
    assert says in said.err and len(said.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["archive", "restore", "snapshot", "audit"])
def test_help_imports_nothing_heavy(action: str) -> None:
    program = (
        "import sys\nfrom headpond.cli.main import main\n"
        f"try:\n    main(['pipeline', {action!r}, '--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["archive", "t", "--to", "lake"],
        ["restore", "t", "--from", "lake", "--as", "u"],
        ["snapshot", "t", "--to", "table"],
        ["audit", "t"],
    ],
    ids=lambda value: value[0],
)
def test_without_the_extra_it_says_what_to_install(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "lake/_lake/topics").mkdir(parents=True)
    (tmp_path / "lake/_lake/lake.json").write_text('{"id": "x", "format": 1}')
    (tmp_path / "lake/_lake/topics/t.json").write_text(
        '{"topic": "t", "cluster_id": "", "topic_id": "", "partitions": {"0": {"first_offset": 0, "next_offset": 1}}}'
    )
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'numba', 'numpy', 'pandas'):\n    sys.modules[name] = None\n"
        "from headpond.cli.main import main\n"
        "from headpond.testing import Broker\n"
        "with Broker() as broker:\n"
        "    broker.produce('t', ['x'])\n"
        f"    sys.exit(main(['pipeline', *{arguments!r}, '-b', broker.bootstrap_servers]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=headpond_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("headpond: ") and said.endswith("is not installed: pip install 'headpond[spark]'")


def test_an_offset_may_have_its_partition() -> None:
    assert until_offset("42") == (None, 42)
    assert until_offset("3:42") == (3, 42)


class FromSpark(Exception):
    """Like those of Spark."""


FromSpark.__module__ = "pyspark.errors.exceptions.captured"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Job aborted due to stage failure: Task 0 in stage 1.0 failed: org.apache.spark.api.python.PythonException:"
            ' Traceback (most recent call last):\n  File "worker.py", line 1\n    process()\n'
            "headpond.spark.kafka.errors.DataLost: records may have been missed: it is gone\n\n\tat java.lang.Thread",
            "records may have been missed: it is gone",
        ),
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: headpond.\nmore",
            "Failed to find the data source: headpond",
        ),
        ("", "FromSpark"),
    ],
)
def test_what_spark_says_becomes_one_sentence(text: str, sentence: str) -> None:
    assert reason_of(FromSpark(text)) == sentence
    assert reason_of(ValueError("plain")) == "plain"
