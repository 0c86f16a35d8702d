"""How a bug is planted, and in which scenario it should show.

A planted bug is a monkeypatch of the product: ``plant(patch)`` in a file of its own, whose docstring says what is
broken, which promise that breaks, and how it could be found. ``planted`` puts it in, and takes it out again.

A scenario narrows what ``plan`` draws to what makes the bug show: workloads, kinds of faults, topics, settings. Nothing
in it depends on a particular seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from headpond.storage.commit import checkpoint_rounds, group_commit, journal
from simulation.faults import Fault
from simulation.harness.chance import stream
from simulation.plan import Options, draw_plan, draw_settings, draw_topics
from simulation.site import Topic


class Patch:
    """Replaces attributes of classes and modules; ``undo`` puts back what was there."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def now(self, owner: Any, name: str) -> Any:
        """What stands there, also a function that a module has from another."""
        return getattr(owner, name)

    def set(self, owner: Any, name: str, value: Any) -> None:
        before = owner.__dict__[name]  # as it stands there: a property, a static method
        self._before.append((owner, name, before))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._before:
            setattr(*self._before.pop())


Draw = Callable[[random.Random, Options], tuple[Fault, ...]]


class Scenario(NamedTuple):
    workloads: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    """Of faults, see ``plan.KINDS``; none: a run without."""
    flush: str = "ack"
    topics: tuple[str, ...] = ()
    """Their names, of those that ``plan`` draws; none given: all."""
    configs: tuple[tuple[str, str], ...] = ()
    """Of each topic, instead of what was drawn or besides."""
    partitions: int | None = None
    """Of each topic."""
    settings: tuple[tuple[str, str], ...] = ()
    """Of the broker, instead of what was drawn or besides."""
    draw: Draw | None = None
    """The plan of faults, where their order matters; else any of ``kinds`` at any time."""
    tune: Callable[[Patch], None] | None = None
    """Other limits of the product, so that little load is enough; in force with the bug and without."""

    def options(self, seed: int) -> Options:
        chance = stream(seed, "options")
        topics = draw_topics(chance, self.workloads)
        settings = _with(draw_settings(chance, self.flush), self.settings)
        chosen = tuple(self._narrowed(each) for each in topics if not self.topics or each.name in self.topics)
        return Options(self.flush, self.kinds, self.workloads, chosen, settings)

    def plan(self, seed: int, options: Options) -> tuple[Fault, ...]:
        if self.draw is not None:
            return self.draw(stream(seed, "faults"), options)
        return draw_plan(seed, options) if self.kinds else ()

    def _narrowed(self, topic: Topic) -> Topic:
        topic = topic._replace(configs=_with(topic.configs, self.configs))
        return topic if self.partitions is None else topic._replace(partitions=self.partitions)


class Ablation(NamedTuple):
    name: str
    plant: Callable[[Patch], None]
    scenario: Scenario
    blind: str = ""
    """Why the simulator can't find it, where it can't."""

    def options(self, seed: int) -> Options:
        return self.scenario.options(seed)

    def plan(self, seed: int, options: Options) -> tuple[Fault, ...]:
        return self.scenario.plan(seed, options)

    @classmethod
    def of(cls, module: ModuleType) -> Ablation:
        name = module.__name__.rpartition(".")[2].replace("_", " ")
        return cls(name, module.plant, module.SCENARIO, getattr(module, "BLIND", ""))


@contextmanager
def planted(plant: Callable[[Patch], None]) -> Iterator[None]:
    patch = Patch()
    try:
        plant(patch)
        yield
    finally:
        patch.undo()


def one_after_the_other(
    *makes: Callable[[random.Random, float], Fault], gap_s: tuple[float, float], times: int
) -> Draw:
    """A plan in which these faults follow each other closely, several times."""

    def draw(chance: random.Random, options: Options) -> tuple[Fault, ...]:
        span_s = (options.safety_s - 2) / times
        faults: list[Fault] = []
        for number in range(times):
            at_s = 1 + number * span_s + chance.uniform(0, span_s / 2)
            for make in makes:
                faults.append(make(chance, round(at_s, 3)))
                at_s += chance.uniform(*gap_s)
        return tuple(faults)

    return draw


def journal_soon(patch: Patch) -> None:
    """Two dirty logs are many: for the journal, not for checkpoint rounds, which would sync everything then."""
    patch.set(group_commit, "SYNC_ALL_FROM_LOGS", 2)
    patch.set(journal, "MANY_LOGS", 2)


def rare_rounds(patch: Patch) -> None:
    """Checkpoint rounds sync little: a crash at a sync is mostly one at a log's."""
    patch.set(checkpoint_rounds, "INTERVAL_S", 5.0)


def _with(entries: tuple[tuple[str, str], ...], others: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple({**dict(entries), **dict(others)}.items())
