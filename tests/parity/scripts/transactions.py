"""Transactions: ids, partitions, offsets, endings; and what is refused."""

from __future__ import annotations

from typing import Any

from parity.asking import LATEST, fetch, list_offsets, produce
from parity.asking_groups import NOT_YET, group, offsets
from parity.notation import ALL, Ask, Script, Step, ask, batch, name, topic

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "2"}

WHERE = ["transaction_states.topics.partitions", "transaction_states.topics"]
"""Kafka keeps these in hash maps."""
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


def rows(epoch: int = 0, first: int = 0) -> Any:
    return batch("a", "b", producer_id="${pid}", producer_epoch=epoch, base_sequence=first, attributes=16)


SCRIPTS = [
    Script(
        "producers of a transactional id",
        each="InitProducerId",
        steps=[
            *transactional_id(),
            init("the first", capture={"pid": "producer_id"}),
            described("described"),
            init("the next"),
            init("without an id", of=None, capture={"other": "producer_id"}),
            init("an empty id", of=""),
            init("no time", timeout_ms=0),
            init("negative time", timeout_ms=-1),
            init("too much time", timeout_ms=900_001),
            described("in the end"),
        ],
    ),
    Script(
        "producers that say who they are",
        [
            *producer(),
            init("with what it has", producer_id="${pid}", producer_epoch=0),
            init("again with the same", producer_id="${pid}", producer_epoch=0),
            init("with a later epoch", producer_id="${pid}", producer_epoch=7),
            init("with another id", producer_id=123456, producer_epoch=1),
            init("an id without an epoch", producer_id="${pid}", producer_epoch=-1),
            init("an epoch without an id", producer_id=-1, producer_epoch=1),
            described("in the end"),
        ],
    ),
    Script(
        "a transaction by every EndTxn",
        each="EndTxn",
        only=range(5),
        steps=[
            topic(partitions=2),
            *producer(),
            end("nothing to commit"),
            end("nothing to abort", committed=False),
            add("added"),
            described("under way"),
            produce(rows(), "written", transactional_id="${x}", versions=[11]),
            list_offsets(LATEST, label="what is certain", isolation_level=1),
            end("by somebody else", pid=123456),
            end("a later epoch", 3),
            end("committed"),
            end("committed again"),
            end("aborted after that", committed=False),
            described("over", "CompleteCommit"),
            list_offsets(LATEST, label="what is certain then", isolation_level=1),
            fetch("read", isolation_level=1),
            add("added again"),
            end("aborted", committed=False),
            described("over again", "CompleteAbort"),
            end("aborted again", committed=False),
            end("committed after that"),
        ],
    ),
    Script(
        "an epoch for every transaction",
        [
            topic(),
            *producer(),
            end("nothing to commit", versions=[5]),
            add("added"),
            end("committed", versions=[5]),
            end("committed again", versions=[5]),
            end("aborted after that", committed=False, versions=[5]),
            described("over", "CompleteCommit"),
            add("added with the epoch before"),
            add("added with the next", 1),
            end("aborted", 1, committed=False, versions=[5]),
            described("over again", "CompleteAbort"),
            end("nothing to abort", 2, committed=False, versions=[5]),
            described("in the end", "CompleteAbort"),
        ],
    ),
    Script(
        "partitions added",
        [
            topic(partitions=3),
            *producer(),
            add("one", versions=range(4)),
            add("several, one twice", partitions=[0, 1, 1]),
            add("one that is not there", partitions=[0, 9]),
            add("of a topic that is not there", of="nothing"),
            add("none", partitions=[]),
            add("a later epoch", 5),
            add("of another producer", pid=123456),
            add("of a negative producer", pid=-1),
            described("described"),
            init("the next producer"),
            add("an epoch that is over"),
            end("an epoch that is over ends it"),
        ],
    ),
    Script(
        "offsets in a transaction",
        [
            topic(partitions=2),
            *group(),
            *producer(),
            add_group("added", versions=range(4)),
            add_group("a later epoch", 5),
            add_group("another producer", pid=123456),
            add_group("no group", group_id=""),
            described("described"),
            commit("committed", versions=range(5)),
            commit("a partition that is not there", index=9, versions=range(5)),
            commit("a topic that is not there", of="nothing", versions=range(5)),
            commit("a member that is not there", member_id="x", generation_id=1, versions=range(3, 5)),
            commit("a generation alone", generation_id=1, versions=range(3, 5)),
            commit("no group", group_id="", versions=range(5)),
            offsets("not yet", versions=ALL),
            offsets("only what is certain", require_stable=True, versions=range(7, 11)),
            end("ended", versions=[4]),
            described("over", "CompleteCommit"),
            offsets(
                "there",
                require_stable=True,
                until=lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
            ),
            add_group("added again", versions=[3]),
            end("aborted", committed=False, versions=[4]),
        ],
    ),
    Script(
        "transactions described and listed",
        [
            topic(partitions=2),
            *producer(),
            add("added"),
            ask(
                "DescribeTransactions", "one and others", versions=ALL, transactional_ids=["${x}", "nobody", "", "${x}"]
            ),
            ask("DescribeTransactions", "none", versions=ALL, transactional_ids=[]),
            ask("ListTransactions", "by its producer", versions=ALL, producer_id_filters=["${pid}"]),
            ask(
                "ListTransactions",
                "by state too",
                versions=ALL,
                producer_id_filters=["${pid}"],
                state_filters=["Ongoing", "no"],
            ),
            ask(
                "ListTransactions",
                "by another state",
                versions=ALL,
                producer_id_filters=["${pid}"],
                state_filters=["Empty"],
            ),
            ask("ListTransactions", "by unknown states", versions=ALL, state_filters=["nonsense"]),
            ask(
                "ListTransactions", "by age", versions=[1, 2], producer_id_filters=["${pid}"], duration_filter=3_600_000
            ),
            ask("ListTransactions", "by name", versions=[2], transactional_id_pattern="${x}"),
            ask("ListTransactions", "by another name", versions=[2], transactional_id_pattern="nobody.*"),
            ask("ListTransactions", "by a name that is no expression", versions=[2], transactional_id_pattern="("),
        ],
    ),
]
