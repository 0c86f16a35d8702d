"""All groups of one partition of ``__consumer_offsets``: their members, classic and new, and their offsets.

The parts (``offsets``, ``classic``, ``consumer``) share one map of groups and decide for themselves; here is what
concerns all of them: which part a record belongs to, deletion, listing, and the sweep that forgets what is too old.

A crash forgets what was never written; the rest is replayed. Sweeps write in slices, each small enough for one batch
and for one turn of the loop; one that can't be written ends its sweep, and the next sweep finds what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.config.groups import GroupSettings
from penstock.coordination.groups.classic import ClassicGroup, ClassicGroups, Phase
from penstock.coordination.groups.classic.member import JoinReply, SyncReply
from penstock.coordination.groups.consumer import ConsumerGroups, TopicsView
from penstock.coordination.groups.consumer.classic_door import ClassicDoor
from penstock.coordination.groups.group import Group
from penstock.coordination.groups.meters import GroupMeters
from penstock.coordination.groups.offsets import OffsetStore
from penstock.coordination.home import Ended, Producer
from penstock.coordination.records import CoordinatorRecord
from penstock.coordination.runtime import Decision
from penstock.model import ZERO_TOPIC_ID, BrokerError, ErrorCode, TopicId
from penstock.ports import Clock, Random, TimerHandle
from penstock.protocol.schema import classic_group_records as stored
from penstock.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.schema.join_group import JoinGroupRequest
from penstock.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.protocol.schema.list_groups import ListGroupsResponse
from penstock.protocol.schema.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.protocol.schema.sync_group import SyncGroupRequest

SLICE_GROUPS = 200
SLICE_OFFSETS = 5_000
"""Looked at by a sweep at a stretch: whichever comes first."""
SLICE_BYTES = 500_000
"""Of tombstones in one batch; half of what a batch may have."""

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
    ) -> None:
        meters = meters or GroupMeters()
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self.groups, settings, clock, random, write_soon, meters.classic)
        self.consumer = ConsumerGroups(self.groups, settings, clock, random, write_soon, topics, meters.consumer)
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

    def listed(self, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[ListGroupsResponse.ListedGroup]:
        """Filters in any case; an empty one lets everything through, an unknown word nothing."""
        wanted_states = {state.lower().strip() for state in states}
        wanted_kinds = {kind.lower() for kind in kinds}
        return [
            ListGroupsResponse.ListedGroup(group.group_id, group.protocol_type, group.state, group.kind)
            for group in self.groups.values()
            if (not wanted_states or group.state.lower() in wanted_states)
            and (not wanted_kinds or group.kind in wanted_kinds)
        ]

    def delete(self, group_id: str) -> Decision[bool]:
        """The answer: whether it is done. A group with very many offsets goes in several steps, itself with the last.
        Raises ``BrokerError``: not there, or not empty."""
        group = self.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        step = _as_many_as_fit(offsets := self.offsets.all_tombstones(group_id))
        if len(step) < len(offsets):
            return Decision(False, step)
        return Decision(True, [*step, *group.tombstones()])

    # --- sweeping

    def sweep(self) -> None:
        """Forget offsets that are too old, and empty groups without any."""
        self._sweep_on(list(self.groups))

    def _sweep_on(self, group_ids: Sequence[str]) -> None:
        def decide(machine: GroupMachine) -> Decision[None]:
            records: list[CoordinatorRecord] = []
            offsets = size_bytes = done = 0
            while done < len(group_ids) and done < SLICE_GROUPS and offsets < SLICE_OFFSETS:
                group = machine.groups.get(group_ids[done])
                if group is not None:
                    offsets += sum(map(len, machine.offsets.of_group(group.group_id).values()))
                    found = machine._expired(group)
                    size_bytes += sum(map(_size_bytes, found))
                    if records and size_bytes > SLICE_BYTES:
                        break
                    records += found
                done += 1
            fitting = _as_many_as_fit(records)
            if len(fitting) < len(records):
                done -= 1  # one huge group: it is looked at again
            rest = group_ids[done:]
            return Decision(None, fitting, on_committed=(lambda: machine._sweep_on(rest)) if rest else None)

        if not self._is_closed:
            self._write_soon("expiry of offsets", decide)

    def _expired(self, group: Group) -> list[CoordinatorRecord]:
        records, is_all = self.offsets.expired(group)
        if is_all and group.is_empty:
            records += group.tombstones()
        return records

    def forget_topics(self, names: Iterable[str]) -> None:
        """They were deleted: so are their offsets, but not those of a topic that is made anew under the name."""
        self._forget_on(self.offsets.committed_for(names))

    def _forget_on(self, deleted: Sequence[tuple[str, str, int, int]]) -> None:
        def decide(machine: GroupMachine) -> Decision[None]:
            found = machine.offsets.tombstones_of(deleted[:SLICE_OFFSETS])
            fitting = _as_many_as_fit(found)
            rest = deleted[SLICE_OFFSETS:] if len(fitting) == len(found) else deleted
            return Decision(None, fitting, on_committed=lambda: machine._forget_on(rest))

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
