"""What all members of a group together have seen: who took which partition, and which commits were answered.

What is wrong whatever happens to the members: a partition is taken while another member has it that is not fenced; a
commit or a heartbeat of a member succeeds that was sent after somebody else had taken what it claims; an offset that
was acknowledged is not there for the next owner, or one that nobody committed is.
"""

from __future__ import annotations

from collections.abc import Iterable


class Ledger:
    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.owners: dict[int, str] = {}
        self._lost: dict[str, set[int]] = {}  # by member: taken by others while it had not given them up
        self.acknowledged = [0] * partitions
        self.attempted = [0] * partitions
        self.takeovers = self.commits = self.fenced = 0

    # --- who has what

    def take(self, who: str, partition: int) -> None:
        before = self.owners.get(partition)
        if before is not None and before != who:
            self.takeovers += 1
            self._lost.setdefault(before, set()).add(partition)  # it has to be fenced: ``heard`` will tell
        self.owners[partition] = who

    def give_up(self, who: str, partitions: Iterable[int]) -> None:
        lost = self._lost.get(who, set())
        for partition in partitions:
            lost.discard(partition)
            if self.owners.get(partition) == who:
                del self.owners[partition]

    def gone(self, who: str) -> None:
        """It left, or it crashed: it claims nothing any more."""
        self.give_up(who, range(self.partitions))

    def has_lost(self, who: str) -> frozenset[int]:
        """Asked before a request is sent: if it succeeds although something had been lost, two own a partition."""
        return frozenset(self._lost.get(who, ()))

    def heard(self, who: str, lost_before: frozenset[int], *, is_accepted: bool) -> None:
        """How a heartbeat went."""
        assert not (is_accepted and lost_before), f"{who} is still a member, and others own its {sorted(lost_before)}"
        if lost_before:
            self.fenced += 1

    # --- offsets

    def attempt(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self.attempted[partition] = max(self.attempted[partition], offset)

    def acknowledge(self, who: str, lost_before: frozenset[int], partition: int, offset: int) -> None:
        assert partition not in lost_before, (
            f"{who} committed {partition} after {self.owners.get(partition)} had got it"
        )
        self.commits += 1
        self.acknowledged[partition] = max(self.acknowledged[partition], offset)

    def found(self, who: str, partition: int, acknowledged_before: int, offset: int) -> None:
        """``acknowledged_before``: when it was asked for."""
        assert acknowledged_before <= offset <= self.attempted[partition], (
            f"{who} found {offset} as the offset of {partition}: {acknowledged_before} was acknowledged, "
            f"{self.attempted[partition]} sent"
        )
