"""The account of ``headpond produce``: which line is to blame, in whatever order the outcomes come."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headpond.cli.produce import run as produce_run
from headpond.cli.produce.run import Account, Stop
from headpond.client import ClientError, TopicView
from headpond.client.outbox import Delivery, Outgoing, Record
from headpond.model import ErrorCode, TopicPartition

REFUSED = ClientError(ErrorCode.INVALID_RECORD, "one of them is wrong")


class Sent:
    """Two batches with one record in turn: lines 1, 3, 5 in the first, 2, 4, 6 in the second."""

    def __init__(self) -> None:
        self.batches = [Outgoing(TopicPartition("t", number), 0.0, 0, None) for number in (0, 1)]
        self.account = Account()
        for line in range(1, 7):
            self.account.sent(line, self._delivery(self.batches[(line - 1) % 2]))

    @staticmethod
    def _delivery(batch: Outgoing) -> Delivery:
        return batch.append(Record(value=b"v"), 0, 1)


def test_the_record_that_the_broker_minds_is_told_and_not_those_before_it_in_its_batch() -> None:
    async def story() -> None:
        sent = Sent()
        sent.batches[0].failed(REFUSED, {1: "no key"})
        sent.account.settle()
        first = sent.account.first_failure
        assert first is not None and first.line == 1, "line 2 is on its way: nobody has looked behind it"
        sent.batches[1].succeeded(0, -1)
        sent.account.settle()
        assert sent.account.first_failure == Stop(3, "t-0: no key")
        assert (sent.account.written, sent.account.refused) == (3, 3)

    asyncio.run(story())


def test_of_two_that_the_broker_minds_the_first_line_is_told() -> None:
    async def story() -> None:
        sent = Sent()
        sent.batches[1].failed(REFUSED, {1: "no key"})
        sent.batches[0].failed(REFUSED, {2: "no value", 1: "no time"})
        sent.account.settle()
        assert sent.account.first_failure == Stop(3, "t-0: no time")

    asyncio.run(story())


def test_where_the_broker_names_none_the_first_line_is_told() -> None:
    async def story() -> None:
        sent = Sent()
        sent.batches[0].succeeded(0, -1)
        sent.batches[1].failed(REFUSED)
        sent.account.settle()
        assert sent.account.first_failure == Stop(2, "one of them is wrong")

    asyncio.run(story())


class SlowToClose:
    """A producer that has written everything at once and then takes its time to close."""

    is_closing = asyncio.Event()

    def __init__(self, client: object, **options: object) -> None:
        pass

    async def __aenter__(self) -> SlowToClose:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.is_closing.set()
        await asyncio.Event().wait()

    async def send(self, topic: str, partition: int | None, record: Record) -> Delivery:
        batch = Outgoing(TopicPartition(topic, 0), 0.0, 0, None)
        delivery = batch.append(record, 0, 1)
        batch.succeeded(0, -1)
        return delivery

    async def flush(self) -> None:
        pass


def test_who_is_stopped_behind_the_last_line_says_what_was_written_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def topic(*_: object) -> TopicView:
        return TopicView("t", bytes(16), ErrorCode.NONE, False, ())

    async def two_lines(*_: object) -> AsyncIterator[list[bytes]]:
        yield [b"one", b"two"]

    for name, stand_in in (("Producer", SlowToClose), ("_topic", topic), ("lines", two_lines)):
        monkeypatch.setattr(produce_run, name, stand_in)
    options: dict[str, Any] = {"acks": "all", "compression": "none", "timeout": 5, "header": [], "quiet": True}
    options |= dict.fromkeys(("partition", "key_separator"))
    client: Any = None

    async def story() -> None:
        task = asyncio.create_task(produce_run.produce(client, argparse.Namespace(**options, json=False)))
        await SlowToClose.is_closing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert capsys.readouterr().err == "headpond: stopped: 2 records written to t\n"
