"""A Spark session for an action of ``headpond pipeline``, and failures in one sentence.

Spark tells what went wrong in a task as a page of Java and Python; what the user needs is the last line of the Python
part. ``--trace`` shows the page.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from headpond.cli.common.connection import bootstrap_of, sentence
from headpond.cli.common.failures import CommandFailed, WrongUsage, in_words
from headpond.cli.common.output import note
from headpond.client import BrokerUnreachable, ClientError, parse_bootstrap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS_OF_THE_EXTRA = ("numba", "numpy", "pandas", "pyarrow", "pyspark")
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+): (.+)$")
_NOT_THE_REASON = ("Traceback", "  File", "    ", "\tat ", "at ", "Caused by", "...")


def broker_address(options: argparse.Namespace) -> str:
    """For ``kafka.bootstrap.servers``."""
    text, origin = bootstrap_of(options)
    try:
        parse_bootstrap(text)
    except ValueError as error:
        raise WrongUsage(f"{origin}: {error}") from None
    return text


@contextlib.contextmanager
def session_of(options: argparse.Namespace, name: str) -> Iterator[SparkSession]:
    """The session that the options ask for; it ends with the block."""
    from headpond.spark.session import end_session, start_session
    from headpond.spark.versions import wrong_pyspark

    if not options.trace and not wrong_pyspark():
        _silence_connect()
    session = start_session(name, master=options.master, remote=options.remote, config=dict(options.spark_config))
    try:
        yield session
    finally:
        end_session(session)  # what it would say is no news after what ended the block


def _silence_connect() -> None:
    """The client of Spark Connect writes every failure to stderr, with its page of Java, before it raises it."""
    import logging

    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextlib.contextmanager
def in_one_sentence(options: argparse.Namespace) -> Iterator[None]:
    """Whatever goes wrong becomes ``CommandFailed``; bugs in this process too, for somebody at a terminal has no use
    for a page about Java. ``--trace`` lets everything through."""
    try:
        yield
    except (CommandFailed, KeyboardInterrupt, BrokenPipeError):
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PARTS_OF_THE_EXTRA:
            raise
        from headpond.spark.versions import wrong_pyspark

        missing = f"{error.name} is not installed: pip install 'headpond[spark]'"
        raise CommandFailed(wrong_pyspark() or missing) from error
    except BrokerUnreachable as error:
        _show_trace(options)
        raise CommandFailed(f"{error}; is a broker running there?") from error
    except ClientError as error:
        _show_trace(options)
        raise CommandFailed(sentence(error)) from error
    except OSError as error:
        _show_trace(options)
        raise CommandFailed(_about_java(error) or in_words(error)) from error
    except Exception as error:
        _show_trace(options)
        raise CommandFailed(_about_java(error) or reason_of(error)) from error


def _about_java(error: Exception) -> str | None:
    if not isinstance(error, ConnectionError) and not type(error).__module__.startswith("py4j"):
        return None  # before Spark is imported
    from headpond.spark.session import java_ended

    return java_ended(error)


def _show_trace(options: argparse.Namespace) -> None:
    if options.trace:
        import traceback

        traceback.print_exc(file=sys.stderr)


def reason_of(error: BaseException) -> str:
    """One sentence for a failure, also for one that Spark has wrapped: the innermost Python error is the reason."""
    text = str(error).strip()
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return text or type(error).__name__
    lines = [line.rstrip() for line in text.splitlines()]
    traced = [number for number, line in enumerate(lines) if "Traceback (most recent call" in line]
    for line in lines[traced[-1] + 1 :] if traced else []:
        if found := _PYTHON_ERROR.match(line):
            return found[2].rstrip(".") if found[1] != "AssertionError" else line
    for line in lines:
        if line and not line.startswith(_NOT_THE_REASON):
            return re.sub(r"^\[[A-Z_.]+\] ", "", line).rstrip(".")
    return type(error).__name__


class Sessions:
    """``with Sessions(options, "archive") as sessions: sessions.get()``: one session, started when it is first asked
    for, and ended with the block."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        self._options = options
        self._name = name
        self._stack = contextlib.ExitStack()
        self._session: SparkSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def get(self) -> SparkSession:
        if self._session is None:
            if sys.stderr.isatty():
                note("starting Spark ...")  # takes seconds, and there is no bar yet
            self._session = self._stack.enter_context(session_of(self._options, f"headpond {self._name}"))
        return self._session
