"""Reads what processes wrote down (``jobs/notes.py``), and says what of it must not have happened."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Spell:
    """One member's time with one partition."""

    who: str
    partition: int
    since: float
    generation: int | None
    """None: its library does not tell."""
    until: float = math.inf
    was_orderly: bool = False
    """It gave the partition up. Otherwise it was killed, or told that it had lost it."""


@dataclass
class Mark:
    """An offset that was committed, or the first that was read."""

    who: str
    partition: int
    offset: int
    sent_at: float
    answered_at: float


class Judge:
    """``deaths``: when each process was killed, that was."""

    def __init__(self, notes: dict[str, Path], deaths: dict[str, float]) -> None:
        self.spells: list[Spell] = []
        self.commits: list[Mark] = []
        self.firsts: list[Mark] = []
        for who, file in notes.items():
            self._read(who, file, deaths.get(who, math.inf))

    def _read(self, who: str, file: Path, died_at: float) -> None:
        held: dict[int, Spell] = {}
        generation: int | None = None
        for line in file.read_text().splitlines():
            if not line.startswith("{") or not line.endswith("}"):
                continue  # the library's own words, or the last ones of somebody who was killed
            note = json.loads(line)
            at, about = note["at"], note["about"]
            match note["what"]:
                case "generation":
                    generation = about
                case "assigned":
                    for partition in about:
                        held[partition] = Spell(who, partition, at, generation)
                        self.spells.append(held[partition])
                case "revoked" | "lost" as how:
                    for partition in about:
                        spell = held.pop(partition)
                        spell.until, spell.was_orderly = at, how == "revoked"
                case "committed" | "first" as what:
                    marks = self.commits if what == "committed" else self.firsts
                    marks += [
                        Mark(who, int(partition), offset, note["sent_at"], at) for partition, offset in about.items()
                    ]
        for spell in held.values():
            spell.until = died_at

    def verdicts(self) -> list[str]:
        return self._assigned_twice() + self._shared() + self._forgotten()

    def _assigned_twice(self) -> list[str]:
        """Two members have the same partition in the same generation."""
        found = []
        owners: dict[tuple[int, int], Spell] = {}
        for spell in self.spells:
            if spell.generation is not None:
                other = owners.setdefault((spell.generation, spell.partition), spell)
                if other.who != spell.who:
                    found.append(f"{other} and {spell}")
        return found

    def _shared(self) -> list[str]:
        """A spell is over when another member has proven, by a commit, that the partition is its own since: whoever had
        it before gives nothing up any more, and commits nothing."""
        found = []
        for one in self.spells:
            for two in self.spells:
                if two.partition != one.partition or two.who == one.who or two.since <= one.since:
                    continue
                is_proven_at = min((each.answered_at for each in self._commits_of(two)), default=math.inf)
                if one.was_orderly and one.until > is_proven_at:
                    found.append(f"{one} gave up what {two} had since {is_proven_at}")
                late = [each for each in self._commits_of(one) if each.sent_at > is_proven_at]
                found += [f"{each} was accepted, and {two} had the partition since {is_proven_at}" for each in late]
        return found

    def _forgotten(self) -> list[str]:
        """Whoever begins begins at the last commit that was acknowledged before it had the partition, or later. Whose
        that was, and what became of that member, does not matter."""
        found = []
        for first in self.firsts:
            since = max(each.since for each in self.spells if _is_of(first, each))
            found += [
                f"{first} begins before {each}"
                for each in self.commits
                if each.partition == first.partition and each.answered_at <= since and each.offset > first.offset
            ]
        return found

    def _commits_of(self, spell: Spell) -> list[Mark]:
        return [each for each in self.commits if _is_of(each, spell)]


def _is_of(mark: Mark, spell: Spell) -> bool:
    return mark.who == spell.who and mark.partition == spell.partition and spell.since <= mark.sent_at <= spell.until
