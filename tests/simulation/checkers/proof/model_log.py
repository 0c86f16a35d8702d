"""A partition of the model: see ``model``."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checkers.proof.handmade import batch, final, marker, seen
from simulation.history import Batch, FinalLog, Place, Seen, Send


class Log:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.batches: list[Batch] = []
        self.start = self.end = 0
        self.open: dict[int, int] = {}
        """Producer id -> first offset."""
        self.aborted: set[int] = set()
        self._of_producer: dict[int, list[int]] = {}

    @property
    def stable(self) -> int:
        return max(self.start, min([*self.open.values(), self.end]))

    def append(self, send: Send, sequence: int) -> int:
        offset, producer = self.end, (send.producer_id, send.producer_epoch)
        record = seen(offset, send.value, send.key, send.timestamp_ms)
        is_transactional = send.transaction is not None
        self.batches.append(batch(record, producer=producer, sequence=sequence, transactional=is_transactional))
        if is_transactional:
            self.open.setdefault(send.producer_id, offset)
            self._of_producer.setdefault(send.producer_id, []).append(offset)
        self.end += 1
        return offset

    def finish(self, producer: tuple[int, int], *, is_commit: bool) -> None:
        self.batches.append(marker(self.end, "commit" if is_commit else "abort", producer))
        self.end += 1
        self.open.pop(producer[0], None)
        offsets = self._of_producer.pop(producer[0], [])
        if not is_commit:
            self.aborted.update(offsets)

    def visible(self, isolation: str, position: int = 0) -> Iterator[Seen]:
        is_committed = isolation == "read_committed"
        end = self.stable if is_committed else self.end
        hidden = self.aborted if is_committed else ()
        for each in self.batches:
            offset = each.base_offset
            if not each.control and max(position, self.start) <= offset < end and offset not in hidden:
                yield each.records[0]

    def final(self, *, compacts: bool) -> FinalLog:
        last = {each.key: each.offset for each in self.visible("read_committed")}
        kept = [
            each
            for each in self.batches
            if each.base_offset >= self.start
            and (
                not compacts
                or each.control
                or (each.base_offset not in self.aborted and last[each.records[0].key] == each.base_offset)
            )
        ]
        policy = {"cleanup.policy": "compact"} if compacts else {}
        numbers = {"high_watermark": self.end, "last_stable_offset": self.end, "log_end_offset": self.end}
        return final(
            *kept, place=self.place, hidden=self.aborted, log_start_offset=self.start, configs=policy, **numbers
        )
