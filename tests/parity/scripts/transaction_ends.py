"""Transactions that others end: time, a new producer, a marker from outside. And what coordinators tell brokers."""

from __future__ import annotations

from typing import Any

from parity.asking import LATEST, fetch, list_offsets
from parity.asking_groups import NOT_YET, group, offsets
from parity.asking_transactions import (
    CONCURRENT,
    FEW_PARTITIONS,
    add,
    add_group,
    commit,
    described,
    end,
    init,
    known_producers,
    marker,
    producer,
    transactional_id,
    write,
)
from parity.notation import ALL, Ask, Script, ask, topic

SETTINGS = {
    **FEW_PARTITIONS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "transaction.max.timeout.ms": "120000",
}


def one(epoch: int = 0, *, pid: Any = "${pid}", of: str = "${t}", indexes: Any = (0,), **fields: Any) -> dict[str, Any]:
    """A transaction as brokers name it to each other."""
    return {
        "transactional_id": "${x}",
        "producer_id": pid,
        "producer_epoch": epoch,
        "topics": [{"name": of, "partitions": list(indexes)}],
        **fields,
    }


def batched(label: str, *transactions: dict[str, Any], **options: Any) -> Ask:
    return ask(
        "AddPartitionsToTxn",
        label,
        transactions=list(transactions),
        unordered=[
            "results_by_transaction.topic_results.results_by_partition",
            "results_by_transaction.topic_results",
            "results_by_transaction",
        ],
        until=lambda answer: all(
            row.partition_error_code not in {CONCURRENT, *NOT_YET}
            for each in answer.results_by_transaction
            for topic in each.topic_results
            for row in topic.results_by_partition
        ),
        **options,
    )


NOTHING_SEEN_NOR_DONE = [
    list_offsets(LATEST, label="what is certain", isolation_level=1),
    fetch("read", isolation_level=1),
    offsets("none", require_stable=True),
    write("continued", first=2),
    write("continued by an old client", first=2, versions=range(3, 12)),
    add("a partition added", versions=range(4)),
    add_group("a group added", versions=ALL),
    commit("more offsets", versions=ALL),
    end("committed", versions=ALL),
    end("aborted", committed=False, versions=ALL),
]
"""Of a transaction that another has ended: nobody sees it, and its producer can't go on with it in any way."""

