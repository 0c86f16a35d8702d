"""What scripts about transactions say all the time, in one line each.

``x`` is the transactional id, ``pid`` its producer, ``t`` a topic, ``g`` a group.
"""

from __future__ import annotations

from typing import Any

from parity.asking import produce
from parity.asking_groups import NOT_YET
from parity.notation import Ask, Step, ask, batch, name

FEW_PARTITIONS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "2"}

WHERE = ["transaction_states.topics.partitions", "transaction_states.topics"]
"""Kafka keeps these in hash maps."""
TRANSACTIONAL = 16
CONCURRENT = 51
"""CONCURRENT_TRANSACTIONS: the one before is still ending."""


def init(label: str, *, of: str | None = "${x}", timeout_ms: int = 60_000, **options: Any) -> Ask:
    return ask(
        "InitProducerId",
        label,
        transactional_id=of,
        transaction_timeout_ms=timeout_ms,
        until=lambda answer: answer.error_code not in {CONCURRENT, *NOT_YET},
        **options,
    )


def transactional_id() -> list[Step]:
    """``x``, whose coordinator is there."""
    found = ask(
        "FindCoordinator",
        "its coordinator",
        key_type=1,
        coordinator_keys=["${x}"],
        until=lambda answer: answer.coordinators[0].error_code == 0,
        shown=False,
    )
    return [name("x"), found]


def producer() -> list[Step]:
    """``x``: a transactional id; ``pid``: its producer, at epoch 0."""
    return [*transactional_id(), init("its producer", capture={"pid": "producer_id"})]


def add(
    label: str, epoch: int = 0, *, pid: Any = "${pid}", partitions: Any = (0,), of: str = "${t}", **options: Any
) -> Ask:
    topics = [{"name": of, "partitions": list(partitions)}]
    return ask(
        "AddPartitionsToTxn",
        label,
        v3_and_below_transactional_id="${x}",
        v3_and_below_producer_id=pid,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
        versions=options.pop("versions", [3]),
        until=lambda answer: all(
            row.partition_error_code not in {CONCURRENT, *NOT_YET}
            for each in answer.results_by_topic_v3_and_below
            for row in each.results_by_partition
        ),
        **options,
    )


def add_group(label: str, epoch: int = 0, *, pid: Any = "${pid}", **options: Any) -> Ask:
    fields = {"transactional_id": "${x}", "producer_id": pid, "producer_epoch": epoch, "group_id": "${g}", **options}
    return ask("AddOffsetsToTxn", label, until=lambda answer: answer.error_code != CONCURRENT, **fields)


def end(label: str, epoch: int = 0, *, committed: bool = True, pid: Any = "${pid}", **options: Any) -> Ask:
    fields = {
        "transactional_id": "${x}",
        "producer_id": pid,
        "producer_epoch": epoch,
        "committed": committed,
        **options,
    }
    return ask("EndTxn", label, until=lambda answer: answer.error_code not in {CONCURRENT, *NOT_YET}, **fields)


def commit(label: str, epoch: int = 0, *, pid: Any = "${pid}", of: str = "${t}", index: int = 0, **options: Any) -> Ask:
    row = {"partition_index": index, "committed_offset": 5, "committed_metadata": "note"}
    fields = {
        "transactional_id": "${x}",
        "producer_id": pid,
        "producer_epoch": epoch,
        "group_id": "${g}",
        "topics": [{"name": of, "partitions": [row]}],
        **options,
    }
    return ask("TxnOffsetCommit", label, **fields)


def described(label: str, state: str | None = None) -> Ask:
    until = None if state is None else (lambda answer: answer.transaction_states[0].transaction_state == state)
    return ask("DescribeTransactions", label, transactional_ids=["${x}"], until=until, unordered=WHERE)


def rows(epoch: int = 0, first: int = 0, *, pid: Any = "${pid}") -> Any:
    return batch("a", "b", producer_id=pid, producer_epoch=epoch, base_sequence=first, attributes=TRANSACTIONAL)


def write(label: str, epoch: int = 0, first: int = 0, *, pid: Any = "${pid}", of: Any = "${x}", **options: Any) -> Ask:
    """Two records; by the newest Produce, which adds the partition on the way, unless ``versions`` says otherwise."""
    return produce(
        rows(epoch, first, pid=pid),
        label,
        transactional_id=of,
        until=lambda answer: answer.responses[0].partition_responses[0].error_code not in {CONCURRENT, *NOT_YET},
        **options,
    )


def known_producers(label: str, *indexes: int) -> Ask:
    """What a partition remembers of those who wrote to it."""
    topics = [{"name": "${t}", "partition_indexes": list(indexes or (0,))}]
    return ask("DescribeProducers", label, topics=topics, unordered=["topics.partitions.active_producers"])


def marker(label: str, epoch: int = 0, *, commits: bool = False, pid: Any = "${pid}", **options: Any) -> Ask:
    """As another broker's coordinator would send it: its epoch 0, a transaction of version 2."""
    fields = {
        "producer_id": pid,
        "producer_epoch": epoch,
        "transaction_result": commits,
        "topics": [{"name": options.pop("of", "${t}"), "partition_indexes": list(options.pop("partitions", (0,)))}],
        "coordinator_epoch": options.pop("coordinator_epoch", 0),
        "transaction_version": options.pop("transaction_version", 2),
    }
    return ask("WriteTxnMarkers", label, markers=[fields], unordered=["markers.topics.partitions"], **options)
