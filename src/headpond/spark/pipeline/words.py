"""Spark's failures in one sentence, without secrets.

Spark tells of a failed query in a page: the query's ids, a cause that is wrapped once for each layer, a stack of Java
and one of Python, the plan. What a person needs is the innermost cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from headpond.spark.pipeline.failures import RunFailed
from headpond.spark.pipeline.model import Step

HIDDEN = "***"
CAUSES_MAX = 10
_SAY_NOTHING = ("Exception thrown in awaitResult", "Job aborted", "no reason given")
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+|$)", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*): (.+)$")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ([^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*$")
_POSITION = re.compile(r"\(?line (\d+),? pos \d+\)?")
_WRAPPERS = {
    *("STREAM_FAILED", "FAILED_EXECUTE_UDF", "FOREACH_BATCH_USER_FUNCTION_ERROR", "WRITING_JOB_ABORTED", "JOB_ABORTED"),
    *(
        "TASK_WRITE_FAILED",
        "WRITING_JOB_FAILED",
        "PYTHON_DATA_SOURCE_ERROR",
        "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
    ),
}
_STATE_CHANGED = (
    *("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_SCHEMA"),
    *("STATE_STORE_PROVIDER_DOES_NOT_SUPPORT", "STREAMING_STATEFUL_OPERATOR", "STATE_STORE_INVALID"),
)


def reason_of(error: BaseException) -> str:
    """The innermost cause that says something."""
    said: list[str] = []
    cause: object = error
    while isinstance(cause, BaseException) and len(said) < CAUSES_MAX:
        said.append(str(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    reason = innermost(said[0])
    for more in said[1:]:
        if not any(nothing in reason for nothing in _SAY_NOTHING):
            break
        reason = innermost(more)
    return reason


def innermost(text: str) -> str:
    """The innermost cause in a text of Spark's."""
    if found := _RAISED.search(text):
        return _sentence(found[1])
    if any(name in text for name in _STATE_CHANGED):
        return (
            "the steps that keep state are not those that the checkpoint was made with: "
            "give the pipeline another name, or remove its folder to begin anew"
        )
    lines = text.splitlines()
    traced = [number for number, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    for line in lines[traced[-1] + 1 :] if traced else []:
        if (python := _PYTHON_ERROR.match(line)) and python[1] not in ("Caused", "Py4JJavaError"):
            return _sentence(python[2])
    conditions = [(name, said) for name, said in _CONDITION.findall(text) if name.partition(".")[0] not in _WRAPPERS]
    if conditions:
        return _sentence(conditions[-1][1])
    first = next((line.strip() for line in lines if line.strip()), "no reason given")
    return _sentence(re.sub(r"^\[[A-Z_.]+\] ", "", first))


def is_state_changed(error: BaseException) -> bool:
    """Whether Spark refuses a query because of the state that its checkpoint keeps."""
    return any(name in str(error) for name in _STATE_CHANGED)


def is_python_late(error: BaseException) -> bool:
    """Whether Spark gave up waiting for a Python process that it had started."""
    return "Python worker failed to connect back" in str(error)


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text without any of these values."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def sql_failure(step: Step, error: Exception) -> RunFailed:
    """What is wrong with a step's SQL, and on which line of the file."""
    text = str(error)
    assert step.sql_place is not None
    place = step.sql_place
    if found := _POSITION.search(text):
        place = place.below(int(found[1]) - 1)
    condition = _CONDITION.search(text)
    return RunFailed(f"{place}: step {step.name}: {_sentence(condition[2] if condition else text.splitlines()[0])}")


def _sentence(text: str) -> str:
    """One sentence, without Spark's advice behind it, a code of SQL's, or a full stop."""
    text = _POSITION.sub("", _STATE.sub("", text)).strip().rstrip(";").strip()
    return text.rstrip(".")
