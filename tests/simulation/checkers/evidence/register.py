"""A group's committed offset for one partition as a register: what was written and read when."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulation.checkers.evidence.words import span
from simulation.history import AdminChange, CommitOffset, Operation

Key = tuple[str, str, int]
"""Group, topic, partition."""
NOTHING = -1


@dataclass(slots=True, kw_only=True)
class Write:
    offset: int
    invoked_s: float
    ended_s: float
    """By then it was written, if at all."""
    visible_s: float
    """Before, nobody can have seen it."""
    certain_s: float
    """From then on every reader sees it, or what was written later."""
    stable_s: float
    """The same for readers that wait for stable offsets."""
    source: Operation | None = None
    """None: the state at the start."""

    @property
    def what(self) -> str:
        if isinstance(self.source, CommitOffset):
            inside = "" if self.source.transaction is None else f" in transaction {self.source.transaction}"
            return f"the commit of {self.offset} by {self.source.process}{inside}"
        if isinstance(self.source, AdminChange):
            kind = "deletion" if self.source.kind == "delete" else "new creation"
            return f"the {kind} of the topic by {self.source.process}"
        return "the start" if self.source is None else f"the deletion by {self.source.process}"


@dataclass(slots=True, kw_only=True)
class Read:
    offset: int
    invoked_s: float
    ended_s: float
    is_stable: bool
    source: Operation | str
    """A text: a look at the final state."""

    @property
    def is_final(self) -> bool:
        return isinstance(self.source, str)

    @property
    def who(self) -> str:
        return self.source if isinstance(self.source, str) else f"{self.source.process} ({span(self.source)})"


@dataclass(slots=True)
class Register:
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    by_offset: dict[int, list[Write]] = field(default_factory=dict)

    def add(self, write: Write) -> None:
        self.writes.append(write)
        self.by_offset.setdefault(write.offset, []).append(write)
