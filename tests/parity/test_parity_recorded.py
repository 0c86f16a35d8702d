"""Every script, played against Headpond, is answered as a real Kafka answered it when the recording was made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headpond.protocol.apis import APIS, SERVED
from parity.allowed import ALLOWED, Allowed, sift
from parity.families import FAMILIES, Stage, scripts_of
from parity.notation import Ask
from parity.peers import headpond
from parity.player import steps_of, versions_of
from parity.recording import differences, load

CASES = [(family, script.name) for family in FAMILIES for script in scripts_of(family)]
_played: set[tuple[str, str]] = set()
_used: set[int] = set()


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    """One broker per file of scripts, started when its first script comes and ended when the next file begins."""
    running: dict[str, Stage] = {}
    yield running
    for stage in running.values():
        stage.__exit__(None, None, None)


@pytest.mark.parametrize(("family", "name"), CASES, ids=[f"{family}: {name}" for family, name in CASES])
def test_answers_as_kafka_did(
    stages: dict[str, Stage], tmp_path_factory: pytest.TempPathFactory, family: str, name: str
) -> None:
    kafka = load(family).get(name)
    assert kafka is not None, "not recorded yet: make parity-record"
    if family not in stages:
        for other in list(stages):
            stages.pop(other).__exit__(None, None, None)
        stages[family] = Stage(family, tmp_path_factory.mktemp(family), headpond)
    (script,) = (each for each in scripts_of(family) if each.name == name)
    refused, used = sift(family, name, differences(kafka, stages[family].play(script)))
    _played.add((family, name))
    _used.update(id(each) for each in used)
    assert not refused, "\n" + "\n".join(map(str, refused))


@pytest.mark.parametrize("allowance", ALLOWED, ids=[f"{each.script}: {each.path}" for each in ALLOWED])
def test_every_allowed_difference_is_still_one(allowance: Allowed) -> None:
    about = {(family, name) for family, name in CASES if allowance.speaks_of(family, name)}
    assert about, "it names no script that exists"
    if not about <= _played:
        pytest.skip("not all of its scripts were played in this run")
    assert id(allowance) in _used, "Kafka and Headpond agree here by now"


def test_every_version_of_every_api_is_asked() -> None:
    asked = {
        (step.api, at)
        for family in FAMILIES
        for script in scripts_of(family)
        for version in (versions_of(script.each) if script.each else (None,))
        for _, at, step in steps_of(script, version)
        if isinstance(step, Ask)
    }
    served = {(APIS[key].name, version) for key in SERVED for version in APIS[key].versions}
    assert sorted(served - asked) == []


def test_a_recording_holds_exactly_the_scripts_that_there_are() -> None:
    for family in FAMILIES:
        assert list(load(family)) == _names(family), f"{family}: make parity-record"


def _names(family: str) -> list[str]:
    return [script.name for script in scripts_of(family)]


def test_the_folder_has_no_recording_without_scripts() -> None:
    assert sorted(path.stem for path in Path(__file__).parent.glob("recorded/*.json")) == FAMILIES
