"""Sessions: what is refused before Spark starts, and what is said of nodes that are not like this one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from penstock import __version__
from penstock.spark import session as sessions
from penstock.spark.java import Java
from penstock.spark.session import (
    NODE_TASKS_MAX,
    SessionFailed,
    check_nodes,
    end_session,
    start_session,
    use_a_java,
    use_this_python,
)
from spark.clusters import NO_PENSTOCK, OTHER_PENSTOCK, OTHER_PYTHON, python_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_session_has_a_master_or_a_remote_server() -> None:
    with pytest.raises(SessionFailed, match="not both"):
        start_session(master="local[1]", remote="sc://host")


def test_without_spark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SessionFailed, match=r"Spark is not installed: pip install 'penstock\[spark\]'"):
        start_session()


def test_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("pyspark")
    module.__version__ = "3.5.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark", module)
    with pytest.raises(SessionFailed, match=r"needs PySpark 4\.3 and this is 3\.5\.1"):
        start_session()


def test_this_python_is_used_unless_the_user_has_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_java", lambda: Java("/java", 17, "a test"))
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "JAVA_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "")
    use_this_python()
    use_a_java()
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert os.environ["JAVA_HOME"] == "/java"
    assert os.environ["PATH"] == os.defpath
    monkeypatch.setenv("PYSPARK_PYTHON", "/other/python")
    use_this_python()
    assert os.environ["PYSPARK_PYTHON"] == "/other/python"


def test_nodes_like_this_one_are_asked_by_many_tasks_and_are_fine(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("nodes", "the check of the nodes")
    check_nodes(spark)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    tracker = spark.sparkContext.statusTracker()
    jobs = filter(None, (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("nodes")))
    stages = filter(None, (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds))
    assert max(stage.numCompletedTasks for stage in stages) == NODE_TASKS_MAX


def test_another_penstock_on_a_node_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "__version__", "9.9")
    with pytest.raises(SessionFailed) as caught:
        check_nodes(spark)
    assert str(caught.value) == (
        f"penstock 9.9 runs here and {__version__} on an executor: install the same penstock[spark] on every node"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.99,",
            "Python {ours} runs here and 3.9 on an executor: every node needs the same minor version",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'penstock'\n",
            f"an executor has no penstock: install penstock[spark] {__version__} on every node",
        ),
        (
            'An error occurred\nCaused by: java.io.IOException: Cannot run program "/opt/python": error=2, No file',
            "an executor has no /opt/python: PYSPARK_PYTHON names the Python that every node has",
        ),
        ("out of memory\nat java...", "the check of the executors failed: out of memory"),
    ],
)
def test_what_an_executor_says_becomes_one_sentence(text: str, sentence: str) -> None:
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert sessions._reason(text) == sentence.format(ours=ours)


def test_the_embedded_session_listens_on_this_machine_only(spark: SparkSession) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("failure", [None, RuntimeError("the JVM is gone")])
def test_a_session_ends_without_a_word_and_leaves_the_log_as_it_was(
    spark: SparkSession, failure: Exception | None
) -> None:
    context: Any = spark.sparkContext
    log4j = context._jvm.org.apache.logging.log4j
    levels: list[str] = []

    class Ending:
        sparkContext = context

        def stop(self) -> None:
            levels.append(str(log4j.LogManager.getRootLogger().getLevel()))
            if failure is not None:
                raise failure

    before = str(log4j.LogManager.getRootLogger().getLevel())
    end_session(cast("SparkSession", Ending()))
    assert levels == ["OFF"] and before != "OFF"
    assert str(log4j.LogManager.getRootLogger().getLevel()) == before


def test_a_session_of_a_server_has_no_log_of_ours_and_ends() -> None:
    class OnServer:
        is_ended = False

        @property
        def sparkContext(self) -> None:
            raise RuntimeError("there is none with Spark Connect")

        def stop(self) -> None:
            self.is_ended = True

    session = OnServer()
    end_session(cast("SparkSession", session))
    assert session.is_ended


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (OTHER_PYTHON, "Python {ours} runs here and 3.99 on an executor: every node needs the same minor version"),
        (NO_PENSTOCK, f"an executor has no penstock: install penstock[spark] {__version__} on every node"),
        (
            OTHER_PENSTOCK,
            f"penstock {__version__} runs here and 9.9 on an executor: install the same penstock[spark] on every node",
        ),
    ],
    ids=["another Python", "no Penstock", "another Penstock"],
)
def test_executors_that_are_not_alike_are_told(
    change: str, sentence: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python_with(tmp_path / "other", change))
    with pytest.raises(SessionFailed) as caught:
        check_nodes(spark)
    assert str(caught.value) == sentence.format(ours=f"{sys.version_info.major}.{sys.version_info.minor}")
