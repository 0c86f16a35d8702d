"""A store of offsets with the groups that a test gives it; every decision is carried out at once, through the codec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.group import CommittedPartition
from headpond.coordination.groups.offset_records import tombstone
from headpond.coordination.groups.offsets import OffsetStore
from headpond.coordination.groups.stored_types import GROUP_CODEC
from headpond.coordination.home import Ended, Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import finish_now
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from headpond.protocol.schema.classic_group_records import OffsetCommitKey, OffsetCommitValue
from headpond.protocol.schema.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from simulation.harness.clock import ManualClock

A = TypeVar("A")
GROUP = "readers"
TOPIC = "letters"
TOPIC_ID = TopicId(b"\1" * 16)
ALL = object()


class FakeGroup:
    """A group that says what the test wants it to say."""

    def __init__(self, group_id: str = GROUP, kind: str = "classic") -> None:
        self.group_id = group_id
        self.kind = kind
        self.state = "Empty"
        self.protocol_type = ""
        self.is_empty = True
        self.refusal: ErrorCode | None = None
        self.subscribed: set[str] = set()
        self.empty_since_ms: int | None = None
        self.never_expires = False
        self.asked: list[Sequence[CommittedPartition]] = []

    def check_commit(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        request_version: int,
        partitions: Sequence[CommittedPartition] = (),
    ) -> None:
        self.asked.append(partitions)
        self._refuse()

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        self._refuse()

    def check_delete(self) -> None:
        self._refuse()

    def check_delete_offsets(self) -> None:
        self._refuse()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_expire_since_ms(self, committed_ms: int) -> int | None:
        if self.never_expires:
            return None
        return committed_ms if self.empty_since_ms is None else self.empty_since_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return []

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise BrokerError(self.refusal)


class Rig:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.clock = ManualClock()
        self.settings = settings or GroupSettings()
        self.groups: dict[str, FakeGroup] = {}
        self.topic_ids: dict[str, TopicId] = {TOPIC: TOPIC_ID}
        self.log: list[tuple[bytes, bytes | None, Producer | None] | Ended] = []
        self.store = self._new_store()

    def _new_store(self) -> OffsetStore:
        return OffsetStore(
            self.groups,
            settings=lambda: self.settings,
            clock=self.clock,
            make_simple_group=lambda group_id: self.groups.setdefault(group_id, FakeGroup(group_id)),
            topic_id_of=lambda name: self.topic_ids.get(name, ZERO_TOPIC_ID),
        )

    # --- writing

    def carry_out(self, decision: Decision[A]) -> A:
        for record in decision.records:
            key, value = GROUP_CODEC.encode(record)
            self.log.append((key, value, decision.producer))
            self._replay(key, value, decision.producer)
        return decision.answer

    def _replay(self, key: bytes, value: bytes | None, producer: Producer | None) -> None:
        record = GROUP_CODEC.decode(key, value)
        assert record is not None and isinstance(record.key, OffsetCommitKey)
        assert record.value is None or isinstance(record.value, OffsetCommitValue)
        self.store.replay(record.key, record.value, producer)

    def end(self, producer: Producer, *, commit: bool) -> None:
        ended = Ended(producer, is_commit=commit)
        self.log.append(ended)
        self.store.replay_end(ended)

    def restart(self) -> None:
        """Forget everything, read the log."""
        self.groups.clear()
        self.store = self._new_store()
        for entry in self.log:
            if isinstance(entry, Ended):
                self.store.replay_end(entry)
            else:
                self._replay(*entry)

    # --- asking

    def commit(
        self,
        offsets: dict[int, int],
        *,
        topic: str = TOPIC,
        topic_id: TopicId = ZERO_TOPIC_ID,
        group: str = GROUP,
        generation: int = -1,
        version: int = 9,
        retention_ms: int = -1,
        metadata: str | None = "",
        leader_epoch: int = -1,
    ) -> dict[int, ErrorCode]:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id,
                    partitions=[partition(index, offset, leader_epoch, metadata) for index, offset in offsets.items()],
                )
            ],
        )
        response: OffsetCommitResponse = self.carry_out(self.store.commit(request, version))
        return {row.partition_index: ErrorCode(row.error_code) for row in response.topics[0].partitions}

    def commit_in_transaction(
        self, producer: Producer, offsets: dict[int, int], *, group: str = GROUP, generation: int = -1
    ) -> dict[int, ErrorCode]:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        request = TxnOffsetCommitRequest(
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            generation_id=generation,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=TOPIC, partitions=[partition(index, offset) for index, offset in offsets.items()]
                )
            ],
        )
        response: TxnOffsetCommitResponse = self.carry_out(self.store.commit_in_transaction(request, 5))
        return {row.partition_index: ErrorCode(row.error_code) for row in response.topics[0].partitions}

    def fetch(
        self,
        *partitions: int,
        topic: str = TOPIC,
        topic_id: TopicId = ZERO_TOPIC_ID,
        group: str = GROUP,
        require_stable: bool = False,
    ) -> dict[int, OffsetFetchResponse.OffsetFetchResponsePartitions]:
        asked = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=topic, topic_id=topic_id, partition_indexes=[*partitions]
        )
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[asked])
        found = finish_now(self.store.fetch(wanted, require_stable=require_stable))
        return {row.partition_index: row for row in found.topics[0].partitions}

    def offset(self, partition: int = 0, *, topic: str = TOPIC, group: str = GROUP) -> int:
        return self.fetch(partition, topic=topic, group=group)[partition].committed_offset

    def everything(self, group: str = GROUP) -> dict[tuple[str, int], int]:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        found = finish_now(self.store.fetch(wanted, require_stable=False))
        return {
            (topic.name, row.partition_index): row.committed_offset
            for topic in found.topics
            for row in topic.partitions
        }

    def expire(self, group: str = GROUP) -> bool:
        """Returns whether nothing is left."""
        of_group = self.groups[group]
        old = [each for each in self.store.partitions_of(group) if self.store.is_expired(of_group, *each)]
        self.carry_out(Decision(None, [tombstone(group, *each) for each in old]))
        return not self.store.count_of(group) and not self.store.has_pending(group)
