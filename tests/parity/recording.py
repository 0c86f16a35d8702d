"""What a real Kafka answered, as data: ``recorded/<file of scripts>.json``.

    {"script": {"step": {"0-3": {...answer...}, "4": {...}}}}

One line per answer; versions next to each other that are answered alike share a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from parity.plain import Plain
from parity.player import Seen

FOLDER = Path(__file__).parent / "recorded"

Recorded = dict[str, dict[str, Plain]]
"""Of one script: step -> versions -> answer."""


def recorded(seen: Sequence[Seen]) -> Recorded:
    by_step: dict[str, list[tuple[int | None, Plain]]] = {}
    for label, version, answer in seen:
        by_step.setdefault(label, []).append((version, answer))
    return {label: _grouped(answers) for label, answers in by_step.items()}


def _grouped(answers: list[tuple[int | None, Plain]]) -> dict[str, Plain]:
    groups: list[tuple[list[int | None], Plain]] = []
    for version, answer in answers:
        if groups and groups[-1][1] == answer:
            groups[-1][0].append(version)
        else:
            groups.append(([version], answer))
    return {_range(versions): answer for versions, answer in groups}


def _range(versions: list[int | None]) -> str:
    """``0-3,7``, or ``any`` where there is no version."""
    runs: list[list[int]] = []
    for version in versions:
        if version is None:
            return "any"
        if runs and runs[-1][-1] + 1 == version:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _versions(text: str) -> Iterator[int | None]:
    if text == "any":
        yield None
        return
    for run in text.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def flat(of_script: Recorded) -> Iterator[tuple[str, int | None, Plain]]:
    for label, groups in of_script.items():
        for versions, answer in groups.items():
            for version in _versions(versions):
                yield label, version, answer


def load(family: str) -> dict[str, Recorded]:
    loaded: dict[str, Recorded] = json.loads((FOLDER / f"{family}.json").read_text())
    return loaded


def save(family: str, scripts: dict[str, Recorded]) -> None:
    lines = ["{"]
    for name, of_script in scripts.items():
        lines.append(f"{json.dumps(name)}: {{")
        for label, groups in of_script.items():
            rows = [f"{json.dumps(versions)}: {json.dumps(answer)}" for versions, answer in groups.items()]
            if len(rows) == 1:
                lines.append(f" {json.dumps(label)}: {{{rows[0]}}},")
            else:
                lines.append(f" {json.dumps(label)}: {{")
                lines += [f"  {row}," for row in rows[:-1]] + [f"  {rows[-1]}", " },"]
        lines[-1] = lines[-1].rstrip(",")
        lines.append("},")
    lines[-1] = "}"
    lines.append("}")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{family}.json").write_text("\n".join(lines) + "\n")


class Difference(NamedTuple):
    step: str
    version: int | None
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        at = "" if self.version is None else f" v{self.version}"
        return f"{self.step}{at}: {self.path}: Kafka {_shown(self.kafka)}, we {_shown(self.ours)}"


MISSING = "(nothing)"


def differences(kafka: Recorded, ours: Recorded) -> list[Difference]:
    theirs = {(label, version): answer for label, version, answer in flat(kafka)}
    mine = {(label, version): answer for label, version, answer in flat(ours)}
    found = []
    for label, version in {**theirs, **mine}:
        pair = theirs.get((label, version), MISSING), mine.get((label, version), MISSING)
        found += [Difference(label, version, *each) for each in _differences("", *pair)]
    return found


def _differences(path: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in {**kafka, **ours}:
            yield from _differences(f"{path}.{key}".lstrip("."), kafka.get(key, MISSING), ours.get(key, MISSING))
    elif (identity := _identity(kafka, ours)) is not None:
        yield from _of_named_lists(path, identity, kafka, ours)
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for index, (one, other) in enumerate(zip(kafka, ours, strict=True)):
            yield from _differences(f"{path}[{index}]", one, other)
    elif kafka != ours or type(kafka) is not type(ours):
        yield path, kafka, ours


def _of_named_lists(path: str, identity: str, kafka: list[Plain], ours: list[Plain]) -> Iterator[tuple[str, Any, Any]]:
    """Long lists of named things (settings) differ thing by thing, not as a whole; their order is compared apart."""
    theirs, mine = ({each.get(identity, 0): each for each in some} for some in (kafka, ours))
    for name in {**theirs, **mine}:
        yield from _differences(f"{path}[{name}]", theirs.get(name, MISSING), mine.get(name, MISSING))
    common = theirs.keys() & mine.keys()
    their_order, our_order = ([name for name in some if name in common] for some in (theirs, mine))
    if their_order != our_order:
        yield f"{path}.order", their_order, our_order


def _identity(*lists: Any) -> str | None:
    """The field that tells the elements of both lists apart."""
    for identity in ("name", "api_key"):
        if all(_tells_apart(identity, some) for some in lists):
            return identity
    return None


def _tells_apart(identity: str, some: Any) -> bool:
    if not isinstance(some, list) or not all(isinstance(each, dict) for each in some):
        return False
    names = [each.get(identity) for each in some]
    return names.count(None) <= (identity == "api_key") and len(set(names)) == len(names)


def _shown(value: Any) -> str:
    text = json.dumps(value) if not isinstance(value, str) else value
    return text if len(text) < 600 else text[:600] + "..."
