"""An administrator: creates and deletes topics, adds partitions, changes settings, deletes records, asks for Metadata.

Passing topics (``is_lasting=False``) are deleted, by name or by id, and made anew with other partitions. Lasting ones
get partitions, too, and settings that remove records or split segments; those with a retention lose records to
DeleteRecords, the others only their first few, so that most of what was acknowledged must be there in the end.
"""

from __future__ import annotations

from typing import Any

from headpond.client import Client
from headpond.model.ids import id_text
from headpond.protocol.schema.create_partitions import CreatePartitionsRequest
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.protocol.schema.delete_topics import DeleteTopicsRequest
from headpond.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headpond.protocol.schema.metadata import MetadataRequest
from simulation.history import AdminChange, AdminKind, TopicsSeen
from simulation.site import Site, Topic
from simulation.workloads.outcomes import told

TIMEOUT_MS = 2_000
PARTITIONS_MAX = 6
FIRST_RECORDS = 8
TOPIC, SET = 2, 0
BY_NAME_VERSION_MAX = 5
ALTERED = {
    "retention.ms": ("2000", "4000", "9000"),
    "segment.ms": ("500", "1000", "3000"),
    "max.message.bytes": ("1048588", "2000000"),
    "delete.retention.ms": ("0", "500", "86400000"),
    "index.interval.bytes": ("0", "100", "4096"),
}
REMOVING = ("retention.ms",)
"""Only for topics that have it from the start."""


async def administrate(site: Site) -> None:
    async with site.client() as client:
        admin = _Administrator(site, client)
        while not site.is_over:
            topic = site.chance.choice(site.topics)
            action = site.chance.random()
            if action < 0.35:
                await admin.look()
            elif action < 0.5:
                await admin.alter(topic)
            elif action < 0.6:
                await admin.delete_records(topic)
            elif action < 0.7:
                await admin.add_partition(topic)
            else:
                await admin.make_anew(site.chance.choice(site.topics_where(lambda each: not each.is_lasting)))
            await site.pause(0.1, 0.8)


class _Administrator:
    def __init__(self, site: Site, client: Client) -> None:
        self._site = site
        self._client = client
        self._ids: dict[str, bytes] = {}
        self._counts = {topic.name: topic.partitions for topic in site.topics}

    async def look(self) -> None:
        seen = self._site.begin(TopicsSeen(process=self._site.process, invoked_s=0))
        answer = await self._site.once([seen], self._client.request(MetadataRequest(topics=None)))
        if answer is None:
            return
        if any(topic.error_code for topic in answer.topics):
            seen.ended_s = self._site.now_s
            return
        seen.topics = {topic.name: (id_text(topic.topic_id), len(topic.partitions)) for topic in answer.topics}
        self._ids = {topic.name: topic.topic_id for topic in answer.topics}
        self._counts.update({topic.name: len(topic.partitions) for topic in answer.topics})
        self._site.ok(seen)

    async def make_anew(self, topic: Topic) -> None:
        """Delete it, or create it; whichever is wrong is refused."""
        if self._site.chance.random() < 0.4:
            await self._delete(topic)
            if self._site.chance.random() < 0.3:
                return
        await self._create(topic)

    async def _delete(self, topic: Topic) -> None:
        by_id = self._ids.get(topic.name) if self._site.chance.random() < 0.5 else None
        change = self._begin("delete", topic)
        if by_id is None:
            request = DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=TIMEOUT_MS)
        else:
            states = [DeleteTopicsRequest.DeleteTopicState(topic_id=by_id)]
            request = DeleteTopicsRequest(topics=states, timeout_ms=TIMEOUT_MS)
        answer = await self._ask(change, request, version_max=BY_NAME_VERSION_MAX if by_id is None else None)
        if answer is not None:
            told(self._site, change, answer.responses[0].error_code)

    async def _create(self, topic: Topic) -> None:
        change = self._begin("create", topic)
        change.partitions = self._site.chance.choice((topic.partitions, topic.partitions, 1, 2))
        change.configs = topic.configs
        rows = [CreateTopicsRequest.CreatableTopicConfig(name, value) for name, value in topic.configs]
        wanted = CreateTopicsRequest.CreatableTopic(topic.name, change.partitions, 1, configs=rows)
        answer = await self._ask(change, CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
        if answer is None:
            return
        (result,) = answer.topics
        if not result.error_code:
            change.topic_id = id_text(result.topic_id)
            self._counts[topic.name] = change.partitions
        told(self._site, change, result.error_code)

    async def add_partition(self, topic: Topic) -> None:
        count = self._counts[topic.name] + 1
        if count > PARTITIONS_MAX:
            return
        change = self._begin("partitions", topic)
        change.partitions = count
        wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=topic.name, count=count, assignments=None)
        answer = await self._ask(change, CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
        if answer is None:
            return
        (result,) = answer.results
        if not result.error_code:
            self._counts[topic.name] = count
        told(self._site, change, result.error_code)

    async def alter(self, topic: Topic) -> None:
        has = dict(topic.configs)
        name = self._site.chance.choice([each for each in ALTERED if each in has or each not in REMOVING])
        change = self._begin("config", topic)
        change.configs = ((name, self._site.chance.choice(ALTERED[name])),)
        rows = [IncrementalAlterConfigsRequest.AlterableConfig(name, SET, value) for name, value in change.configs]
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(TOPIC, topic.name, rows)
        answer = await self._ask(change, IncrementalAlterConfigsRequest(resources=[resource]))
        if answer is not None:
            told(self._site, change, answer.responses[0].error_code)

    async def delete_records(self, topic: Topic) -> None:
        change = self._begin("delete-records", topic)
        change.partition = self._site.chance.randrange(topic.partitions)
        change.before_offset = self._site.chance.randrange(FIRST_RECORDS)
        if "retention.ms" in dict(topic.configs):
            change.before_offset = self._site.chance.choice((-1, self._site.chance.randrange(50)))
        rows = [DeleteRecordsRequest.DeleteRecordsPartition(change.partition, change.before_offset)]
        wanted = DeleteRecordsRequest.DeleteRecordsTopic(name=topic.name, partitions=rows)
        answer = await self._ask(change, DeleteRecordsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
        if answer is not None:
            result = answer.topics[0].partitions[0]
            change.low_watermark = result.low_watermark
            told(self._site, change, result.error_code)

    def _begin(self, kind: AdminKind, topic: Topic) -> AdminChange:
        return self._site.begin(AdminChange(process=self._site.process, invoked_s=0, kind=kind, topic=topic.name))

    async def _ask(self, change: AdminChange, request: Any, version_max: int | None = None) -> Any:
        return await self._site.once([change], self._client.request(request, version_max=version_max))
