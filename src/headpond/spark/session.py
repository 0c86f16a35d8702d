"""A Spark session for our commands and for anybody: the embedded one, or one on a cluster.

    from headpond.spark.session import start_session

    spark = start_session()                                    # local[*], in this process
    spark = start_session(master="spark://host:7077")          # the same code on a cluster
    spark = start_session(remote="sc://host:15002")            # Spark Connect

Embedded    listens on 127.0.0.1 only, shows no web page and no log lines below ERROR, and its Python is this one: an
            environment that is not activated works, too. Java: see ``java.py``.
A cluster   must have the same Python (its minor version) and the same ``headpond[spark]`` on every node:
            ``check_nodes`` runs a small job that says so in one sentence where it is not.
Connect     The server must be a Spark of our version, and is told what not to show: it writes down the plan of every
            command, with its options.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headpond import __version__
from headpond.spark.java import find_java
from headpond.spark.versions import WANTED, is_right, wrong_pyspark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MASTER_DEFAULT = "local[*]"
HOST = "127.0.0.1"
UNSAFE_WARNING_FROM_JAVA = 23
"""From here on Java warns of what Spark's memory access does, and has an option that says that we know."""
NODE_TASKS_MAX = 64
"""Tasks of the check: a few for each executor of a usual cluster."""

JAVA_END_S = 1.0
"""A process that ends closes its connections a moment before others can see that it has ended."""

