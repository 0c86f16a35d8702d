"""Random clients of the model: see ``model``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from simulation.checkers.proof.model import PLACES, SLOW_S, Run
from simulation.checkers.proof.model_log import Log
from simulation.history import (
    AdminChange,
    CommitOffset,
    EndTransaction,
    FetchOffset,
    History,
    Operation,
    Place,
    Poll,
    Search,
    Send,
)


def good_history(seed: int, operations: int) -> History:
    run = Run(seed, operations)
    clients = _Clients(run)
    for _ in range(2):
        for kind in (clients.producer, clients.producer, clients.consumer, clients.group, clients.transactions):
            run.spawn(kind(next(run.numbers)))
        run.spawn(clients.searcher(next(run.numbers)))
    return run.finish()


class _Clients:
    """Each is a generator that yields how long it waits."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def _new_send(self, who: int, place: Place, order: int, **others: Any) -> Send:
        number = next(self.run.numbers)
        keys = b"%d" % self.run.rng.randrange(20)
        timestamp_ms = self.run.rng.randrange(1000)
        return Send(
            topic="t",
            partition=place.partition,
            value=b"v%d" % number,
            key=keys,
            timestamp_ms=timestamp_ms,
            order=order,
            **self.run.asked(who),
            **others,
        )

    def producer(self, who: int) -> Iterator[float]:
        """Pipelined; idempotent ones keep their order."""
        is_idempotent = self.run.rng.random() < 0.5
        last_s = dict.fromkeys(PLACES, 0.0)
        sequences = dict.fromkeys(PLACES, 0)
        for order in count():
            if self.run.now_s > self.run.length_s:
                return
            place = self.run.rng.choice(PLACES)
            producer = {"producer_id": who, "producer_epoch": 0, "is_idempotent": True} if is_idempotent else {}
            send = self._new_send(who, place, order, **producer)
            sequences[place] += 1
            sequence = sequences[place] if is_idempotent else -1

            def append(send: Send = send, place: Place = place, sequence: int = sequence) -> None:
                send.offset = self.run.logs[place].append(send, sequence)

            last_s[place] = self.run.ask(send, append, not_before_s=last_s[place] if is_idempotent else 0)
            yield self.run.rng.random() * 0.2

    def consumer(self, who: int) -> Iterator[float]:
        isolation: Any = self.run.rng.choice(["read_committed", "read_uncommitted"])
        place, session, position = self.run.rng.choice(PLACES), 0, 0
        while self.run.now_s < self.run.length_s:
            log = self.run.logs[place]
            if position < log.start or self.run.rng.random() < 0.05:
                session, position = session + 1, log.start
            poll = Poll(place=place, isolation=isolation, position=position, session=session, **self.run.asked(who))
            is_read: list[int] = []

            def read(poll: Poll = poll, log: Log = log, is_read: list[int] = is_read) -> None:
                is_read.append(poll.position)
                if poll.position < log.start:
                    poll.outcome = "failed"  # out of range
                    return
                end = log.stable if isolation == "read_committed" else log.end
                poll.records = tuple(log.visible(isolation, poll.position))[:5]
                poll.next_position = poll.records[-1].offset + 1 if len(poll.records) == 5 else max(end, poll.position)
                poll.high_watermark, poll.last_stable_offset = log.end, log.stable
                poll.log_start_offset = log.start
                is_read[0] = poll.next_position

            if position <= log.end:
                self.run.ask(poll, read, may_fail=False)
                yield SLOW_S * 2
                position = is_read[0]

    def group(self, who: int) -> Iterator[float]:
        while self.run.now_s < self.run.length_s:
            partition = self.run.rng.randrange(2)
            where: dict[str, Any] = {"group": "g", "topic": "t", "partition": partition, **self.run.asked(who)}
            if self.run.rng.random() < 0.5:
                commit = CommitOffset(offset=self.run.rng.randrange(30), **where)

                def write(commit: CommitOffset = commit) -> None:
                    self.run.offsets[commit.partition] = next(self.run.positions), commit.offset

                self.run.ask(commit, write)
            else:
                fetch = FetchOffset(**where)

                def look(fetch: FetchOffset = fetch) -> None:
                    fetch.offset = self.run.offsets.get(fetch.partition, (0, -1))[1]

                self.run.ask(fetch, look, may_fail=False)
            yield self.run.rng.random() * 0.5

    def transactions(self, who: int) -> Iterator[float]:
        for epoch in count():
            if self.run.now_s > self.run.length_s:
                return
            name = f"x{who}-{epoch}"
            pending: dict[int, tuple[int, int]] = {}
            for order in range(self.run.rng.randrange(1, 5)):
                place = self.run.rng.choice(PLACES)
                producer = {"producer_id": who, "producer_epoch": epoch, "transaction": name}
                send = self._new_send(who, place, epoch * 10 + order, **producer)

                def append(send: Send = send, place: Place = place, order: int = order) -> None:
                    send.offset = self.run.logs[place].append(send, order)

                self.run.ask(send, append)
                yield SLOW_S * 2
            commit = CommitOffset(
                group="g", topic="t", partition=0, offset=100 + epoch, transaction=name, **self.run.asked(who)
            )

            def write(commit: CommitOffset = commit, pending: dict[int, tuple[int, int]] = pending) -> None:
                pending[0] = next(self.run.positions), commit.offset

            self.run.ask(commit, write)
            yield SLOW_S * 2
            yield from self._end(who, epoch, name, pending)

    def _end(self, who: int, epoch: int, name: str, pending: dict[int, tuple[int, int]]) -> Iterator[float]:
        is_commit = self.run.rng.random() < 0.6
        decided: list[bool] = []
        end = EndTransaction(transaction=name, transactional_id=str(who), is_commit=is_commit, **self.run.asked(who))
        self.run.ask(end, lambda: decided.append(is_commit))
        yield SLOW_S * 2
        counts = bool(decided) and decided[0]
        for place in PLACES:
            self.run.logs[place].finish((who, epoch + 1), is_commit=counts)
            yield 0.1
        if counts:
            for partition, written in pending.items():
                if written > self.run.offsets.get(partition, (0, -1)):
                    self.run.offsets[partition] = written

    def searcher(self, who: int) -> Iterator[float]:
        while self.run.now_s < self.run.length_s:
            place = self.run.rng.choice(PLACES)
            search = Search(place=place, timestamp_ms=self.run.rng.randrange(1000), **self.run.asked(who))

            def look(search: Search = search, log: Log = self.run.logs[place]) -> None:
                for each in log.batches:
                    record = each.records[0]
                    if record.offset >= log.start and record.timestamp_ms >= search.timestamp_ms:
                        search.offset, search.found_timestamp_ms = record.offset, record.timestamp_ms
                        return

            self.run.ask(search, look, may_fail=False)
            yield self.run.rng.random()
            if self.run.rng.random() < 0.05 and not self.run.compacts:
                yield from self._delete_records(who, place)

    def _delete_records(self, who: int, place: Place) -> Iterator[float]:
        log = self.run.logs[place]
        before = self.run.rng.randrange(log.stable + 1)
        change: Operation = AdminChange(
            kind="delete-records", topic="t", partition=place.partition, before_offset=before, **self.run.asked(who)
        )

        def delete() -> None:
            log.start = max(log.start, before)

        self.run.ask(change, delete)
        yield SLOW_S * 2
