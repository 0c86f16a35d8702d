"""What members of groups believe, for the history: which generation they heard of, and what they own until when.

Until when    A member owns what it was given until it gives it up, or until its session is over by its own rule
              (``client/group/session``), counted from before it sent the last heartbeat that was answered. The end is
              written down ahead, whenever such an answer comes: a program that is paused, killed or cut off can't say
              that it has lost something, and must not be excused by that.
Drift         The coordinator counts the session by a clock that may run fast (``plan``, "clock drift"), and then ends
              it before the member knows; no member can do better, in Kafka neither. So what is written down is shorter
              by ``DRIFT_MAX``. An answered heartbeat closes the gap: a member that was put out would have been told.
Vanished      One that is gone without a word owns on until its session ends: to the coordinator it is just silent.
              Not so static members: another process may take its place at once. They own until they are gone.
"""

from __future__ import annotations

from typing import Any

from headpond.client.consumer_protocol import read_assignment
from headpond.client.group.classic import ClassicMember
from headpond.client.group.consumer import ConsumerMember
from headpond.client.group.member import Member, MemberSettings
from headpond.client.group.session import Session
from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.ports import Clock
from headpond.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from headpond.protocol.schema.join_group import JoinGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupResponse
from simulation.history import AdminChange, Joined, Ownership
from simulation.plan import DRIFT_RATES
from simulation.site import Site

DRIFT_MAX = max(DRIFT_RATES)

STATIC = "static"
"""How instance ids begin."""

Partitions = tuple[TopicPartition, ...]


class Belief:
    """Of one member, from its first join to its end."""

    def __init__(self, site: Site, process: str, group: str, instance: str | None) -> None:
        self.process = process
        self.group = group
        self.instance = instance or ""
        self.member: Member | None = None
        self._site = site
        self._owned: dict[TopicPartition, Ownership] = {}
        self._to_s = 0.0

    # --- callbacks of the member

    def assigned(self, partitions: Partitions) -> None:
        assert self.member is not None
        for tp in partitions:
            owned = Ownership(
                group=self.group,
                member=self.member.member_id,
                topic=tp.topic,
                partition=tp.partition,
                from_s=self._site.now_s,
                to_s=max(self._site.now_s, self._to_s),
                instance=self.instance,
            )
            self._owned[tp] = owned
            self._site.history.ownerships.append(owned)

    def given_up(self, partitions: Partitions) -> None:
        """Revoked or lost."""
        for tp in partitions:
            self._end(self._owned.pop(tp))

    def vanished(self) -> None:
        if self.instance:
            self.given_up(tuple(self._owned))
        self._owned.clear()

    def prolonged(self, seconds: float) -> None:
        """The member's session lasts so much longer from now on; not at all: it is over."""
        self._to_s = self._site.now_s + max(0.0, seconds)
        for owned in self._owned.values():
            if seconds > 0:
                owned.to_s = self._to_s
            else:
                self._end(owned)

    def _end(self, owned: Ownership) -> None:
        assert owned.to_s is not None
        owned.to_s = max(owned.from_s, min(owned.to_s, self._site.now_s))

    # --- what the coordinator says

    def joined(self, epoch: int, assignment: Partitions, leader: str = "") -> None:
        assert self.member is not None
        joined = Joined(
            process=self.process,
            invoked_s=self._site.now_s,
            ended_s=self._site.now_s,
            outcome="ok",
            group=self.group,
            member=self.member.member_id,
            epoch=epoch,
            protocol="classic" if isinstance(self.member, ClassicMember) else "consumer",
            assignment=tuple((tp.topic, tp.partition) for tp in assignment),
            leader=leader,
            instance=self.instance,
        )
        self._site.history.operations.append(joined)

    def topic_names(self) -> dict[str, str]:
        creations = (each for each in self._site.history.operations if isinstance(each, AdminChange))
        return {each.topic_id: each.topic for each in creations if each.topic_id}


def end_earlier_lives(site: Site, group: str) -> None:
    """At the start of a process: static members of the one before are gone."""
    for owned in site.history.ownerships:
        if owned.group == group and owned.instance and owned.to_s is not None:
            owned.to_s = max(owned.from_s, min(owned.to_s, site.now_s))


class WatchedSession(Session):
    """Tells how long it lasts, by a coordinator whose clock runs fast."""

    def __init__(self, clock: Clock, settings: MemberSettings, belief: Belief) -> None:
        super().__init__(clock, settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self._belief = belief

    def begin(self, sent_s: float) -> None:
        super().begin(sent_s)
        self._tell(sent_s)

    def heard(self, sent_s: float, *, is_settled: bool) -> None:
        was_alive = self.is_alive
        super().heard(sent_s, is_settled=is_settled)
        if was_alive:
            self._tell(sent_s)

    def end(self) -> None:
        super().end()
        self._belief.prolonged(0.0)

    def _tell(self, sent_s: float) -> None:
        until_s = min(sent_s + self._session_s / DRIFT_MAX, self._settled_s + self._rebalance_s / DRIFT_MAX)
        self._belief.prolonged(until_s - self._clock.monotonic())


class WatchedClassicMember(ClassicMember):
    def __init__(self, belief: Belief, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._belief = belief
        self._session = WatchedSession(self._client.clock, self._settings, belief)
        self._leader = ""
        belief.member = self

    async def _ask(self, request: Any, timeout_s: float) -> Any:
        response = await super()._ask(request, timeout_s)
        if isinstance(response, JoinGroupResponse) and not response.error_code:
            self._leader = _named_leader(response.leader)
        elif isinstance(response, SyncGroupResponse) and not response.error_code:
            self._belief.joined(self.epoch, tuple(read_assignment(response.assignment)), self._leader)
        return response


def _named_leader(leader: str) -> str:
    """A static one by its instance id, since it may come back under another id in the same generation. Its member id
    begins with that, as in Kafka."""
    return leader.partition("-")[0] if leader.startswith(STATIC) else leader


class WatchedConsumerMember(ConsumerMember):
    def __init__(self, belief: Belief, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._belief = belief
        self._session = WatchedSession(self._client.clock, self._settings, belief)
        self._heard: tuple[int, Partitions] = (-1, ())
        belief.member = self

    async def _ask(self, request: Any, timeout_s: float) -> Any:
        response = await super()._ask(request, timeout_s)
        if isinstance(response, ConsumerGroupHeartbeatResponse) and not response.error_code:
            told = self._heard[1] if response.assignment is None else self._named(response.assignment)
            if (response.member_epoch, told) != self._heard and response.member_epoch > 0:
                self._heard = response.member_epoch, told
                self._belief.joined(response.member_epoch, told)
        return response

    def _named(self, assignment: Any) -> Partitions:
        names = self._belief.topic_names()
        return tuple(
            sorted(
                TopicPartition(names[id_text(rows.topic_id)], partition)
                for rows in assignment.topic_partitions
                for partition in rows.partitions
            )
        )
