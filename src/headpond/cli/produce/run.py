"""What ``headpond produce`` does: lines in, records out, and an exact account of what became of them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import deque
from typing import NamedTuple

from headpond.cli.common.connection import check_partitions, find_topic, sentence
from headpond.cli.common.failures import OK, CommandFailed, counted
from headpond.cli.common.output import note
from headpond.cli.common.progress import Progress
from headpond.cli.common.record_json import BadRecord
from headpond.cli.produce.lines import LINE_BYTES_MAX, LineFormat, header_options, lines, separator_option
from headpond.client import Client, ClientError, TopicView
from headpond.client.admin import Admin
from headpond.client.errors import RefusedInCompany
from headpond.client.producer import Delivery, Producer, Record
from headpond.model import ErrorCode
from headpond.ports import Workers
from headpond.runtime.workers import ThreadWorkers

ACKS = {"all": -1, "1": 1, "0": 0}
PARTITIONS_IN_SUMMARY_MAX = 4
REQUEST_BYTES_MAX = LINE_BYTES_MAX + 1024 * 1024
"""How large a record may be is the broker's to say."""
SETTLE_EVERY = 1_000
"""Records between two looks at what became of the earlier ones."""


class Stop(NamedTuple):
    """The line at which reading ended, and why."""

    line: int
    why: str


class Account:
    """What became of each record, in the order in which they were sent."""

    def __init__(self) -> None:
        self.written = 0
        self.refused = 0
        self.unknown = 0
        self.first_failure: Stop | None = None
        """Of those that say why. One that failed for another record of its batch stands there only until that other
        one is looked at: it may be behind it."""
        self._is_first_in_company = False
        self.offsets: dict[int, tuple[int, int]] = {}
        self._open: deque[tuple[int, Delivery]] = deque()

    def sent(self, line: int, delivery: Delivery) -> None:
        self._open.append((line, delivery))
        if len(self._open) % SETTLE_EVERY == 0:
            self.settle()

    def settle(self) -> None:
        """Count those whose outcome is known, up to the first that is still on its way."""
        while self._open and self._open[0][1].done():
            line, delivery = self._open.popleft()
            try:
                place = delivery.result()
            except ClientError as error:
                self._failed(line, error)
            else:
                self.written += 1
                first, _ = self.offsets.get(place.partition, (place.offset, place.offset))
                self.offsets[place.partition] = (first, place.offset)

    def abandon(self) -> None:
        """Nobody waits any longer for those on their way."""
        self.settle()
        self.unknown += len(self._open)
        self._open.clear()

    def _failed(self, line: int, error: ClientError) -> None:
        if error.is_outcome_unknown:
            self.unknown += 1
        else:
            self.refused += 1
        is_in_company = isinstance(error, RefusedInCompany)
        if self.first_failure is None or (self._is_first_in_company and not is_in_company):
            self.first_failure, self._is_first_in_company = Stop(line, sentence(error)), is_in_company


async def produce(client: Client, options: argparse.Namespace) -> int:
    topic = await _topic(client, options)
    if options.partition is not None:
        check_partitions(topic, [options.partition])
    if sys.stdin.isatty() and not options.quiet:
        note("one record per line; Ctrl-D ends")
    account = Account()
    producer = Producer(
        client,
        acks=ACKS[options.acks],
        compression=options.compression,
        request_bytes_max=REQUEST_BYTES_MAX,
        delivery_timeout_s=options.timeout,
    )
    try:
        async with producer:
            try:
                stop = await _feed(producer, topic, options, account, ThreadWorkers(threads_max=1))
                await producer.flush()
            except asyncio.CancelledError:  # Ctrl-C, SIGTERM: what was sent gets its time to arrive, and is told
                await _flush_for(producer, options.timeout)
                raise
            finally:
                account.abandon()
    except asyncio.CancelledError:  # outside: it may come while the producer closes, behind the last line
        note(f"headpond: stopped: {_told(account, topic.name, options)}")
        raise
    if account.first_failure is not None and (stop is None or account.first_failure.line < stop.line):
        failed = account.first_failure
        raise CommandFailed(f"line {failed.line}: {failed.why}; {_told(account, topic.name, options)}")
    if stop is not None:
        raise CommandFailed(
            f"line {stop.line}: {stop.why}; {_told(account, topic.name, options)}"
            + (f", nothing from line {stop.line} on" if account.written else "")
        )
    if not options.quiet:
        note(_told(account, topic.name, options) + _places(account))
    return OK


async def _topic(client: Client, options: argparse.Namespace) -> TopicView:
    if options.create:
        try:
            await Admin(client).create_topic(options.topic)
        except ClientError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
    try:
        return await find_topic(client, options.topic)
    except CommandFailed as error:
        if "does not exist" not in str(error):
            raise
        raise CommandFailed(f"{error}; --create makes it") from None


async def _feed(
    producer: Producer, topic: TopicView, options: argparse.Namespace, account: Account, workers: Workers
) -> Stop | None:
    """Send every line; ends at the first that can't be used, or when an earlier one has failed."""
    line_format = LineFormat(
        options.json,
        None if options.key_separator is None else separator_option(options.key_separator),
        header_options(options.header),
        options.partition,
    )
    number = 0
    partitions = len(topic.partitions)
    with Progress(f"writing to {topic.name}", is_wanted=not sys.stdin.isatty()) as bar:
        async for some in lines(workers):
            for line in some:
                number += 1
                try:
                    record = line_format.parse(line)
                except BadRecord as error:
                    return Stop(number, str(error))
                if record.partition is not None and record.partition >= partitions:
                    return Stop(number, f"{topic.name} has no partition {record.partition}, only {partitions} of them")
                whole = Record(record.key, record.value, record.headers, record.timestamp_ms)
                try:
                    delivery = await producer.send(topic.name, record.partition, whole)
                except ClientError as error:  # it was not taken, for a reason that the lines behind it would share
                    return Stop(number, str(error))
                account.sent(number, delivery)
                if account.first_failure is not None:
                    return None
            bar.advance(len(some))
    return None


async def _flush_for(producer: Producer, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(producer.flush(), timeout_s)
    except TimeoutError:
        pass


def _told(account: Account, topic: str, options: argparse.Namespace) -> str:
    verb = "sent" if options.acks == "0" else "written"
    told = f"{counted(account.written, 'record')} {verb} to {topic}" if account.written else f"nothing was {verb}"
    if account.refused:
        told += f", {account.refused:,} refused"
    if account.unknown:
        told += f", {account.unknown:,} without an answer (they may have been written)"
    return told


def _places(account: Account) -> str:
    known = {number: ends for number, ends in sorted(account.offsets.items()) if ends[0] >= 0 and ends[1] >= 0}
    if not known or len(known) > PARTITIONS_IN_SUMMARY_MAX:
        return ""
    return " (" + ", ".join(f"partition {number}: {_span(*ends)}" for number, ends in known.items()) + ")"


def _span(first: int, last: int) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"