_SECRETS = "(?i)secret|password|token|access[.]?key|jaas|credential|keystore|key[.]pem|stagingdir"
REDACTION = {"spark.redaction.regex": _SECRETS, "spark.sql.redaction.options.regex": f"{_SECRETS}|url"}
"""Names whose values Spark shows nowhere: in plans, pages and logs of events. An address may have a password in it: we
refuse that, when Spark has written it down."""
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*+|'(?:[^'\\]|\\\\\\'|\\'\\'|\\[^'])*+)"""  # to its end, or to that of the text
_IN_COMMANDS = rf"""(?:{_SECRETS})[\w.]*\\*[`'"]?\s*(?:value:|=)?\s*\\*{_QUOTED}"""
SERVER_REDACTION = {
    "spark.sql.redaction.options.regex": REDACTION["spark.sql.redaction.options.regex"],
    "spark.sql.redaction.string.regex": _IN_COMMANDS,
}
"""For a Spark Connect server: the names, and what such a name and its value look like in the text of a command, which
is a message (``key: "name" value: "..."``) or SQL in one (``\\'name\\' \\'...\\'``)."""

NODE_MODULES = ("pyarrow", "numba", "fastavro")
"""What tasks of ours import."""

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_VERSIONS = "python string, headpond string"


class SessionFailed(RuntimeError):
    """There is no session, or not one that can run Headpond's code."""


def start_session(
    name: str = "headpond",
    *,
    master: str | None = None,
    remote: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session that finds ``format("headpond")``; the one that runs already, if there is one."""
    if master is not None and remote is not None:
        raise SessionFailed("a session has a master or a remote server, not both")
    if sentence := wrong_pyspark():
        raise SessionFailed(sentence)
    from pyspark.sql import SparkSession

    use_this_python()
    builder: Any = SparkSession.builder.appName(name)
    if remote is not None:
        return _on_server(builder.remote(remote), config or {}, f"the Spark Connect server {_without_token(remote)}")
    use_a_java()
    master = master or MASTER_DEFAULT
    is_local = master.startswith("local")
    settings = {**REDACTION, **(embedded_settings() if is_local else {}), **(config or {})}
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", HOST)
    session = _opened(builder.master(master), settings, f"a Spark session on {master}")
    if not re.fullmatch(r"local(\[.*\])?", master):  # in one process there is one Python
        with _ended_if_useless(session):
            check_nodes(session)
    return session


def _on_server(builder: Any, config: Mapping[str, str], what: str) -> SparkSession:
    session = _opened(builder, config, what)
    with _ended_if_useless(session):
        try:
            version = session.version
            if is_right(version):
                _hide_secrets(session, config)
        except Exception as error:
            raise SessionFailed(f"{what} can't be used: {_first_line(error)}") from error
        if not is_right(version):
            raise SessionFailed(f"headpond needs Spark {WANTED} and {what} runs {version}")
        check_nodes(session)
    return session


def _hide_secrets(session: SparkSession, config: Mapping[str, str]) -> None:
    for name, pattern in SERVER_REDACTION.items():
        if name not in config:
            session.conf.set(name, _either(session.conf.get(name, None), pattern))


def _either(theirs: str | None, ours: str) -> str:
    """A pattern for both: whoever runs the server may have secrets that we don't know of."""
    if not theirs:
        return ours
    return theirs if ours in theirs else f"(?:{theirs})|(?:{ours})"


def _without_token(remote: str) -> str:
    return remote.partition(";")[0].rstrip("/")


@contextlib.contextmanager
def _ended_if_useless(session: SparkSession) -> Iterator[None]:
    """A session that is of no use ends here: one that ends with its process tells pages about its executors."""
    try:
        yield
    except SessionFailed:
        end_session(session)
        raise


def end_session(session: SparkSession) -> None:
    """Without a word: an executor that still speaks to a scheduler that is gone makes Spark write a page about it."""
    with contextlib.suppress(Exception), _silence(session):
        session.stop()


@contextlib.contextmanager
def _silence(session: SparkSession) -> Iterator[None]:
    try:
        context: Any = session.sparkContext
        log4j = context._jvm.org.apache.logging.log4j
        levels, before = log4j.core.config.Configurator, log4j.LogManager.getRootLogger().getLevel()
        levels.setRootLevel(log4j.Level.OFF)
    except Exception:  # Spark Connect has no context: the server's log is the server's
        yield
        return
    try:
        yield
    finally:
        levels.setRootLevel(before)  # for the next session of this process


def java_ended(error: BaseException) -> str | None:
    """A sentence about a failure, where it is that the Java process of the embedded session has ended: the system kills
    it when memory is short. None for any other failure."""
    if not isinstance(error, ConnectionError) and type(error).__name__ != "Py4JNetworkError":
        return None
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    process = getattr(getattr(context, "_gateway", None), "proc", None)
    if process is None:  # the session is on a server
        return None
    try:
        code = process.wait(JAVA_END_S)
    except subprocess.TimeoutExpired:
        return None
    if code == -signal.SIGKILL:
        return "Spark's Java process was killed: is there enough memory?"
    return f"Spark's Java process ended with {code}"


def use_this_python() -> None:
    """Spark looks for data sources, and runs Python, with the interpreter that runs this, unless the user has named
    another: on a cluster, where executors have theirs elsewhere."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def use_a_java() -> None:
    """Spark's launcher finds a Java that will do, and the shell that it is written for."""
    os.environ["JAVA_HOME"] = find_java().home
    path = os.environ.get("PATH", "")
    if not any(os.access(os.path.join(folder, "bash"), os.X_OK) for folder in path.split(os.pathsep) if folder):
        # Spark's launcher is a script for bash.
        os.environ["PATH"] = os.pathsep.join([*filter(None, [path]), os.defpath])


def embedded_settings() -> dict[str, str]:
    """Spark settings of a session in this process."""
    options = [f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"]
    if find_java().version >= UNSAFE_WARNING_FROM_JAVA:
        options.append("--sun-misc-unsafe-memory-access=allow")
    return {
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.connect.grpc.binding.address": HOST,
    }


def check_nodes(session: SparkSession) -> None:
    """``SessionFailed``, in one sentence, where an executor has another Python or another Headpond."""
    try:
        seen = (
            session.range(0, NODE_TASKS_MAX, 1, NODE_TASKS_MAX)
            .mapInArrow(_versions_here, _VERSIONS)
            .distinct()
            .collect()
        )
    except Exception as error:  # pyspark's own, or py4j's where no Python could be started
        raise SessionFailed(_reason(str(error))) from error
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python, version in sorted((row["python"], row["headpond"]) for row in seen):
        if python != ours:
            raise SessionFailed(_python_differs(ours, python))
        if version != __version__:
            raise SessionFailed(
                f"headpond {__version__} runs here and {version} on an executor: "
                "install the same headpond[spark] on every node"
            )


def _versions_here(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on executors."""
    import pyarrow

    for name in NODE_MODULES:
        importlib.import_module(name)
    for _ in batches:
        pass
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield pyarrow.RecordBatch.from_pydict({"python": [python], "headpond": [__version__]})


def _reason(text: str) -> str:
    """One sentence for what an executor without our code, or with another Python, makes Spark say."""
    if "PYTHON_VERSION_MISMATCH" in text:
        found = re.findall(r"\b(3\.\d+)\b", text)
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        return _python_differs(ours, next((one for one in found if one != ours), "another version"))
    if missing := re.search(r"No module named '([\w.]+)'", text):
        return f"an executor has no {missing[1]}: install headpond[spark] {__version__} on every node"
    if missing := re.search(r'Cannot run program "([^"]+)"', text):
        return f"an executor has no {missing[1]}: PYSPARK_PYTHON names the Python that every node has"
    if broken := re.search(r"^ImportError: (.+)$", text, re.MULTILINE):
        return f"an executor can't load what headpond[spark] {__version__} needs: {broken[1]}"
    first = text.strip().splitlines()[0] if text.strip() else "no reason given"
    return f"the check of the executors failed: {first}"


def _python_differs(ours: str, theirs: str) -> str:
    return f"Python {ours} runs here and {theirs} on an executor: every node needs the same minor version"


def _opened(builder: Any, settings: Mapping[str, str], what: str) -> SparkSession:
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise SessionFailed(f"{what} could not be started: {_first_line(error)}") from error
    return session


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
