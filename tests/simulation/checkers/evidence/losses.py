"""Which records a correct broker may have removed by the end of a run.

Below the log start: any (whether the log start may be there is D5's question). Compaction, where the topic was ever
compacted, may have removed

    - a record whose key has a later record that is visible to read_committed: aborted ones hide nobody else's
    - a tombstone, and what lies before a tombstone of its key that has itself gone since
    - a record without a key
    - a record of a transaction that was not certainly committed
"""

from __future__ import annotations

from math import inf

from simulation.checkers.evidence.facts import of_kind
from simulation.checkers.evidence.fates import Fates
from simulation.checkers.evidence.policies import Policies
from simulation.history import History, Place, Send

Key = tuple[str, int, bytes | None]


class Losses:
    def __init__(self, history: History, policies: Policies, fates: Fates) -> None:
        self._logs = history.final_logs
        self._policies = policies
        self._fates = fates
        self._tombstones: dict[Key, float] = {}
        self._latest: dict[Place, dict[bytes | None, int]] = {}
        if not policies.compacted:
            return
        for send in of_kind(history, Send):
            if send.value is None and send.outcome != "failed" and not fates.is_excluded(send.transaction):
                key = send.topic, send.partition, send.key
                known = send.offset if send.outcome == "ok" and send.offset >= 0 else inf
                self._tombstones[key] = max(self._tombstones.get(key, -1), known)
        for place, log in history.final_logs.items():
            if place.topic in policies.compacted:
                self._latest[place] = {seen.key: seen.offset for seen in log.committed}

    def may_be_gone(
        self, place: Place, offset: int, key: bytes | None, value: bytes | None, transaction: str | None
    ) -> bool:
        if offset < self._logs[place].log_start_offset:
            return True
        if place.topic not in self._policies.compacted:
            return False
        if key is None or value is None or not self._fates.is_certain(transaction):
            return True
        if self._latest[place].get(key, -1) > offset:
            return True
        return self._tombstones.get((place.topic, place.partition, key), -1) > offset
