"""What topics were told to do with their records, at any time of a run: by their configs, and by admin changes that did
not certainly fail. A policy that may have been in force excuses whatever it explains."""

from __future__ import annotations

from math import inf

from simulation.checkers.evidence.facts import INTERNAL, effect_end_s, of_kind
from simulation.history import AdminChange, History

RETENTION = ("retention.ms", "retention.bytes")


class Policies:
    def __init__(self, history: History) -> None:
        self.compacted: set[str] = set()
        """Topics that were compacted at some time, perhaps."""
        self.retained: set[str] = set()
        """Topics with a retention of their own. The broker's default is taken for endless."""
        self.stamped: set[str] = set()
        """Topics whose records get the broker's timestamp."""
        self._retention_ms: dict[str, int | None] = {}
        """The shortest; None where records go by size, too."""
        self._records_deleted_to: dict[tuple[str, int], float] = {}
        self._deletions: dict[str, list[tuple[float, float]]] = {}
        self._deleted_until_s: dict[str, float] = {}
        for log in history.final_logs.values():
            if log.place.topic.startswith(INTERNAL):
                self.compacted.add(log.place.topic)
            for name, setting in log.configs.items():
                self._configured(log.place.topic, name, setting)
        for change in of_kind(history, AdminChange):
            if change.outcome != "failed":
                self._changed(change)

    def _configured(self, topic: str, name: str, setting: str) -> None:
        if name == "cleanup.policy" and "compact" in setting:
            self.compacted.add(topic)
        elif name in RETENTION and setting != "-1":
            self.retained.add(topic)
            self._retain(topic, name, int(setting))
        elif name == "message.timestamp.type" and setting == "LogAppendTime":
            self.stamped.add(topic)

    def _retain(self, topic: str, name: str, amount: int) -> None:
        before = self._retention_ms.get(topic, amount)
        by_time = name == "retention.ms" and before is not None
        self._retention_ms[topic] = min(before, amount) if by_time and before is not None else None

    def _changed(self, change: AdminChange) -> None:
        for name, setting in change.configs:
            self._configured(change.topic, name, setting)
        if change.kind == "delete":
            self._deletions.setdefault(change.topic, []).append((change.invoked_s, effect_end_s(change)))
            before_s = self._deleted_until_s.get(change.topic, -inf)
            self._deleted_until_s[change.topic] = max(before_s, effect_end_s(change))
        elif change.kind == "delete-records":
            wanted = inf if change.before_offset < 0 else change.before_offset
            where = change.topic, change.partition
            self._records_deleted_to[where] = max(self._records_deleted_to.get(where, 0), wanted)

    def may_be_deleted_after(self, topic: str, moment_s: float) -> bool:
        """Whether a deletion of the topic may have taken effect then or later."""
        return self._deleted_until_s.get(topic, -inf) >= moment_s

    def may_be_deleted_during(self, topic: str, from_s: float, to_s: float) -> bool:
        return any(begin_s <= to_s and end_s >= from_s for begin_s, end_s in self._deletions.get(topic, ()))

    def was_ever_deleted(self, topic: str) -> bool:
        return topic in self._deleted_until_s

    def retention_ms_min(self, topic: str) -> int | None:
        """The shortest time for which a record may have been kept; None: no retention, or none by time alone, or by
        timestamps of the broker's own."""
        return None if topic in self.stamped else self._retention_ms.get(topic)

    def records_deleted_to(self, topic: str, partition: int) -> float:
        """Up to where DeleteRecords may have removed them."""
        return self._records_deleted_to.get((topic, partition), 0)

    def log_start_max(self, topic: str, partition: int) -> float:
        """How far a partition's log start may have moved; endless with a retention of its own."""
        if topic in self.retained:
            return inf
        return self._records_deleted_to.get((topic, partition), 0)
