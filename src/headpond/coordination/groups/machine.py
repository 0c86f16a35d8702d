"""All groups of one partition of ``__consumer_offsets``: their members, classic and new, and their offsets.

The parts (``offsets``, ``classic``, ``consumer``) share one map of groups and decide for themselves; here is what
concerns all of them: which part a record belongs to, deletion, listing, and the sweep that forgets what is too old.

A crash forgets what was never written; the rest is replayed. Sweeps look and write in slices, each small enough for one
batch and for one turn of the loop; one that can't be written ends its sweep, and the next sweep finds what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic import ClassicGroup, ClassicGroups, Phase
from headpond.coordination.groups.classic.member import JoinReply, SyncReply
from headpond.coordination.groups.consumer import ConsumerGroups, TopicsView
from headpond.coordination.groups.consumer.classic_door import ClassicDoor
from headpond.coordination.groups.group import Group
from headpond.coordination.groups.meters import GroupMeters
from headpond.coordination.groups.offset_records import tombstone
from headpond.coordination.groups.offsets import SLICE_OFFSETS, CommittedBefore, OffsetStore
from headpond.coordination.home import Ended, Producer
from headpond.coordination.records import CoordinatorRecord
from headpond.coordination.runtime import Decision
from headpond.coordination.slices import InSlices, Work, at_once, while_wanted
from headpond.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from headpond.ports import Clock, Random, TimerHandle
from headpond.protocol.schema import classic_group_records as stored
from headpond.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from headpond.protocol.schema.list_groups import ListGroupsResponse
from headpond.protocol.schema.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from headpond.protocol.schema.sync_group import SyncGroupRequest

SLICE_GROUPS = 1_000
"""Listed at a stretch: some milliseconds."""
SLICE_TOMBSTONES = 1_000
"""Written at a stretch: some milliseconds."""
SLICE_BYTES = 500_000
"""Of tombstones in one batch; half of what a batch may have."""

A = TypeVar("A")
OldOffset = tuple[str, str, int]
WriteSoon = Callable[[str, Callable[["GroupMachine"], Decision[None]]], None]


class GroupMachine:
    def __init__(
        self,
        *,
        settings: Callable[[], GroupSettings],
        clock: Clock,
        random: Random,
        write_soon: WriteSoon,
        topics: Callable[[], TopicsView],
        meters: GroupMeters | None = None,
        in_slices: InSlices = at_once,
    ) -> None:
        """``in_slices``: for what takes long."""
        meters = meters or GroupMeters()
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self.groups, settings, clock, random, write_soon, meters.classic)
        self.consumer = ConsumerGroups(
            self.groups, settings, clock, random, write_soon, topics, meters.consumer, in_slices
        )
        self.offsets = OffsetStore(
            self.groups,
            settings=settings,
            clock=clock,
            make_simple_group=self.classic.simple,
            topic_id_of=self._topic_id_of,
        )
        self._settings = settings
        self._clock = clock
        self._write_soon = write_soon
        self._topics = topics
        self._in_slices = in_slices
        self._sweep_timer: TimerHandle | None = None
        self._is_closed = False

    # --- what members of classic groups ask; those of a consumer group may speak the classic protocol (KIP-848)

    def join(
        self, request: JoinGroupRequest, *, version: int, client_id: str, client_host: str, reply: JoinReply
    ) -> Decision[None]:
        door = self._door(request.group_id)
        return door.join(request, version=version, client_id=client_id, client_host=client_host, reply=reply)

    def sync(self, request: SyncGroupRequest, *, version: int, reply: SyncReply) -> Decision[None]:
        door = self._door(request.group_id)
        return door.sync(request, version=version, reply=reply)

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Never writes."""
        return self._door(request.group_id).heartbeat(request)

    def leave(self, request: LeaveGroupRequest, *, version: int) -> Decision[LeaveGroupResponse]:
        door = self._door(request.group_id)
        return door.leave(request, version=version)

    def member_ids(self, group_id: str) -> frozenset[str]:
        """Of a classic group."""
        group = self.groups.get(group_id)
        return frozenset(group.members) if isinstance(group, ClassicGroup) else frozenset()

    def _door(self, group_id: str) -> ClassicGroups | ClassicDoor:
        return self.consumer.classic_door if self.consumer.serves(group_id) else self.classic

    # --- what members do beyond their own part

    def commit(self, request: OffsetCommitRequest, version: int) -> Decision[OffsetCommitResponse]:
        """Raises ``BrokerError`` when the group refuses all of it."""
        decision = self.offsets.commit(request, version)
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup) and group.phase in (Phase.STABLE, Phase.PREPARING):
            member = group.members.get(request.member_id)
            if member is not None:
                self.classic.rebalances.restart_session(group, member)  # whoever commits is alive
        return decision

    # --- listing and deleting

    def listed(self, states: Collection[str], kinds: Collection[str]) -> Work[list[ListGroupsResponse.ListedGroup]]:
        """Those in one of these states and of one of these kinds, in lower case; none given: all of them."""
        rows = []
        for number, group in enumerate(list(self.groups.values()), start=1):
            if (not states or group.state.lower() in states) and (not kinds or group.kind in kinds):
                rows.append(
                    ListGroupsResponse.ListedGroup(group.group_id, group.protocol_type, group.state, group.kind)
                )
            if number % SLICE_GROUPS == 0:
                yield None
        return rows

    def delete(self, group_id: str) -> Decision[bool]:
        """The answer: whether it is done. A group with very many offsets goes in several steps, itself with the last.
        Raises ``BrokerError``: not there, or not empty."""
        group = self.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        offsets = list(islice(self.offsets.all_tombstones(group_id), SLICE_TOMBSTONES + 1))
        step = _as_many_as_fit(offsets[:SLICE_TOMBSTONES])
        if len(step) < len(offsets):
            return Decision(False, step)
        return Decision(True, [*step, *group.tombstones()])

    # --- sweeping

    def sweep(self) -> None:
        """Forget offsets that are too old, and empty groups without any."""
        if self.groups:
            self._look("expiry of offsets", self._old(), self._forget_old)

    def _look(self, what: str, work: Work[list[A]], then: Callable[[Sequence[A]], None]) -> None:
        def done(found: list[A] | None) -> None:
            if found:
                then(found)

        self._in_slices(what, while_wanted(work, lambda: not self._is_closed), done)

    def _old(self) -> Work[list[OldOffset | str]]:
        """Offsets that are too old; those of an empty group that has no others are followed by its id."""
        found: list[OldOffset | str] = []
        looked_at = 0
        for group_id in list(self.groups):
            old = 0
            for topic, partition in self.offsets.partitions_of(group_id):
                group = self.groups.get(group_id)
                if group is not None and self.offsets.is_expired(group, topic, partition):
                    found.append((group_id, topic, partition))
                    old += 1
                looked_at += 1
                if looked_at >= SLICE_OFFSETS:
                    looked_at = 0
                    yield None
            group = self.groups.get(group_id)
            if group is not None and group.is_empty and old >= self.offsets.count_of(group_id):
                found.append(group_id)
            looked_at += 1
            if looked_at >= SLICE_OFFSETS:
                looked_at = 0
                yield None
        return found

    def _forget_old(self, old: Sequence[OldOffset | str]) -> None:
        """Looked at again, since time has passed."""

        def decide(machine: GroupMachine) -> Decision[None]:
            step = old[:SLICE_TOMBSTONES]
            found = machine._tombstones_of_old(step)
            fitting = _as_many_as_fit(found)
            rest = old[SLICE_TOMBSTONES:] if len(fitting) == len(found) else old
            return Decision(None, fitting, on_committed=lambda: machine._forget_old(rest))

        if old and not self._is_closed:
            self._write_soon("expiry of offsets", decide)

    def _tombstones_of_old(self, old: Iterable[OldOffset | str]) -> list[CoordinatorRecord]:
        records: list[CoordinatorRecord] = []
        gone: Counter[str] = Counter()
        for each in old:
            if isinstance(each, str):
                group = self.groups.get(each)
                has_none = gone[each] == self.offsets.count_of(each) and not self.offsets.has_pending(each)
                if group is not None and group.is_empty and has_none:
                    records += group.tombstones()
                continue
            group_id, topic, partition = each
            group = self.groups.get(group_id)
            if group is not None and self.offsets.is_expired(group, topic, partition):
                records.append(tombstone(group_id, topic, partition))
                gone[group_id] += 1
        return records

    def forget_topics(self, names: Iterable[str]) -> None:
        """They were deleted: so are their offsets, but not those of a topic that is made anew under the name."""
        if self.offsets.has_any:
            self._look("offsets of deleted topics", self.offsets.committed_for(names), self._forget_deleted)

    def _forget_deleted(self, deleted: Sequence[CommittedBefore]) -> None:
        def decide(machine: GroupMachine) -> Decision[None]:
            found = machine.offsets.tombstones_of(deleted[:SLICE_TOMBSTONES])
            fitting = _as_many_as_fit(found)
            rest = deleted[SLICE_TOMBSTONES:] if len(fitting) == len(found) else deleted
            return Decision(None, fitting, on_committed=lambda: machine._forget_deleted(rest))

        if deleted and not self._is_closed:
            self._write_soon("offsets of deleted topics", decide)

    def topics_changed(self, names: Iterable[str]) -> None:
        """Appeared, went or grew."""
        self.consumer.topics_changed(names)

    def _set_sweep_timer(self) -> None:
        def fired() -> None:
            self.sweep()
            self._set_sweep_timer()

        self._sweep_timer = self._clock.call_later(self._settings().retention_check_interval_ms / 1000, fired)

    # --- the log, and the coordinator's life

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        key: Any = record.key
        value: Any = record.value
        kind = type(key)
        if kind is stored.OffsetCommitKey:
            self.offsets.replay(key, value, producer)
        elif kind is stored.GroupMetadataKey:
            self.classic.replay(key, value)
        elif kind is stored.LegacyOffsetCommitKey:
            self.offsets.replay(
                stored.OffsetCommitKey(key.group, key.topic, key.partition),
                None
                if value is None
                else stored.OffsetCommitValue(
                    offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
                ),
                producer,
            )
        else:
            self.consumer.replay(key, value)

    def replay_end(self, ended: Ended) -> None:
        self.offsets.replay_end(ended)

    def loaded(self) -> None:
        self.classic.loaded()
        self.consumer.loaded()
        self._set_sweep_timer()

    def close(self) -> None:
        self._is_closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self.classic.close()
        self.consumer.close()

    def _topic_id_of(self, name: str) -> TopicId:
        facts = self._topics().facts(name)
        return ZERO_TOPIC_ID if facts is None else facts.topic_id


def _as_many_as_fit(tombstones: Sequence[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """Into one batch."""
    size_bytes = 0
    for count, record in enumerate(tombstones):
        size_bytes += _size_bytes(record)
        if size_bytes > SLICE_BYTES and count:
            return list(tombstones[:count])
    return list(tombstones)


def _size_bytes(tombstone: CoordinatorRecord) -> int:
    """At most; those of groups are few."""
    key: Any = tombstone.key
    return 3 * (len(key.group) + len(key.topic)) + 40 if type(key) is stored.OffsetCommitKey else 40
