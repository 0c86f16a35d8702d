"""How far groups have come: committed offsets, those of open transactions, and when they are forgotten.

    OffsetCommit      -> a record per partition -> ``replay`` -> what OffsetFetch answers
    TxnOffsetCommit   -> the same on behalf of a producer -> pending -> its marker (``replay_end``) -> counts, or not
    OffsetDelete, expiry, a deleted topic or group -> tombstones

Of a plain commit and a transaction's for the same partition the one that was *written* later counts, whenever the
transaction ends: so compaction, which keeps the later record, can't change the outcome.

Each offset remembers the id of its topic. A topic that was deleted and made anew under its name has none of the old
one's offsets, also where a crash came between the deletion and the tombstones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.group import CommittedPartition, Group
from headpond.coordination.groups.offset_memory import NO_TIME, CommittedOffset, Offsets, OffsetsOfTopic
from headpond.coordination.groups.offset_records import NewOffsets, tombstone
from headpond.coordination.home import Ended, Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import Work
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from headpond.ports import Clock
from headpond.protocol.schema.classic_group_records import OffsetCommitKey, OffsetCommitValue
from headpond.protocol.schema.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from headpond.protocol.schema.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

NO_OFFSET = -1
NO_EPOCH = -1
TIME_MAX_MS = (1 << 63) - 1
NO_RETENTION = -1
"""What OffsetCommit v2-v4 says when the broker's retention shall count."""
GROUP_ID_NOT_FOUND_SINCE = 9
"""OffsetCommit says so of a group that is not there; before, its generation was illegal."""

SLICE_OFFSETS = 2_000
"""Looked at, at a stretch: some milliseconds."""

CommitRow = OffsetCommitResponse.OffsetCommitResponsePartition
TxnRow = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions


class CommittedBefore(NamedTuple):
    """An offset, as of some moment."""

    group_id: str
    topic: str
    partition: int
    position: int


