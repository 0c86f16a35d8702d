"""What ``headpond transactions`` does."""

from __future__ import annotations

import argparse
from typing import Any

from headpond.cli.common.connection import check_partitions, find_topic
from headpond.cli.common.failures import OK, CommandFailed, did_you_mean
from headpond.cli.common.output import Column, print_json, print_line, print_table, time_in_words
from headpond.cli.groups.show import partitions_in_words
from headpond.client import Client
from headpond.client.transaction_admin import TransactionDescription, Transactions
from headpond.model import TopicPartition

UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
NONE = "there are no transactional ids"
NONE_OPEN = "no transaction is open"


async def show_list(client: Client, options: argparse.Namespace) -> int:
    found = [one for one in await Transactions(client).all() if not options.open or one.state in UNFINISHED]
    if options.json:
        print_json(
            [
                {
                    "id": one.transactional_id,
                    "state": one.state,
                    "producer_id": one.producer_id,
                    "coordinator": one.coordinator_id,
                }
                for one in found
            ]
        )
    elif not found:
        print_line(NONE_OPEN if options.open else NONE)
    else:
        print_table(
            [Column("id"), Column("state"), Column("producer id", True), Column("coordinator", True)],
            [(one.transactional_id, one.state, one.producer_id, one.coordinator_id) for one in found],
        )
    return OK


async def show_details(client: Client, options: argparse.Namespace) -> int:
    transactions = Transactions(client)
    ids = list(dict.fromkeys(options.ids))
    if not ids:
        ids = [one.transactional_id for one in await transactions.all() if one.state in UNFINISHED]
    details = []
    for transactional_id in ids:
        found = await transactions.describe(transactional_id)
        if found is None and options.ids:
            raise CommandFailed(await _unknown(transactions, transactional_id))
        if found is not None:
            details.append(found)
    now_ms = client.clock.now_ms()
    if options.json:
        print_json([_document(each, now_ms) for each in details])
        return OK
    if not details:
        print_line(NONE_OPEN)
        return OK
    columns = [Column("id"), Column("state"), Column("producer"), Column("began"), Column("open for"), Column("holds")]
    rows = [
        (
            each.transactional_id,
            each.state,
            f"{each.producer_id}/{each.producer_epoch}",
            time_in_words(each.started_ms) if _age_ms(each, now_ms) is not None else "-",
            _age_in_words(_age_ms(each, now_ms)),
            partitions_in_words(each.partitions) or "-",
        )
        for each in details
    ]
    print_table(columns, rows)
    return OK


def _age_ms(each: TransactionDescription, now_ms: int) -> int | None:
    return max(0, now_ms - each.started_ms) if each.state in UNFINISHED and each.started_ms >= 0 else None


def _age_in_words(age_ms: int | None) -> str:
    return "-" if age_ms is None else f"{age_ms / 1000:,.1f} s"


def _document(each: TransactionDescription, now_ms: int) -> dict[str, Any]:
    return {
        "id": each.transactional_id,
        "state": each.state,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator": each.coordinator_id,
        "timeout_ms": each.timeout_ms,
        "started_ms": each.started_ms if each.started_ms >= 0 else None,
        "age_ms": _age_ms(each, now_ms),
        "partitions": [{"topic": tp.topic, "partition": tp.partition} for tp in each.partitions],
    }


async def _unknown(transactions: Transactions, transactional_id: str) -> str:
    known = [one.transactional_id for one in await transactions.all()]
    return f"transactional id {transactional_id} does not exist{did_you_mean(transactional_id, known)}"


# --- abort ------------------------------------------------------------------------------------------------------------


async def abort(client: Client, options: argparse.Namespace) -> int:
    transactions = Transactions(client)
    return await (_abort_hanging if options.id is None else _abort_by_id)(client, transactions, options)


async def _abort_by_id(client: Client, transactions: Transactions, options: argparse.Namespace) -> int:
    found = await transactions.describe(options.id)
    if found is None:
        raise CommandFailed(await _unknown(transactions, options.id))
    if not found.is_open:
        raise CommandFailed(f"{options.id} has no open transaction: it is in state {found.state}")
    await transactions.abort(options.id, found.timeout_ms)
    _say(options, {"id": options.id, "producer_id": found.producer_id}, f"aborted the transaction of {options.id}")
    return OK


async def _abort_hanging(client: Client, transactions: Transactions, options: argparse.Namespace) -> int:
    topic = await find_topic(client, options.topic)
    check_partitions(topic, [options.partition])
    tp = TopicPartition(options.topic, options.partition)
    producers = await transactions.open_producers(tp)
    found = [one for one in producers if one.start_offset == options.start_offset]
    if not found:
        others = ", ".join(str(one.start_offset) for one in producers)
        known = f"there are some from {others}" if others else "there is none"
        raise CommandFailed(f"{tp} has no open transaction from offset {options.start_offset}: {known}")
    await transactions.abort_hanging(tp, found[0])
    document = {"topic": tp.topic, "partition": tp.partition, "producer_id": found[0].producer_id}
    _say(options, document, f"aborted the transaction of producer {found[0].producer_id} in {tp}")
    return OK


def _say(options: argparse.Namespace, document: dict[str, Any], sentence: str) -> None:
    if options.json:
        print_json({"aborted": document})
    else:
        print_line(sentence)
