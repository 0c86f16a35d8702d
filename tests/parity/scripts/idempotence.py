"""Idempotent producers: InitProducerId, sequences, duplicates, epochs, and what DescribeProducers says of them."""

from __future__ import annotations

from typing import Any

from parity.asking import end_offset, fetch, new_producer, produce
from parity.notation import ALL, Script, ask, batch, topic


def of(sequence: int, *records: str, epoch: int = 0, pid: str = "${pid}", **fields: Any) -> Any:
    return batch(*(records or ("a",)), producer_id=pid, producer_epoch=epoch, base_sequence=sequence, **fields)


SCRIPTS = [
    Script(
        "a producer id at every version",
        [
            new_producer("first"),
            ask(
                "InitProducerId",
                versions=ALL,
                transactional_id=None,
                transaction_timeout_ms=60_000,
                capture={"pid": "producer_id"},
            ),
            ask(
                "InitProducerId",
                "a timeout of zero",
                versions=ALL,
                transactional_id=None,
                transaction_timeout_ms=0,
                capture={"pid": "producer_id"},
            ),
            ask(
                "InitProducerId",
                "an id of its own",
                versions=[3, 4, 5],
                transactional_id=None,
                producer_id=5,
                producer_epoch=3,
                capture={"pid": "producer_id"},
            ),
            ask(
                "InitProducerId",
                "an id without an epoch",
                versions=[3, 4, 5],
                transactional_id=None,
                producer_id=5,
                producer_epoch=-1,
            ),
            ask(
                "InitProducerId",
                "an epoch without an id",
                versions=[3, 4, 5],
                transactional_id=None,
                producer_id=-1,
                producer_epoch=3,
            ),
            ask(
                "InitProducerId",
                "an empty transactional id",
                versions=ALL,
                transactional_id="",
                transaction_timeout_ms=60_000,
            ),
            ask(
                "InitProducerId",
                "a transaction's timeout of zero",
                versions=ALL,
                transactional_id="tx",
                transaction_timeout_ms=0,
            ),
            ask(
                "InitProducerId",
                "a transaction's timeout beyond the limit",
                versions=ALL,
                transactional_id="tx",
                transaction_timeout_ms=900_001,
            ),
        ],
    ),
    Script(
        "sequences go on, and a duplicate gets its first offset",
        each="Produce",
        steps=[
            topic(),
            new_producer(),
            produce(of(0, "a", "b"), "sequence 0"),
            produce(of(2, "c"), "sequence 2"),
            produce(of(0, "a", "b"), "0 again"),
            produce(of(2, "c"), "2 again"),
            produce(of(2, "c"), "2 again without acknowledgement of all", acks=1),
            produce(of(5, "d"), "a gap"),
            produce(of(3, "d", "e"), "as it should be"),
            produce(of(1, "b"), "the second half of the first"),
            end_offset(),
            fetch("what is stored"),
        ],
    ),
    Script(
        "a duplicate older than five batches",
        [
            topic(),
            new_producer(),
            *[produce(of(n), f"sequence {n}") for n in range(7)],
            produce(of(0), "0 again"),
            produce(of(2), "2 again"),
            produce(of(6), "6 again"),
            end_offset(),
        ],
    ),
    Script(
        "epochs",
        [
            topic(),
            new_producer(),
            produce(of(0), "epoch 0"),
            produce(of(0, epoch=1), "epoch 1 from the start"),
            produce(of(1, epoch=0), "epoch 0 again"),
            produce(of(5, epoch=2), "epoch 2 not from the start"),
            produce(of(1, epoch=1), "epoch 1 goes on"),
            produce(of(0, epoch=5), "epoch 5"),
            end_offset(),
        ],
    ),
    Script(
        "a producer that nobody knows",
        [
            topic(),
            produce(batch("a", producer_id=4_242, producer_epoch=0, base_sequence=0), "from the start"),
            produce(batch("a", producer_id=4_243, producer_epoch=0, base_sequence=9), "from the middle"),
            produce(
                batch("a", producer_id=4_244, producer_epoch=3, base_sequence=9), "from the middle, of a later epoch"
            ),
            end_offset(),
        ],
    ),
    Script(
        "sequences wrap around",
        [
            topic(),
            new_producer(),
            produce(of((1 << 31) - 2, "a", "b"), "the last two"),
            produce(of(0, "c"), "zero"),
            produce(of((1 << 31) - 1, "d", "e"), "across the edge"),
            end_offset(),
        ],
    ),
    Script(
        "partitions have sequences of their own",
        [
            topic(partitions=2),
            new_producer(),
            produce(of(0), "partition 0"),
            produce(of(0), "partition 1", partition=1),
            produce(of(3), "a gap in 1", partition=1),
            end_offset(partition=1),
        ],
    ),
    Script(
        "duplicates without acknowledgement",
        [
            topic(),
            new_producer(),
            produce(of(0), "sequence 0"),
            produce(of(0), "again", acks=0, answered=False),
            ask("DescribeCluster", "the connection afterwards"),
            produce(of(7), "a gap", acks=0, answered=False),
            ask("DescribeCluster", "the connection after a gap"),
            end_offset(),
        ],
    ),
    Script(
        "a producer after its records were deleted",
        [
            topic(),
            new_producer(),
            produce(of(0, "a", "b"), "two records"),
            ask(
                "DeleteRecords",
                topics=[{"name": "${t}", "partitions": [{"partition_index": 0, "offset": -1}]}],
                timeout_ms=5_000,
            ),
            produce(of(2), "goes on"),
            produce(of(0, "a", "b"), "the first again"),
            produce(of(9), "a gap"),
            end_offset(),
        ],
    ),
    Script(
        "producers described",
        [
            topic(partitions=2),
            new_producer(),
            new_producer("other"),
            ask("DescribeProducers", "before any", topics=[{"name": "${t}", "partition_indexes": [0, 1]}]),
            produce(of(0, "a", "b"), "two records"),
            produce(of(2, "c"), "a third"),
            produce(of(0, pid="${other}", epoch=3), "another producer"),
            ask(
                "DescribeProducers",
                "after",
                topics=[{"name": "${t}", "partition_indexes": [0, 1]}],
                unordered=["topics.partitions.active_producers"],
            ),
            ask(
                "DescribeProducers",
                "what does not exist",
                topics=[
                    {"name": "${t}", "partition_indexes": [7, -1]},
                    {"name": "nobody", "partition_indexes": [0]},
                    {"name": "no spaces", "partition_indexes": [0]},
                    {"name": "", "partition_indexes": [0]},
                ],
            ),
            ask("DescribeProducers", "no partition", topics=[{"name": "${t}", "partition_indexes": []}]),
            ask(
                "DescribeProducers",
                "the same twice",
                topics=[{"name": "${t}", "partition_indexes": [1, 1]}, {"name": "${t}", "partition_indexes": [1]}],
            ),
            ask("DescribeProducers", "nothing", topics=[]),
        ],
    ),
]
