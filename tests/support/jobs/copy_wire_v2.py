"""Consume, transform, produce, on the wire: version 2 of transactions, in a group of the new protocol, with answers
that get lost.

A word that begins with ``fault:`` is about an answer that no careful client could have expected. Whatever a client can
expect and can't recover from ends the process, for its supervisor to start another.
"""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from lifeline import Lifeline

sys.path.insert(0, str(Path(__file__).parents[2]))

from headpond.protocol.records.reader import read_records
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from support.batches import split
from support.producer_v2 import PatientWire, ProducerV2, Refused
from support.verbs import Topic, describe_topic, fetch_partition, fetch_request
from support.wire import Wire

BATCH_MAX = 40
TIMEOUT_MS = 10_000
JOINING, LEAVING = 0, -1
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH = 22, 25, 110, 113
NOT_A_MEMBER_ANY_MORE = {ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH}
UNSTABLE_OFFSET_COMMIT = 88
READ_COMMITTED = 1


class Membership:
    """In a group of the new protocol: which partitions, and from where."""

    def __init__(self, wire: PatientWire, group: str, topic: Topic) -> None:
        self._wire, self._group, self._topic = wire, group, topic
        self.member_id, self.epoch = str(uuid.uuid4()), JOINING
        self.positions: dict[int, int | None] = {}  # of what it owns; None: not known yet

    def beat(self) -> None:
        owned = ConsumerGroupHeartbeatRequest.TopicPartitions(self._topic.id, sorted(self.positions))
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=3_000,
            subscribed_topic_names=[self._topic.name],
            topic_partitions=[owned] if self.positions else [],
        )
        try:
            answer = self._wire.settle(request, 1, lambda answer: [answer.error_code])
        except Refused as refused:
            if refused.codes <= NOT_A_MEMBER_ANY_MORE:
                self.lose_all()
                return
            raise
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            assigned = {at for topic in answer.assignment.topic_partitions for at in topic.partitions}
            self.positions = {at: self.positions.get(at) for at in sorted(assigned)}
        self._find_positions()

    def lose_all(self) -> None:
        self.positions, self.epoch = {}, JOINING

    def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=LEAVING, topic_partitions=[]
        )
        self._wire.call(request, 1)

    def _find_positions(self) -> None:
        """Not those that a transaction of whoever had the partition may still change."""
        unknown = [at for at, position in self.positions.items() if position is None]
        if not unknown:
            return
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name=self._topic.name, partition_indexes=unknown)],
        )
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        try:
            answer = self._wire.settle(request, 9, lambda answer: [answer.groups[0].error_code])
        except Refused as refused:
            if refused.codes <= NOT_A_MEMBER_ANY_MORE:
                return  # the next heartbeat says so, too
            raise
        for row in answer.groups[0].topics[0].partitions:
            if row.error_code == 0:
                self.positions[row.partition_index] = max(row.committed_offset, 0)
            elif row.error_code != UNSTABLE_OFFSET_COMMIT:
                raise Refused(request, {row.error_code})


class Job:
    def __init__(self, bootstrap: str, source: str, target: str, name: str, options: dict[str, Any]) -> None:
        self._wire = PatientWire(bootstrap, losing=options["losing"])
        with Wire(bootstrap) as wire:
            self._source, self._target = describe_topic(wire, source), describe_topic(wire, target)
        self._group = f"{source}-copiers"
        self._member = Membership(self._wire, self._group, self._source)
        self._producer = ProducerV2(self._wire, f"{source}-{name}", timeout_ms=TIMEOUT_MS)

    def run(self, lifeline: Lifeline) -> None:
        find = FindCoordinatorRequest(coordinator_keys=[self._group])
        self._wire.settle(find, 4, lambda found: [each.error_code for each in found.coordinators])
        self._producer.init()
        while not lifeline.is_asked_to_stop:
            self._member.beat()
            batch = self._collect()
            if batch:
                self._pass_on(batch)
        self._member.leave()

    def _collect(self) -> dict[int, list[bytes]]:
        """What comes next in each partition that it owns."""
        wanted = [fetch_partition(at, offset) for at, offset in self._member.positions.items() if offset is not None]
        if not wanted:
            time.sleep(0.05)
            return {}
        request = fetch_request({self._source: wanted}, version=17, max_wait_ms=100, isolation_level=READ_COMMITTED)
        found: dict[int, list[bytes]] = {}
        for topic in self._wire.call(request, 17).responses:
            for row in topic.partitions:
                begin = self._member.positions[row.partition_index]
                records = [record for batch in split(row.records) for record in read_records(batch.data)]
                values = [each.value or b"" for each in records if begin is not None and each.offset >= begin]
                if values:
                    found[row.partition_index] = values[:BATCH_MAX]
        return found

    def _pass_on(self, batch: dict[int, list[bytes]]) -> None:
        began_at = time.monotonic()
        ends = {at: (self._member.positions[at] or 0) + len(values) for at, values in batch.items()}
        try:
            is_commit = self._write(batch, ends) and random.random() < 0.9
            time.sleep(random.choice((0.0, 0.0, 0.25)))  # a good moment to be killed, or to be frozen
            self._producer.end(is_commit=is_commit)
        except Refused as refused:
            has_timed_out = time.monotonic() - began_at > TIMEOUT_MS / 1_000 - 1
            print("fault:" * (not has_timed_out), refused, flush=True)
            raise
        if is_commit:
            self._member.positions.update(ends)

    def _write(self, batch: dict[int, list[bytes]], ends: dict[int, int]) -> bool:
        """False: the partitions are somebody else's by now."""
        self._producer.produce(self._target, {at: [b"copy of " + each for each in batch[at]] for at in batch})
        try:
            self._producer.commit_offsets(
                self._group, self._source.name, ends, member_id=self._member.member_id, epoch=self._member.epoch
            )
        except Refused as refused:
            if not refused.codes <= NOT_A_MEMBER_ANY_MORE:
                raise
            self._member.lose_all()
            return False
        return True


if __name__ == "__main__":
    lifeline = Lifeline()
    lifeline.watch_stdin()
    Job(*sys.argv[1:5], json.loads(sys.argv[5])).run(lifeline)
