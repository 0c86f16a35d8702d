"""The load of a benchmark: batches that are made once and sent many times, and what is measured on the way."""

from __future__ import annotations

import argparse
import asyncio
import base64
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from headpond.cli.common.failures import CommandFailed
from headpond.cli.common.progress import Progress
from headpond.client import Client, ClientError, TopicView
from headpond.client.errors import refusal
from headpond.model import ErrorCode
from headpond.protocol.records.builder import assemble, encode_record
from headpond.protocol.records.compression import CODEC_NAMES, compress
from headpond.protocol.records.record import Record
from headpond.protocol.schema.produce import ProduceRequest, ProduceResponse

ACKS = {"all": -1, "1": 1, "0": 0}
RECORD_OVERHEAD_BYTES = 12
RETRY_PAUSE_S = 0.05
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


class Result(NamedTuple):
    records: int
    size_bytes: int
    """Of the values."""
    seconds: float
    latencies_s: Sequence[float]
    retries: int = 0

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def mb_per_s(self) -> float:
        return self.size_bytes / 1e6 / self.seconds if self.seconds else 0.0

    def latency_ms(self) -> dict[str, float]:
        """By the nearest rank; nothing when nothing was measured."""
        ordered = sorted(self.latencies_s)
        if not ordered:
            return {}
        found = {f"p{percent:g}": ordered[_rank(len(ordered), percent)] for percent in PERCENTILES}
        return {name: round(seconds * 1_000, 3) for name, seconds in {**found, "max": ordered[-1]}.items()}


def _rank(total: int, percent: float) -> int:
    """The index of the smallest value that ``percent`` of all do not exceed."""
    return max(0, -(-total * round(percent * 10) // 1_000) - 1)


class Template:
    """A batch of ``count`` records with a payload that is compressed already; only its header is made anew."""

    def __init__(self, client: Client, *, count: int, record_size_bytes: int, compression: str, is_keyed: bool) -> None:
        self.count = count
        # Letters: random bytes would not compress at all, equal ones would vanish.
        text = base64.b64encode(client.random.random_bytes(count * record_size_bytes * 3 // 4 + 3))
        values = [text[n * record_size_bytes : (n + 1) * record_size_bytes] for n in range(count)]
        self._codec = CODEC_NAMES.index(compression)
        keys = [b"%d" % number if is_keyed else None for number in range(count)]
        records = [Record(number, 0, keys[number], value) for number, value in enumerate(values)]
        self._payload = compress(self._codec, b"".join(encode_record(record, 0, 0) for record in records))

    def batch(self, now_ms: int) -> bytearray:
        return assemble(
            self._payload,
            base_offset=0,
            leader_epoch=-1,
            attributes=self._codec,
            last_offset_delta=self.count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            count=self.count,
        )


class Load:
    """Sends ``options.records`` records to all partitions of a topic, so many batches at a time to each."""

    def __init__(
        self, client: Client, topic: TopicView, options: argparse.Namespace, bar: Progress, *, is_keyed: bool
    ) -> None:
        self._client, self._topic, self._options, self._bar = client, topic, options, bar
        self._is_keyed = is_keyed
        self._clock = client.clock
        per_batch = max(1, options.batch_size // (options.record_size + RECORD_OVERHEAD_BYTES))
        self._template = self._template_of(min(per_batch, options.records))
        self._left: int = options.records
        self._sent = 0
        self._done = 0
        self._retries = 0
        self._latencies_s = array("d")
        self._started_s = 0.0
        self._ended_s = 0.0

    def _template_of(self, count: int) -> Template:
        options = self._options
        return Template(
            self._client,
            count=count,
            record_size_bytes=options.record_size,
            compression=options.compression,
            is_keyed=self._is_keyed,
        )

    async def run(self) -> Result:
        self._started_s = self._ended_s = self._clock.monotonic()
        senders = [
            self._send_batches(partition.index)
            for _ in range(self._options.in_flight)
            for partition in self._topic.partitions
        ]
        await asyncio.gather(*senders)
        return self.result()

    def result(self) -> Result:
        """So far."""
        size_bytes = self._done * self._options.record_size
        return Result(self._done, size_bytes, self._ended_s - self._started_s, self._latencies_s, self._retries)

    async def _send_batches(self, partition: int) -> None:
        while self._left > 0:
            template = self._template if self._left >= self._template.count else self._template_of(self._left)
            self._left -= template.count
            await self._keep_rate(template.count)
            sent_s = self._clock.monotonic()
            await self._send(partition, template)
            self._ended_s = self._clock.monotonic()
            self._latencies_s.append(self._ended_s - sent_s)
            self._done += template.count
            so_far = self.result()
            self._bar.advance(template.count, f"{so_far.mb_per_s:,.1f} MB/s, {so_far.records_per_s:,.0f} records/s")

    async def _keep_rate(self, count: int) -> None:
        due_s = self._started_s + self._sent / self._options.rate if self._options.rate else 0.0
        self._sent += count
        if due_s > (now_s := self._clock.monotonic()):
            await self._clock.sleep(due_s - now_s)

    async def _send(self, partition: int, template: Template) -> None:
        """Again, where the broker says that it did not write it and that it may work later: a topic that is new."""
        until_s = self._clock.monotonic() + self._options.timeout
        while True:
            try:
                return await self._send_once(partition, template)
            except ClientError as error:
                if not error.is_retriable or error.is_outcome_unknown or self._clock.monotonic() > until_s:
                    raise
            self._retries += 1
            await self._clock.sleep(RETRY_PAUSE_S)
            await self._client.metadata([self._topic.name])

    async def _send_once(self, partition: int, template: Template) -> None:
        view = self._client.cluster.topic(self._topic.name) or self._topic
        there = view.partition(partition)
        if there is None or there.leader < 0:
            raise ClientError(ErrorCode.LEADER_NOT_AVAILABLE, f"{view.name}-{partition} has no leader")
        data = ProduceRequest.PartitionProduceData(index=partition, records=template.batch(self._clock.now_ms()))
        topic = ProduceRequest.TopicProduceData(name=view.name, topic_id=view.topic_id, partition_data=[data])
        acks = ACKS[self._options.acks]
        request = ProduceRequest(acks=acks, timeout_ms=int(self._options.timeout * 1_000), topic_data=[topic])
        response: ProduceResponse | None = await self._client.request(request, there.leader, is_answered=acks != 0)
        if response is None:
            return
        for each in response.responses:
            for one in each.partition_responses:
                if one.error_code:
                    raise refusal(one.error_code, f"writing to {view.name}-{partition}", one.error_message)


def check_load(options: argparse.Namespace) -> None:
    """A batch has to be made before it is sent: refuse what would not fit into memory or a request."""
    if max(options.batch_size, options.record_size) > REQUEST_BYTES_MAX:
        raise CommandFailed(f"a batch may have at most {REQUEST_BYTES_MAX:,} bytes: no broker takes larger requests")


REQUEST_BYTES_MAX = 100 * 1024 * 1024
