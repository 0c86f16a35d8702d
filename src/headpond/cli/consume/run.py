"""What ``headpond consume`` does: plan where to start, read, print, stop."""

from __future__ import annotations

import argparse
import asyncio
import sys

from headpond.cli.common.connection import find_topic
from headpond.cli.common.failures import OK
from headpond.cli.common.output import note
from headpond.cli.common.progress import Progress
from headpond.cli.common.record_text import RecordLines
from headpond.cli.consume.start import plan
from headpond.client import Client
from headpond.client.consumer import Reader
from headpond.runtime.process import told_when_nobody_reads


async def consume(client: Client, options: argparse.Namespace) -> int:
    topic = await find_topic(client, options.topic)
    planned = await plan(client, topic, options)
    expected = None if options.follow else min(planned.waiting, options.max_messages or planned.waiting)
    reader = Reader(
        client,
        planned.starts,
        end_offsets=None if options.follow else planned.ends,
        follow=options.follow,
        isolation="read_uncommitted" if options.uncommitted else "read_committed",
        offset_reset="earliest",  # retention may take what we are about to read: go on with what is left
    )
    async with reader:
        with Progress(f"reading {topic.name}", expected, is_wanted=not sys.stdout.isatty()) as bar:
            print_them = _print_while_read if options.follow else _print
            printed = await print_them(reader, options, bar)
    if not printed and sys.stderr.isatty():
        note(f"{topic.name} has no records there")
    return OK


async def _print_while_read(reader: Reader, options: argparse.Namespace, bar: Progress) -> int:
    """As in ``consume -f t | head -1``: when head has gone, nothing more may ever come that we could fail to write."""
    try:
        async with asyncio.timeout(None) as patience:
            with told_when_nobody_reads(sys.stdout, lambda: patience.reschedule(0)):
                return await _print(reader, options, bar)
    except TimeoutError:
        if not patience.expired():
            raise
        raise BrokenPipeError from None  # as if we had tried to write


async def _print(reader: Reader, options: argparse.Namespace, bar: Progress) -> int:
    """Returns the number of records printed. Each batch is written out at once: somebody may be watching."""
    lines = RecordLines(options)
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    left: int = options.max_messages or sys.maxsize
    printed = 0
    async for batch in reader:
        records = batch.records[:left]
        write(b"".join([lines.line(*record) for record in records]))
        flush()
        printed += len(records)
        left -= len(records)
        bar.advance(len(records))
        if left <= 0:
            break
    return printed
