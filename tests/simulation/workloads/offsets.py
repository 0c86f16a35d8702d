"""Offsets of groups without members: commits and fetches by several clients, few keys, now and then a deletion.

Each offset is committed once in a run. Each request is sent once, so that a refusal is final (see ``outcomes``).
"""

from __future__ import annotations

import asyncio
from typing import Any

from headpond.client import Client, ClientError
from headpond.client.coordinators import find_coordinator
from headpond.client.group_admin import BY_NAME_VERSION_MAX
from headpond.protocol.schema.delete_groups import DeleteGroupsRequest
from headpond.protocol.schema.offset_commit import OffsetCommitRequest
from headpond.protocol.schema.offset_delete import OffsetDeleteRequest
from headpond.protocol.schema.offset_fetch import OffsetFetchRequest
from simulation.history import CommitOffset, DeleteOffsets, FetchOffset
from simulation.site import Site, Topic
from simulation.workloads.outcomes import told

GROUPS = ("offsets-1", "offsets-2")
CLIENTS = 2
OFFSETS_PER_CLIENT = 100_000
LOOKUP_RATE = 0.2

Commit = OffsetCommitRequest.OffsetCommitRequestPartition
Delete = OffsetDeleteRequest.OffsetDeleteRequestPartition


async def commit_offsets(site: Site) -> None:
    await asyncio.gather(*(_client(site, number) for number in range(CLIENTS)))


async def _client(site: Site, number: int) -> None:
    async with site.client() as client:
        user = _User(site, client, number)
        await _find(client, GROUPS[0])
        while not site.is_over:
            group, topic = site.chance.choice(GROUPS), site.chance.choice(site.topics)
            action = site.chance.random()
            if action < 0.5:
                await user.commit(group, topic)
            elif action < 0.88:
                await user.fetch(group, topic)
            elif action < 0.95:
                await user.delete_offsets(group, topic)
            else:
                await user.delete_group(group)
            if site.chance.random() < LOOKUP_RATE:
                await _find(client, group)
            await site.pause(0.05, 0.5)


async def _find(client: Client, group: str) -> None:
    """The coordinator is where it always was; asking for it makes its topic, which is not there at first."""
    try:
        await find_coordinator(client, "group", group, client.timeout_s)
    except ClientError:
        pass


class _User:
    def __init__(self, site: Site, client: Client, number: int) -> None:
        self._site = site
        self._client = client
        self._process = f"{site.process}.{number}"
        self._offset = (site.life * CLIENTS + number) * OFFSETS_PER_CLIENT

    async def commit(self, group: str, topic: Topic) -> None:
        commits = [self._begin_commit(group, topic.name, partition) for partition in range(topic.partitions)]
        rows = [Commit(partition_index=each.partition, committed_offset=each.offset) for each in commits]
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic.name, partitions=rows)]
        )
        answer = await self._site.once(commits, self._client.request(request, version_max=BY_NAME_VERSION_MAX))
        if answer is not None:
            rows_by_index = _by_index(answer.topics)
            for commit in commits:
                told(self._site, commit, rows_by_index[commit.partition].error_code)

    def _begin_commit(self, group: str, topic: str, partition: int) -> CommitOffset:
        self._offset += 1
        return self._site.begin(
            CommitOffset(
                process=self._process,
                invoked_s=0,
                group=group,
                topic=topic,
                partition=partition,
                offset=self._offset,
            )
        )

    async def fetch(self, group: str, topic: Topic) -> None:
        is_stable = self._site.chance.random() < 0.5
        fetches = [
            self._site.begin(
                FetchOffset(
                    process=self._process,
                    invoked_s=0,
                    group=group,
                    topic=topic.name,
                    partition=partition,
                    requires_stable=is_stable,
                )
            )
            for partition in range(topic.partitions)
        ]
        rows = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=topic.name, partition_indexes=[each.partition for each in fetches]
        )
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[rows])
        request = OffsetFetchRequest(groups=[wanted], require_stable=is_stable)
        answer = await self._site.once(fetches, self._client.request(request, version_max=BY_NAME_VERSION_MAX))
        if answer is None:
            return
        (found,) = answer.groups
        if found.error_code:
            for fetch in fetches:
                told(self._site, fetch, found.error_code)
            return
        rows_by_index = _by_index(found.topics)
        for fetch in fetches:
            row = rows_by_index[fetch.partition]
            fetch.offset = row.committed_offset
            told(self._site, fetch, row.error_code)

    async def delete_offsets(self, group: str, topic: Topic) -> None:
        """Of all partitions that the topic had at first: nobody here commits to others."""
        delete = self._site.begin(DeleteOffsets(process=self._process, invoked_s=0, group=group, topic=topic.name))
        rows = [Delete(partition_index=index) for index in range(topic.partitions)]
        request = OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic.name, partitions=rows)]
        )
        answer = await self._site.once([delete], self._client.request(request))
        if answer is None:
            return
        codes = [row.error_code for each in answer.topics for row in each.partitions]
        if answer.error_code or all(codes):
            told(self._site, delete, answer.error_code or codes[0])
        elif any(codes):
            delete.ended_s = self._site.now_s  # some of them: unknown
        else:
            told(self._site, delete, 0)

    async def delete_group(self, group: str) -> None:
        delete = self._site.begin(DeleteOffsets(process=self._process, invoked_s=0, group=group))
        answer = await self._site.once([delete], self._client.request(DeleteGroupsRequest(groups_names=[group])))
        if answer is not None:
            told(self._site, delete, answer.results[0].error_code)


def _by_index(topics: Any) -> dict[int, Any]:
    """Of the one topic that was asked for; those that are refused may come first, and in a row of their own."""
    return {row.partition_index: row for topic in topics for row in topic.partitions}