SCRIPTS = [
    Script(
        "a transaction that takes too long",
        [
            topic(),
            *group(),
            *transactional_id(),
            init("in a hurry", timeout_ms=300, capture={"pid": "producer_id"}),
            write("begun"),
            commit("offsets too"),
            described("aborted", "CompleteAbort"),
            known_producers("known"),
            *NOTHING_SEEN_NOR_DONE,
            init("by the producer that had it", producer_id="${pid}", producer_epoch=0),
            init("once more", producer_id="${pid}", producer_epoch=0),
            write("begun again", 1),
            end("ended", 1),
            described("in the end", "CompleteCommit"),
        ],
    ),
    Script(
        "an old client's transaction that takes too long",
        [
            topic(),
            *transactional_id(),
            init("in a hurry", timeout_ms=300, capture={"pid": "producer_id"}, versions=[2]),
            add("begun"),
            described("aborted", "CompleteAbort"),
            end("committed", versions=range(5)),
            init("by anybody", versions=[2]),
            described("in the end"),
        ],
    ),
    Script(
        "a producer that another one fences",
        [
            topic(),
            *group(),
            *producer(),
            write("begun"),
            commit("offsets too"),
            init("the next producer"),
            known_producers("known"),
            described("at rest"),
            *NOTHING_SEEN_NOR_DONE,
            init("with what it has", producer_id="${pid}", producer_epoch=0, versions=range(3, 6)),
            write("the next one's", 2),
            end("ended", 2),
            described("in the end", "CompleteCommit"),
        ],
    ),
    Script(
        "how long a transaction may take",
        each="InitProducerId",
        steps=[
            *transactional_id(),
            init("all of it", timeout_ms=120_000),
            init("a little more", timeout_ms=120_001),
            init("nothing", timeout_ms=0),
            init("the least", timeout_ms=1),
            init("without an id, a little more", of=None, timeout_ms=120_001, capture={"other": "producer_id"}),
            described("described"),
        ],
    ),
    Script(
        "transactions named by brokers",
        each="AddPartitionsToTxn",
        only=[4, 5],
        steps=[
            topic(partitions=3),
            *producer(),
            batched("looked for", one(verify_only=True)),
            batched("added", one(indexes=[0, 1])),
            described("described"),
            batched("looked for and found", one(verify_only=True)),
            batched("some of them", one(indexes=[0, 2], verify_only=True)),
            batched("one that is not there", one(indexes=[0, 9])),
            batched("one that is not there, looked for", one(indexes=[0, 9], verify_only=True)),
            batched("of a topic that is not there", one(of="nothing")),
            batched("of a topic that is not there, looked for", one(of="nothing", verify_only=True)),
            batched("of the offsets", one(of="__consumer_offsets")),
            batched("a later epoch", one(4)),
            batched("a later epoch, looked for", one(4, verify_only=True)),
            batched("another producer", one(pid=123456)),
            batched("another producer, looked for", one(pid=123456, verify_only=True)),
            batched("none", one(indexes=[])),
            batched("no topic", one(topics=[])),
            batched("nobody", patience_s=5.0),
            batched(
                "several",
                one(verify_only=True),
                one(transactional_id="nobody"),
                one(transactional_id="nobody else", verify_only=True),
            ),
            batched("an empty id", one(transactional_id="")),
            batched("an empty id, looked for", one(transactional_id="", verify_only=True)),
            end("ended", versions=[5]),
            described("over", "CompleteCommit"),
            batched("of the epoch before", one()),
            batched("of the epoch before, looked for", one(verify_only=True)),
            batched("of the next, looked for", one(1, verify_only=True)),
            batched("of the next", one(1)),
            described("in the end"),
        ],
    ),
    Script(
        "markers of a coordinator",
        each="WriteTxnMarkers",
        steps=[
            topic(partitions=2),
            *producer(),
            marker("where nothing is open", 0),
            known_producers("known"),
            write("begun", versions=[12]),
            marker("of the epoch of what is open", 0),
            known_producers("known then"),
            write("begun again", 1, versions=[12]),
            marker("a commit", 1, commits=True),
            marker("a commit of the epoch to come", 2, commits=True),
            known_producers("known after that"),
            list_offsets(LATEST, label="what is certain", isolation_level=1),
            marker("of the past", 0, commits=True),
            marker("of a later coordinator", 3, coordinator_epoch=5),
            marker("of an older coordinator", 4, coordinator_epoch=4),
            marker("of another producer", 0, pid=123456),
            marker("of no producer", 0, pid=-1),
            marker("of no epoch", -1),
            marker("on partitions that are not there", 5, partitions=[1, 9]),
            marker("on a topic that is not there", 5, of="nothing"),
            marker("on a partition twice", 6, partitions=[1, 1], patience_s=5.0),
            marker("on none", 6, partitions=[]),
            marker("of an unknown version of transactions", 7, transaction_version=9, coordinator_epoch=5),
            marker("of version 1", 7, transaction_version=1, coordinator_epoch=5),
            ask("WriteTxnMarkers", "none at all", markers=[]),
            known_producers("known in the end", 0, 1),
            list_offsets(LATEST, label="the end"),
        ],
    ),
    Script(
        "several markers at once",
        each="WriteTxnMarkers",
        steps=[
            topic(partitions=2),
            *producer(),
            ask(
                "WriteTxnMarkers",
                "of two producers, one twice",
                markers=[
                    {
                        "producer_id": pid,
                        "producer_epoch": epoch,
                        "transaction_result": commits,
                        "topics": [{"name": "${t}", "partition_indexes": [0, 1]}],
                        "coordinator_epoch": 0,
                        "transaction_version": 2,
                    }
                    for pid, epoch, commits in [("${pid}", 1, True), (123456, 0, False), ("${pid}", 0, True)]
                ],
                unordered=["markers.topics.partitions", "markers.topics", "markers"],
            ),
            known_producers("known", 0, 1),
        ],
    ),
]
