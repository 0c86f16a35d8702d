"""Batches of a partition as they stand in its log: control batches, aborted ones and empty ones included."""

from __future__ import annotations

from collections.abc import Iterator

from headpond.client import Client, ClientError
from headpond.client.consumer import Reader
from headpond.client.fetched import FetchedBatch
from headpond.model import ErrorCode
from headpond.spark.kafka.link import Link
from headpond.spark.reading.options import SourceOptions
from headpond.spark.reading.planning import OffsetRange

BUFFER_BYTES_MAX = 16 * 1024 * 1024


def raw_batches(options: SourceOptions, wanted: OffsetRange) -> Iterator[list[FetchedBatch]]:
    """To the end of the range, or ``ClientError``."""
    settings = options.client

    async def open_reader(client: Client) -> Reader:
        await client.metadata([wanted.tp.topic])
        return Reader(
            client,
            {wanted.tp: wanted.from_offset},
            isolation="read_uncommitted",
            end_offsets={wanted.tp: wanted.end_offset},
            max_bytes=settings.fetch_bytes,
            partition_max_bytes=settings.partition_fetch_bytes,
            buffer_bytes_max=BUFFER_BYTES_MAX,
            check_crcs=settings.check_crcs,
            is_raw=True,
            timeout_s=settings.poll_timeout_s,
        )

    async def close_reader(client: Client) -> None:
        await reader.close()

    with Link(settings) as link:
        reader = link.once(open_reader)
        try:
            while True:
                try:
                    batches = link.once(lambda client: reader.take(), settings.poll_timeout_s)
                except TimeoutError:
                    what = f"{wanted.tp}: nothing came for {settings.poll_timeout_s:g} s"
                    raise ClientError(ErrorCode.REQUEST_TIMED_OUT, what) from None
                if not batches:
                    return
                yield batches
        finally:
            link.once(close_reader)
