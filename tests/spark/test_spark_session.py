"""Sessions: what is refused before Spark starts, and what is said of nodes that are not like this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from headpond import __version__
from headpond.spark import session as sessions
from headpond.spark.java import Java
from headpond.spark.session import (
    NODE_TASKS_MAX,
    SERVER_REDACTION,
    SessionFailed,
    check_nodes,
    end_session,
    start_session,
    use_a_java,
    use_this_python,
)
from headpond.testing import Broker
from spark.clusters import (
    BROKEN_NUMBA,
    NO_FASTAVRO,
    NO_HEADPOND,
    NO_NUMBA,
    OTHER_HEADPOND,
    OTHER_PYTHON,
    python_with,
)
from spark.secured import headpond
from support.broker import headpond_command, headpond_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMAND_S_MAX = 60
DECLARED = """
name = "copied"
[source.orders]
topic = "orders"
format = "string"
[sink.copy]
from = "orders"
topic = "copy"
format = "string"
"""


def test_a_session_has_a_master_or_a_remote_server() -> None:
    with pytest.raises(SessionFailed, match="not both"):
        start_session(master="local[1]", remote="sc://host")


def test_without_spark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SessionFailed, match=r"Spark is not installed: pip install 'headpond\[spark\]'"):
        start_session()


def test_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("pyspark")
    module.__version__ = "3.5.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark", module)
    with pytest.raises(SessionFailed, match=r"needs PySpark 4\.3 and this is 3\.5\.1"):
        start_session()


def test_a_data_source_in_another_spark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from headpond.spark.data_source import HeadpondDataSource, WrongSpark

    monkeypatch.setattr("pyspark.__version__", "4.0.0")
    with pytest.raises(WrongSpark) as caught:
        HeadpondDataSource({})
    assert str(caught.value) == "headpond needs PySpark 4.3 and this is 4.0.0: pip install 'headpond[spark]'"


@pytest.mark.parametrize("action", ["archive orders --to lake", "audit orders", "run p.toml"])
def test_another_spark_is_refused_by_commands(action: str, spark_broker: Broker, tmp_path: Path) -> None:
    old = tmp_path / "old" / "pyspark"
    (old / "sql").mkdir(parents=True)
    (old / "__init__.py").write_text('__version__ = "3.5.1"\n')
    (old / "sql" / "__init__.py").write_text("class SparkSession: ...\n")
    (tmp_path / "p.toml").write_text(DECLARED)
    spark_broker.produce("orders", ["a"])
    given = headpond_environment()
    done = subprocess.run(
        headpond_command("pipeline", *action.split(), "-b", spark_broker.bootstrap_servers),
        env={**given, "PYTHONPATH": os.pathsep.join(filter(None, [str(old.parent), given.get("PYTHONPATH", "")]))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.stderr == "headpond: headpond needs PySpark 4.3 and this is 3.5.1: pip install 'headpond[spark]'\n"
    assert done.returncode == 1


class Server:
    """A session of a Spark Connect server, as far as it is asked before the first job."""

    def __init__(self, version: str = "4.3.0", **settings: str) -> None:
        self.version = version
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.conf = self
        self.is_ended = False

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value

    def stop(self) -> None:
        self.is_ended = True


@pytest.fixture
def at_server(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], None]:
    """Sessions are those of this server, whose nodes are fine."""
    pytest.importorskip("pyspark")

    def use(server: Server) -> None:
        monkeypatch.setattr(sessions, "_opened", lambda *_: server)
        monkeypatch.setattr(sessions, "check_nodes", lambda _: None)

    return use


def test_a_server_with_another_spark_is_refused(at_server: Callable[[Server], None]) -> None:
    server = Server("4.0.1")
    at_server(server)
    with pytest.raises(SessionFailed) as caught:
        start_session(remote="sc://host:15002/;token=secret")
    assert str(caught.value) == "headpond needs Spark 4.3 and the Spark Connect server sc://host:15002 runs 4.0.1"
    assert server.is_ended


def test_a_server_with_another_spark_is_refused_by_commands(
    at_server: Callable[[Server], None], spark_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at_server(Server("3.5.9"))
    spark_broker.produce("orders", ["a"])
    there = ["-b", spark_broker.bootstrap_servers, "--remote", "sc://host"]
    assert headpond("pipeline", "archive", "orders", "--to", str(tmp_path / "lake"), *there) == 1
    said = capsys.readouterr().err
    assert said == "headpond: headpond needs Spark 4.3 and the Spark Connect server sc://host runs 3.5.9\n"


def test_a_server_is_told_what_to_hide_beside_what_it_hides_already(at_server: Callable[[Server], None]) -> None:
    name = "spark.sql.redaction.options.regex"
    server = Server(spark_sql_redaction_options_regex="badge|pin")
    at_server(server)
    start_session(remote="sc://host")
    assert server.settings == {**SERVER_REDACTION, name: f"(?:badge|pin)|(?:{SERVER_REDACTION[name]})"}
    before = dict(server.settings)
    start_session(remote="sc://host")
    assert server.settings == before


def test_what_the_user_lets_a_server_hide_is_left_alone(at_server: Callable[[Server], None]) -> None:
    server = Server()
    at_server(server)
    start_session(remote="sc://host", config={"spark.sql.redaction.options.regex": "mine"})
    assert set(server.settings) == {"spark.sql.redaction.string.regex"}


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


def test_another_headpond_on_a_node_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "__version__", "9.9")
    with pytest.raises(SessionFailed) as caught:
        check_nodes(spark)
    assert str(caught.value) == (
        f"headpond 9.9 runs here and {__version__} on an executor: install the same headpond[spark] on every node"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.99,",
            "Python {ours} runs here and 3.9 on an executor: every node needs the same minor version",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'headpond'\n",
            f"an executor has no headpond: install headpond[spark] {__version__} on every node",
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
        (NO_HEADPOND, f"an executor has no headpond: install headpond[spark] {__version__} on every node"),
        (NO_NUMBA, f"an executor has no numba: install headpond[spark] {__version__} on every node"),
        (NO_FASTAVRO, f"an executor has no fastavro: install headpond[spark] {__version__} on every node"),
        (
            BROKEN_NUMBA.replace("No module named", "something is wrong with"),
            f"an executor can't load what headpond[spark] {__version__} needs: something is wrong with 'numba'",
        ),
        (
            OTHER_HEADPOND,
            f"headpond {__version__} runs here and 9.9 on an executor: install the same headpond[spark] on every node",
        ),
    ],
    ids=["another Python", "no Headpond", "no numba", "no fastavro", "a broken numba", "another Headpond"],
)
def test_executors_that_are_not_alike_are_told(
    change: str, sentence: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python_with(tmp_path / "other", change))
    with pytest.raises(SessionFailed) as caught:
        check_nodes(spark)
    assert str(caught.value) == sentence.format(ours=f"{sys.version_info.major}.{sys.version_info.minor}")
