"""docs/errors-transactions-and-groups.md tells the truth: its proofs exist and show what they are said to show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headpond.model import ErrorCode
from parity.families import FAMILIES, scripts_of
from parity.notation import Answer, Ask
from parity.player import rounds, steps_of
from parity.recording import Recorded, load

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "errors-transactions-and-groups.md"
SHOWS_OTHER_ERRORS_TOO = {"Produce"}
"""APIs of which the page tells only what is about transactions."""


class Row(NamedTuple):
    api: str
    error: ErrorCode
    reason: str
    proofs: list[str]


def rows() -> list[Row]:
    found, api = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("### "):
            api = line[4:]
        elif line.startswith("| ") and api and not line.startswith(("| error", "| ---")):
            error, reason, proofs = (cell.strip() for cell in line.strip("|").split(" | "))
            found.append(Row(api, ErrorCode[error], reason, re.findall(r"`([^`]+)`", proofs)))
    return found


ROWS = rows()


@cache
def recording(family: str) -> dict[str, Recorded]:
    return load(family)


def codes(answer: Any) -> Iterator[int]:
    if isinstance(answer, list):
        for each in answer:
            yield from codes(each)
    elif isinstance(answer, dict):
        for name, value in answer.items():
            if name.endswith("error_code"):
                yield value
            else:
                yield from codes(value)


def recorded_codes(family: str, script: str, step: str) -> set[int]:
    answers = recording(family).get(script, {}).get(step)
    assert answers is not None, f"{family} has no step {step!r} in {script!r}"
    return set(codes(list(answers.values())))


def test_every_row_has_a_reason_and_a_proof_and_stands_there_once() -> None:
    assert len(ROWS) > 100
    assert all(row.reason and row.proofs for row in ROWS)
    named = [(row.api, row.error) for row in ROWS]
    assert len(set(named)) == len(named)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.api} {row.error.name}" for row in ROWS])
def test_the_proofs_of_an_error_exist_and_show_it(row: Row) -> None:
    for proof in row.proofs:
        if proof.startswith("parity "):
            family, script, step = proof.removeprefix("parity ").split(" / ")
            assert row.error in recorded_codes(family, script, step), proof
        else:
            assert shows(proof, row), f"{proof} is not about {row.api} and {row.error.name}"


def shows(proof: str, row: Row) -> bool:
    """The test must exist; one for many cases must have one for the API and the error of the row."""
    met = cases_of(proof)
    return not met or (row.api, row.error) in met or (row.api, None) in met


@cache
def cases_of(proof: str) -> set[tuple[str, ErrorCode | None]]:
    """What the parameters of the test say: the API of each ``case``, and the error that is ``expected`` or ``answered``
    then; None where they don't name it."""
    path, _, name = proof.partition("::")
    test = getattr(import_module(path.removesuffix(".py").replace("/", ".")), name)
    tables = [mark.args[:2] for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    if not any("case" in names for names, _ in tables):
        return set()
    combined: list[dict[str, Any]] = [{}]
    for names, values in tables:
        rows = [{names: value} if isinstance(names, str) else dict(zip(names, value, strict=True)) for value in values]
        combined = [{**before, **row} for before in combined for row in rows]
    return {(each["case"].api, each.get("expected", each.get("answered"))) for each in combined}


def test_a_test_that_proves_something_of_several_apis_has_cases() -> None:
    cited: dict[str, set[str]] = {}
    for row in ROWS:
        for proof in row.proofs:
            if not proof.startswith("parity "):
                cited.setdefault(proof, set()).add(row.api)
    assert [proof for proof, apis in cited.items() if len(apis) > 1 and not cases_of(proof)] == []


def played() -> Iterator[tuple[str, str, str, str]]:
    """(API, file, script, step) of everything that a real Kafka was asked."""
    for family in FAMILIES:
        for script in scripts_of(family):
            parked: dict[str, str] = {}
            for version in rounds(script):
                for label, _, step in steps_of(script, version):
                    if isinstance(step, Ask) and step.parked:
                        parked[step.parked] = step.api
                    elif isinstance(step, Ask) and step.shown:
                        yield step.api, family, script.name, label
                    elif isinstance(step, Answer):
                        yield parked[step.parked], family, script.name, label


def test_no_error_that_kafka_was_seen_to_answer_is_missing() -> None:
    told = {(row.api, int(row.error)) for row in ROWS}
    apis = {row.api for row in ROWS} - SHOWS_OTHER_ERRORS_TOO
    missing = {
        f"{api} {ErrorCode(code).name}: {family} / {script} / {label}"
        for api, family, script, label in set(played())
        if api in apis
        for code in recorded_codes(family, script, label)
        if code and (api, code) not in told
    }
    assert not missing