class OffsetStore:
    def __init__(
        self,
        groups: Mapping[str, Group],
        *,
        settings: Callable[[], GroupSettings],
        clock: Clock,
        make_simple_group: Callable[[str], object],
        topic_id_of: Callable[[str], TopicId],
    ) -> None:
        """``make_simple_group`` puts an empty group into ``groups``: somebody commits who never joined.
        ``topic_id_of``: zero for a topic that is not there."""
        self._groups = groups
        self._settings = settings
        self._clock = clock
        self._make_simple_group = make_simple_group
        self._topic_id_of = topic_id_of
        self._committed = Offsets()
        self._pending: dict[int, Offsets] = {}
        """By producer id."""
        self._open: dict[str, dict[int, None]] = {}
        """Producers with pending offsets, by group."""
        self._position = 0
        self._topic_ids: dict[bytes, bytes] = {}

    @property
    def count(self) -> int:
        return self._committed.count

    @property
    def has_any(self) -> bool:
        """Pending ones included."""
        return bool(self._committed.count or self._pending)

    def of_group(self, group_id: str) -> Mapping[str, OffsetsOfTopic]:
        """What is committed, by topic and partition; not to be changed."""
        return self._committed.of_group(group_id)

    # --- committing

    def commit(self, request: OffsetCommitRequest, version: int) -> Decision[OffsetCommitResponse]:
        """The topics must exist, with their names filled in. Raises ``BrokerError`` when the group refuses."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch >= 0:
                if version >= GROUP_ID_NOT_FOUND_SINCE:
                    raise _not_found(request.group_id)
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        else:
            group.check_commit(
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                generation_or_epoch=request.generation_id_or_member_epoch,
                is_transactional=False,
                request_version=version,
                partitions=_named(request.topics) if group.kind != "classic" else (),
            )
        now_ms = self._clock.now_ms()
        new = NewOffsets(
            request.group_id,
            now_ms=now_ms,
            expires_ms=_expires_ms(now_ms, request.retention_time_ms),
            metadata_max=self._settings().metadata_characters_max,
        )
        topics = []
        for topic in request.topics:
            topic_id = topic.topic_id if topic.topic_id != ZERO_TOPIC_ID else self._topic_id_of(topic.name)
            rows = [CommitRow(each.partition_index, new.add(topic.name, topic_id, each)) for each in topic.partitions]
            topics.append(OffsetCommitResponse.OffsetCommitResponseTopic(topic.name, topic.topic_id, rows))
        return Decision(OffsetCommitResponse(topics=topics), new.records)

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, version: int) -> Decision[TxnOffsetCommitResponse]:
        """The transaction must have been checked, and the topics must exist. Raises ``BrokerError``."""
        group = self._groups.get(request.group_id)
        if group is not None:
            self._check_transactional(group, request, version)
        elif request.generation_id >= 0:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        new = NewOffsets(
            request.group_id,
            now_ms=self._clock.now_ms(),
            expires_ms=NO_TIME,
            metadata_max=self._settings().metadata_characters_max,
        )
        topics = []
        for topic in request.topics:
            topic_id = self._topic_id_of(topic.name)
            rows = [TxnRow(each.partition_index, new.add(topic.name, topic_id, each)) for each in topic.partitions]
            topics.append(TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(topic.name, rows))
        return Decision(
            TxnOffsetCommitResponse(topics=topics),
            new.records,
            producer=Producer(request.producer_id, request.producer_epoch),
        )

    def _check_transactional(self, group: Group, request: TxnOffsetCommitRequest, version: int) -> None:
        partitions = [
            CommittedPartition(topic.name, wanted.partition_index)
            for topic in request.topics
            for wanted in topic.partitions
        ]
        try:
            group.check_commit(
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                generation_or_epoch=request.generation_id,
                is_transactional=True,
                request_version=version,
                partitions=partitions,
            )
        except BrokerError as refused:
            if refused.code is ErrorCode.STALE_MEMBER_EPOCH:  # unknown to this API
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION, refused.message) from refused
            raise

    # --- fetching

    def fetch(self, wanted: FetchGroup, *, require_stable: bool) -> Work[FetchedGroup]:
        """With ``topics`` None: all. A group that is not there has no offsets, which is no error. Raises
        ``BrokerError`` when the group refuses. What is committed between two slices may be in it, or not."""
        group = self._groups.get(wanted.group_id)
        if group is not None:
            try:
                group.check_fetch(member_id=wanted.member_id, member_epoch=wanted.member_epoch)
            except BrokerError as refused:
                if refused.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                group = None
        topics, left = [], SLICE_OFFSETS
        for name, asked_id, partitions in self._asked(wanted, has_any=group is not None):
            topic_id = asked_id if asked_id != ZERO_TOPIC_ID else self._topic_id_of(name)
            rows: list[FetchedPartition] = []
            for start in range(0, len(partitions), SLICE_OFFSETS):
                some = partitions[start : start + SLICE_OFFSETS]
                held = self._committed.of_group(wanted.group_id).get(name, {}) if group is not None else {}
                is_unstable = require_stable and wanted.group_id in self._open
                if wanted.topics is None:
                    some = [each for each in some if each in held and not _is_of_another(held[each], topic_id)]
                rows += self._rows(wanted.group_id, name, some, held, topic_id, is_unstable)
                left -= len(some)
                if left <= 0:
                    left = SLICE_OFFSETS
                    yield None
            if rows or wanted.topics is not None:
                topics.append(FetchedTopic(name=name, topic_id=asked_id, partitions=rows))
            left -= 1
            if left <= 0:
                left = SLICE_OFFSETS
                yield None
        return FetchedGroup(group_id=wanted.group_id, topics=topics)

    def _asked(self, wanted: FetchGroup, *, has_any: bool) -> Iterator[tuple[str, TopicId, list[int]]]:
        if wanted.topics is not None:
            for topic in wanted.topics:
                yield topic.name, TopicId(topic.topic_id), topic.partition_indexes
        elif has_any:
            for name in sorted(self._committed.of_group(wanted.group_id)):
                yield name, ZERO_TOPIC_ID, sorted(self._committed.of_group(wanted.group_id).get(name, ()))

    def _rows(
        self,
        group_id: str,
        topic: str,
        partitions: Iterable[int],
        held: OffsetsOfTopic,
        topic_id: TopicId,
        is_unstable: bool,
    ) -> list[FetchedPartition]:
        rows = []
        for index in partitions:
            committed = held.get(index)
            if is_unstable and self.is_pending(group_id, topic, index):
                row = FetchedPartition(index, NO_OFFSET, NO_EPOCH, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
            elif committed is None or _is_of_another(committed, topic_id):
                row = FetchedPartition(index, NO_OFFSET, NO_EPOCH, "")
            else:
                row = FetchedPartition(index, committed.offset, committed.leader_epoch, committed.metadata)
            rows.append(row)
        return rows

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any(
            self._pending[producer_id].get(group_id, topic, partition) is not None
            for producer_id in self._open.get(group_id, ())
        )

    # --- forgetting

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        """The topics must exist. Raises ``BrokerError`` when it is not for now, or there is no such group."""
        group = self._groups.get(request.group_id)
        if group is None:
            raise _not_found(request.group_id)
        group.check_delete_offsets()
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            is_used = group.is_subscribed_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_used else ErrorCode.NONE
            rows = []
            for partition in topic.partitions:
                index = partition.partition_index
                if not is_used and self._is_known(request.group_id, topic.name, index):
                    records.append(tombstone(request.group_id, topic.name, index))
                rows.append(OffsetDeleteResponse.OffsetDeleteResponsePartition(index, error))
            topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(topic.name, rows))
        return Decision(OffsetDeleteResponse(topics=topics), records)

    def all_tombstones(self, group_id: str) -> Iterator[CoordinatorRecord]:
        """What removes every offset of the group, pending ones included; made one by one, as there may be many."""
        of_others: set[tuple[str, int]] = set()
        for topic, partitions in self._committed.of_group(group_id).items():
            for partition in partitions:
                yield tombstone(group_id, topic, partition)
        for producer_id in self._open.get(group_id, ()):
            for topic, partitions in self._pending[producer_id].of_group(group_id).items():
                for partition in partitions:
                    is_known = self._committed.get(group_id, topic, partition) is not None
                    if not is_known and (topic, partition) not in of_others:
                        of_others.add((topic, partition))
                        yield tombstone(group_id, topic, partition)

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """What the group has committed offsets for; they may change while this is read."""
        topics = self._committed.of_group(group_id)
        for topic in list(topics):
            for partition in list(topics.get(topic, ())):
                yield topic, partition

    def count_of(self, group_id: str) -> int:
        return sum(map(len, self._committed.of_group(group_id).values()))

    def has_pending(self, group_id: str) -> bool:
        return group_id in self._open

    def is_expired(self, group: Group, topic: str, partition: int) -> bool:
        committed = self._committed.get(group.group_id, topic, partition)
        if committed is None or group.is_subscribed_to(topic):
            return False
        since_ms = group.offsets_expire_since_ms(committed.committed_ms)
        if since_ms is None:
            return False
        now_ms = self._clock.now_ms()
        if committed.expires_ms != NO_TIME:
            is_too_old = now_ms >= committed.expires_ms
        else:
            is_too_old = now_ms - since_ms >= self._settings().retention_ms
        return is_too_old and not self.is_pending(group.group_id, topic, partition)

    def committed_for(self, topics: Iterable[str]) -> Work[list[CommittedBefore]]:
        """Every offset for these topics that there is now, pending ones included."""
        wanted, newest = sorted(topics), self._position

        def look() -> Work[list[CommittedBefore]]:
            found: list[CommittedBefore] = []
            looked_at = 0
            for offsets in (self._committed, *self._pending.values()):
                for group_id in list(offsets.by_group):
                    for topic in wanted:
                        held = offsets.of_group(group_id).get(topic, {})
                        found += [
                            CommittedBefore(group_id, topic, partition, committed.position)
                            for partition, committed in held.items()
                            if committed.position <= newest
                        ]
                        looked_at += 1 + len(held)
                        if looked_at >= SLICE_OFFSETS:
                            looked_at = 0
                            yield None
            return found

        return look()

    def tombstones_of(self, deleted: Iterable[CommittedBefore]) -> list[CoordinatorRecord]:
        """For what ``committed_for`` listed, unless something newer was committed meanwhile."""
        gone: dict[tuple[str, str, int], None] = {}
        for group_id, topic, partition, position in deleted:
            newest = self._newest(group_id, topic, partition)
            if newest is not None and newest <= position:
                gone[group_id, topic, partition] = None
        return [tombstone(*each) for each in gone]

    def _is_known(self, group_id: str, topic: str, partition: int) -> bool:
        return self._newest(group_id, topic, partition) is not None

    def _newest(self, group_id: str, topic: str, partition: int) -> int | None:
        positions = []
        for offsets in (self._committed, *(self._pending[each] for each in self._open.get(group_id, ()))):
            committed = offsets.get(group_id, topic, partition)
            if committed is not None:
                positions.append(committed.position)
        return max(positions, default=None)

    # --- replaying

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer: Producer | None) -> None:
        group_id, topic, partition = key.group, key.topic, key.partition
        if value is None:
            self._committed.remove(group_id, topic, partition)
            for producer_id in list(self._open.get(group_id, ())):
                pending = self._pending[producer_id]
                pending.remove(group_id, topic, partition)
                if group_id not in pending.by_group:
                    self._close(group_id, producer_id)
            return
        if group_id not in self._groups:
            self._make_simple_group(group_id)
        self._position += 1
        topic_id = self._topic_ids.setdefault(value.topic_id, value.topic_id)  # one object, however many offsets
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            topic_id,
            self._position,
        )
        if producer is None:
            self._committed.put(group_id, topic, partition, committed)
        else:
            self._pending.setdefault(producer.producer_id, Offsets()).put(group_id, topic, partition, committed)
            self._open.setdefault(group_id, {})[producer.producer_id] = None

    def replay_end(self, ended: Ended) -> None:
        producer_id = ended.producer.producer_id
        pending = self._pending.pop(producer_id, None)
        if pending is None:
            return
        for group_id in pending.by_group:
            self._close(group_id, producer_id)
        if not ended.is_commit:
            return
        for group_id, topic, partition, committed in pending:
            before = self._committed.get(group_id, topic, partition)
            if before is None or before.position < committed.position:
                self._committed.put(group_id, topic, partition, committed)

    def _close(self, group_id: str, producer_id: int) -> None:
        """The producer has nothing pending in the group any more."""
        producers = self._open[group_id]
        del producers[producer_id]
        if not producers:
            del self._open[group_id]


def _named(topics: Iterable[OffsetCommitRequest.OffsetCommitRequestTopic]) -> list[CommittedPartition]:
    return [
        CommittedPartition(topic.name, wanted.partition_index, TopicId(topic.topic_id))
        for topic in topics
        for wanted in topic.partitions
    ]


def _is_of_another(committed: CommittedOffset, topic_id: TopicId) -> bool:
    known = committed.topic_id
    return known != topic_id and known != ZERO_TOPIC_ID and topic_id != ZERO_TOPIC_ID


def _expires_ms(now_ms: int, retention_ms: int) -> int:
    return NO_TIME if retention_ms == NO_RETENTION else min(now_ms + retention_ms, TIME_MAX_MS)


def _not_found(group_id: str) -> BrokerError:
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
