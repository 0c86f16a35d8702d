"""A tree becomes a machine whose states are sets of places in it, made when a name first leads there.

Every step is taken once and remembered, so a thousand names cost little more than ten. A name costs at most its length
times the size of the machine, whatever the expression; an expression that is made for it makes every name cost that, so
looking for names is work in slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.coordination.groups.consumer.regex.syntax import parse
from penstock.coordination.groups.consumer.regex.tree import (
    TOPIC_NAMES,
    WORD,
    At,
    Chars,
    Either,
    InvalidRegex,
    Node,
    Place,
    Repeat,
    Sequence,
    Texts,
)
from penstock.coordination.slices import Work, finish_now

PLACES_MAX = 4_096
"""More than any list of topics needs; bounds what a name can cost, and what is copied for counted repetitions."""
STATES_MAX = 1_024
"""Beyond it the remembered ones are forgotten: expressions that need more are made to need them."""
SLICE_STEPS = 4_000
"""Characters read and places reached at a stretch: up to 3 ms."""


class _Read(NamedTuple):
    chars: frozenset[str]
    then: int


class _Fork(NamedTuple):
    then: tuple[int, ...]


class _Check(NamedTuple):
    place: Place
    then: int


_END = 0


class _State:
    __slots__ = ("accepts", "last", "places", "steps")

    def __init__(self, places: frozenset[int], last: str) -> None:
        self.places = places
        self.last = last
        self.steps: dict[str, _State] = {}
        self.accepts: bool | None = None


class Regex:
    def __init__(self, text: str, texts: Texts = TOPIC_NAMES) -> None:
        """``texts``: what it is to be looked for in. Raises ``InvalidRegex``."""
        self._length_max = texts.length_max
        self._program: list[_Read | _Fork | _Check | None] = [None]
        start = self._compile(parse(text, texts), _END)
        self._start = _State(frozenset((start,)), "")
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._reached = 0
        """Places, so far, in all steps that were not remembered."""

    def matches(self, name: str) -> bool:
        """The whole of it."""
        return bool(finish_now(self.matching((name,))))

    def matching(self, names: Iterable[str]) -> Work[list[str]]:
        """Those that match, as a whole."""
        found = []
        pause_at = self._reached + SLICE_STEPS
        for name in names:
            if len(name) > self._length_max:
                continue
            pause_at -= 1 + len(name)
            state = self._start
            for char in name:
                following = state.steps.get(char)
                if following is None:
                    following = self._step(state, char)
                    if self._reached >= pause_at:
                        yield
                        pause_at = self._reached + SLICE_STEPS
                state = following
                if not state.places:
                    break
            if state.places and self._is_accepted(state):
                found.append(name)
            if self._reached >= pause_at:
                yield
                pause_at = self._reached + SLICE_STEPS
        return found

    def _is_accepted(self, state: _State) -> bool:
        if state.accepts is None:
            state.accepts = _END in self._reachable(state, "")
        return state.accepts

    def _step(self, state: _State, char: str) -> _State:
        places = set()
        for place in self._reachable(state, char):
            node = self._program[place]
            if isinstance(node, _Read) and char in node.chars:
                places.add(node.then)
        key = (frozenset(places), "w" if char in WORD else char if char == "\n" else "-")
        found = self._states.get(key)
        if found is None:
            if len(self._states) >= STATES_MAX:
                self._states.clear()
                self._start.steps.clear()
            found = self._states[key] = _State(*key)
        state.steps[char] = found
        return found

    def _reachable(self, state: _State, following: str) -> set[int]:
        """Without reading anything, given what comes next ("": the end)."""
        is_word_edge = (state.last == "w") != (following in WORD)
        holds = {
            Place.BEGIN: not state.last,
            Place.END: not following,
            Place.WORD_EDGE: is_word_edge,
            Place.NO_WORD_EDGE: not is_word_edge,
            Place.LINE_BEGIN: state.last in ("", "\n"),
            Place.LINE_END: following in ("", "\n"),
        }
        found: set[int] = set()
        ahead = list(state.places)
        while ahead:
            place = ahead.pop()
            if place in found:
                continue
            found.add(place)
            node = self._program[place]
            if isinstance(node, _Fork):
                ahead.extend(node.then)
            elif isinstance(node, _Check) and holds[node.place]:
                ahead.append(node.then)
        self._reached += len(found)
        return found

    # --- tree to program, from the end to the start

    def _compile(self, node: Node, then: int) -> int:
        if isinstance(node, Chars):
            return self._add(_Read(node.chars, then))
        if isinstance(node, At):
            return self._add(_Check(node.place, then))
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Either):
            return self._add(_Fork(tuple(self._compile(part, then) for part in node.parts)))
        return self._compile_repeat(node, then)

    def _compile_repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self._add(_Fork(()))
            self._program[loop] = _Fork((self._compile(node.part, loop), then))
            then = loop
        else:
            end = then
            for _ in range(node.most - node.least):
                then = self._add(_Fork((self._compile(node.part, then), end)))
        for _ in range(node.least):
            then = self._compile(node.part, then)
        return then

    def _add(self, node: _Read | _Fork | _Check) -> int:
        if len(self._program) >= PLACES_MAX:
            raise InvalidRegex("expression too large")
        self._program.append(node)
        return len(self._program) - 1
