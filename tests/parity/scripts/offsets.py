"""ListOffsets, DeleteRecords and OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

from parity.asking import end_offset, fetch, list_offsets, produce
from parity.notation import ALL, T0_MS, Script, ask, batch, topic
from support.batches import Rec

FILLED = [
    produce(
        batch(Rec(b"a", timestamp_delta_ms=0), Rec(b"b", timestamp_delta_ms=50), Rec(b"c", timestamp_delta_ms=20)),
        "offsets 0-2",
    ),
    produce(batch("d", timestamp_ms=T0_MS + 40), "offset 3"),
    produce(batch(Rec(b"e"), Rec(b"f", timestamp_delta_ms=30), codec="gzip", timestamp_ms=T0_MS + 100), "offsets 4-5"),
    produce(batch("g", timestamp_ms=T0_MS + 90), "offset 6"),
]
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -100)


def delete(label: str, *parts: tuple[int, int], of: str = "${t}", **options: Any) -> Any:
    partitions = [{"partition_index": index, "offset": offset} for index, offset in parts]
    return ask("DeleteRecords", label, topics=[{"name": of, "partitions": partitions}], timeout_ms=5_000, **options)


def epoch_end(
    label: str, epoch: int, *, current: int = -1, partition: int = 0, of: str = "${t}", **options: Any
) -> Any:
    partitions = [{"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}]
    return ask(
        "OffsetForLeaderEpoch",
        label,
        versions=ALL,
        topics=[{"topic": of, "partitions": partitions}],
        **{"replica_id": -1, **options},
    )


SCRIPTS = [
    Script(
        "by timestamp",
        [
            topic(),
            list_offsets(T0_MS, label="in an empty log", versions=ALL),
            *FILLED,
            *[
                list_offsets(T0_MS + delta, label=f"{delta} ms after the first", versions=ALL)
                for delta in (-1_000, 0, 1, 20, 30, 50, 51, 95, 100, 120, 131, 1_000)
            ],
            list_offsets(0, label="timestamp 0", versions=ALL),
        ],
    ),
    Script(
        "special timestamps in an empty log",
        [topic(), *[list_offsets(special, label=f"timestamp {special}", versions=ALL) for special in SPECIAL]],
    ),
    Script(
        "special timestamps",
        [topic(), *FILLED, *[list_offsets(special, label=f"timestamp {special}", versions=ALL) for special in SPECIAL]],
    ),
    Script(
        "isolation",
        [
            topic(),
            *FILLED,
            *[
                list_offsets(-1, label=f"latest at level {level}", versions=ALL, isolation_level=level)
                for level in (0, 1, 2, -1)
            ],
            list_offsets(T0_MS, label="by timestamp at level 1", versions=ALL, isolation_level=1),
            list_offsets(-3, label="the largest timestamp at level 1", versions=ALL, isolation_level=1),
        ],
    ),
    Script(
        "epochs of the leader",
        [
            topic(),
            *FILLED,
            *[list_offsets(-1, label=f"current epoch {epoch}", versions=ALL, epoch=epoch) for epoch in (-1, 0, 1, -2)],
        ],
    ),
    Script(
        "replica ids",
        [
            topic(),
            *FILLED,
            *[
                list_offsets(-1, label=f"replica {replica}", versions=ALL, replica_id=replica)
                for replica in (0, 1, 7, -2, -3)
            ],
        ],
    ),
    Script(
        "what does not exist",
        [
            topic(),
            *FILLED,
            list_offsets(-1, label="another partition", partition=4, versions=ALL),
            list_offsets(-1, label="partition -1", partition=-1, versions=ALL),
            ask(
                "ListOffsets",
                "another topic",
                versions=ALL,
                replica_id=-1,
                topics=[{"name": "nobody", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
            ),
            ask(
                "ListOffsets",
                "a name that no topic can have",
                versions=ALL,
                replica_id=-1,
                topics=[{"name": "no spaces", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
            ),
            ask(
                "ListOffsets",
                "the same partition twice",
                versions=ALL,
                replica_id=-1,
                topics=[
                    {
                        "name": "${t}",
                        "partitions": [
                            {"partition_index": 0, "timestamp": -1},
                            {"partition_index": 0, "timestamp": -2},
                        ],
                    }
                ],
            ),
            ask(
                "ListOffsets",
                "the same partition twice, in two topics",
                versions=ALL,
                replica_id=-1,
                topics=[
                    {"name": "${t}", "partitions": [{"partition_index": 0, "timestamp": -1}]},
                    {"name": "${t}", "partitions": [{"partition_index": 0, "timestamp": -2}]},
                ],
            ),
            ask("ListOffsets", "nothing", versions=ALL, replica_id=-1, topics=[]),
            ask(
                "ListOffsets", "no partition", versions=ALL, replica_id=-1, topics=[{"name": "${t}", "partitions": []}]
            ),
        ],
    ),
    Script(
        "several partitions",
        [
            topic(partitions=3),
            *FILLED,
            list_offsets(
                -1, -2, T0_MS, label="latest, earliest, by timestamp", versions=ALL, unordered=["topics.partitions"]
            ),
        ],
    ),
    Script(
        "the broker's time",
        [
            topic(message_timestamp_type="LogAppendTime"),
            produce(batch("a", "b"), "two records"),
            list_offsets(-3, label="the largest timestamp", versions=[7, 11]),
            list_offsets(1, label="by timestamp", versions=ALL),
        ],
    ),
    Script(
        "records without a timestamp",
        [
            topic(),
            produce(batch("a", timestamp_ms=-1), "no timestamp"),
            *[list_offsets(each, label=f"timestamp {each}", versions=[1, 7, 11]) for each in (0, 1, -1, -2, -3)],
        ],
    ),
    Script(
        "the same timestamp in several batches",
        [
            topic(),
            *[produce(batch("a", "b"), f"batch {n}") for n in range(3)],
            list_offsets(T0_MS, label="by timestamp", versions=ALL),
            list_offsets(-3, label="the largest timestamp", versions=[7, 11]),
        ],
    ),
    Script(
        "records deleted",
        each="DeleteRecords",
        steps=[
            topic(partitions=2),
            *FILLED,
            delete("up to 2", (0, 2)),
            *[list_offsets(special, label=f"timestamp {special}") for special in (-1, -2, -4)],
            list_offsets(T0_MS, label="by timestamp"),
            fetch(
                "what is left",
                {
                    "topic_id": "${t.id}",
                    "partitions": [{"partition": 0, "fetch_offset": 2, "partition_max_bytes": 1 << 20}],
                },
            ),
            delete("up to 1, which is less", (0, 1)),
            delete("beyond the end", (0, 99)),
            delete("a negative offset", (0, -2)),
            delete("all", (0, -1), (1, -1), unordered=["topics.partitions"]),
            *[list_offsets(special, label=f"timestamp {special}, now empty") for special in (-1, -2, -3, -4)],
            list_offsets(T0_MS, label="by timestamp, now empty"),
            produce(batch("h"), "the log goes on"),
            end_offset(),
        ],
    ),
    Script(
        "records deleted where there are none",
        each="DeleteRecords",
        steps=[
            topic(),
            delete("another partition", (5, 0), (-1, 0), unordered=["topics.partitions"]),
            delete("another topic", (0, 0), of="nobody"),
            delete("a name that no topic can have", (0, 0), of="no spaces"),
            ask("DeleteRecords", "nothing", topics=[], timeout_ms=5_000),
            ask("DeleteRecords", "no partition", topics=[{"name": "${t}", "partitions": []}], timeout_ms=5_000),
            delete("the same partition twice", (0, 0), (0, -1)),
            ask(
                "DeleteRecords",
                "no time",
                topics=[{"name": "${t}", "partitions": [{"partition_index": 0, "offset": 0}]}],
                timeout_ms=0,
            ),
        ],
    ),
    Script(
        "records deleted from a compacted topic",
        [
            topic(cleanup_policy="compact"),
            produce(batch(Rec(b"v", b"k")), "one"),
            delete("up to 1", (0, 1), versions=ALL),
            end_offset(),
            topic("b", cleanup_policy="compact,delete"),
            produce(batch(Rec(b"v", b"k")), "one in b", to="b"),
            delete("up to 1 in b", (0, 1), of="${b}", versions=ALL),
        ],
    ),
    Script(
        "where an epoch ends",
        [
            topic(),
            *[epoch_end(f"epoch {epoch} of an empty log", epoch) for epoch in (-1, 0, 1)],
            *FILLED,
            *[epoch_end(f"epoch {epoch}", epoch) for epoch in (-2, -1, 0, 1, 100)],
            *[epoch_end(f"current epoch {epoch}", 0, current=epoch) for epoch in (-2, -1, 0, 1)],
            epoch_end("another partition", 0, partition=6),
            epoch_end("another topic", 0, of="nobody"),
            epoch_end("a name that no topic can have", 0, of="no spaces"),
            epoch_end("as a follower", 0, replica_id=1),
            epoch_end("as a debugger", 0, replica_id=-2),
            ask("OffsetForLeaderEpoch", "nothing", versions=ALL, replica_id=-1, topics=[]),
            ask(
                "OffsetForLeaderEpoch",
                "the same twice",
                versions=ALL,
                replica_id=-1,
                topics=[{"topic": "${t}", "partitions": [{"partition": 0}, {"partition": 0}]}],
            ),
        ],
    ),
]
