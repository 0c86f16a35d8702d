"""Members of one group that come and go, for both protocols: they join, own, commit, fetch, leave or vanish, come back.

Commits     While it owns a partition, and when it gives it up, a member commits an offset that nobody commits again.
            Now and then somebody commits as a member of a generation that is over (G2).
Ends        Politely, or without a word. Some are static and come back under the same instance id.
At the end  all leave, and the program waits until the sessions of those that vanished are over: the group is at rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from headpond.client import Client, ClientError
from headpond.client.coordinators import Coordinated
from headpond.client.group.member import Member, MemberSettings
from headpond.client.group.offsets import Identity, commit_offsets
from headpond.client.group_admin import GroupOffset
from headpond.model import TopicPartition
from simulation.history import CommitOffset, FetchOffset
from simulation.site import Site
from simulation.workloads.ownership import STATIC, Belief, Partitions, end_earlier_lives

MEMBERS = (2, 2, 3, 4)
STALE_KEPT_MAX = 10
OFFSETS_PER_LIFE = 1_000_000


class Stale(NamedTuple):
    """Who somebody was when it owned a partition."""

    who: Identity
    tp: TopicPartition


class Churn:
    def __init__(self, site: Site, client: Client, group: str, kind: type[Any], settings: MemberSettings) -> None:
        """``kind``: a watched member's class, see ``ownership``."""
        self.site = site
        self.client = client
        self.group = group
        self._kind = kind
        self._settings = settings
        self._topics = [topic.name for topic in site.topics_where(lambda topic: topic.is_lasting)][:2]
        self._offset = site.life * OFFSETS_PER_LIFE
        self._former: list[Stale] = []

    async def run(self) -> None:
        end_earlier_lives(self.site, self.group)
        count = self.site.chance.choice(MEMBERS)
        # Static ones are the same in every life of the program, so that they take their own places.
        await asyncio.gather(
            *(self._come_and_go(slot, f"{STATIC}{slot}" if slot == 0 else None) for slot in range(count))
        )
        await self.client.clock.sleep(self._settings.session_timeout_ms / 1_000 + 0.5)

    async def _come_and_go(self, slot: int, instance: str | None) -> None:
        times = 0
        while not self.site.is_over:
            times += 1
            belief = Belief(self.site, f"{self.site.process}.{slot}.{times}", self.group, instance)
            member = self._member(belief, instance)
            async with member:
                await self._take_part(member, belief)
                if self.site.chance.random() < 0.4 and not self.site.is_over:
                    belief.vanished()
                    await member.abandon()
            await self.site.pause(0.05, 1.5)

    def _member(self, belief: Belief, instance: str | None) -> Member:
        async def revoked(partitions: Partitions) -> None:
            assert belief.member is not None
            if self.site.chance.random() < 0.5:
                await self._commit(belief.member, belief, partitions[0])
            belief.given_up(partitions)

        member: Member = self._kind(
            belief,
            self.client,
            self.group,
            self._topics,
            on_assigned=belief.assigned,
            on_revoked=revoked,
            on_lost=belief.given_up,
            instance_id=instance,
            settings=self._settings,
        )
        return member

    async def _take_part(self, member: Member, belief: Belief) -> None:
        until_s = self.site.now_s + self.site.chance.uniform(1.0, 8.0)
        while self.site.now_s < until_s and not self.site.is_over and member.failure is None:
            await self.site.pause(0.2, 1.0)
            owned = member.assignment
            if not owned:
                continue
            tp = self.site.chance.choice(owned)
            self._remember(member, tp)
            action = self.site.chance.random()
            if action < 0.6:
                await self._commit(member, belief, tp)
            elif action < 0.8:
                await self._fetch(member, belief, tp)
            else:
                await self._commit_as_before()

    # --- offsets

    async def _commit(self, member: Member, belief: Belief, tp: TopicPartition) -> None:
        who = Identity(member.member_id, member.epoch, member.instance_id)
        commit = self._begin_commit(belief.process, who, tp)
        outcomes = await self.site.once([commit], member.commit({tp: GroupOffset(commit.offset)}))
        self._end_commit(commit, tp, outcomes)

    async def _commit_as_before(self) -> None:
        """With the generation or epoch of some time ago, perhaps of a member that is gone."""
        stale = self.site.chance.choice(self._former)
        commit = self._begin_commit(f"{self.site.process}.stale", stale.who, stale.tp)
        asking = commit_offsets(
            self.client, Coordinated("group", self.group), stale.who, {stale.tp: GroupOffset(commit.offset)}
        )
        self._end_commit(commit, stale.tp, await self.site.once([commit], asking))

    def _begin_commit(self, process: str, who: Identity, tp: TopicPartition) -> CommitOffset:
        self._offset += 1
        return self.site.begin(
            CommitOffset(
                process=process,
                invoked_s=0,
                group=self.group,
                topic=tp.topic,
                partition=tp.partition,
                offset=self._offset,
                member=who.member_id,
                epoch=who.epoch,
            )
        )

    def _end_commit(
        self, commit: CommitOffset, tp: TopicPartition, outcomes: Mapping[TopicPartition, int] | None
    ) -> None:
        if outcomes is None:
            return
        if outcomes[tp]:
            self.site.refused(commit, outcomes[tp])
        else:
            self.site.ok(commit)

    async def _fetch(self, member: Member, belief: Belief, tp: TopicPartition) -> None:
        fetch = self.site.begin(
            FetchOffset(
                process=belief.process,
                invoked_s=0,
                group=self.group,
                topic=tp.topic,
                partition=tp.partition,
                requires_stable=True,
            )
        )
        try:
            found = (await member.committed([tp]))[tp]
        except ClientError as error:
            self.site.lost(fetch, error)
            return
        fetch.offset = -1 if found is None else found.offset
        self.site.ok(fetch)

    def _remember(self, member: Member, tp: TopicPartition) -> None:
        stale = Stale(Identity(member.member_id, member.epoch, member.instance_id), tp)
        if stale not in self._former:
            self._former = [*self._former[1 - STALE_KEPT_MAX :], stale]
