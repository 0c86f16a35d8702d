"""Fetch: offsets, limits, epochs, isolation, ids, and sessions."""

from __future__ import annotations

from typing import Any

from parity.asking import end_offset, fetch, fetch_partition, fetch_topic, produce
from parity.notation import ALL, Script, ask, batch, topic

FILLED = [
    produce(batch("a" * 100, "b" * 100), "batch 0-1"),
    produce(batch("c" * 100), "batch 2"),
    produce(batch("d" * 100, "e"), "batch 3-4"),
]
NOBODY = {"topic": "nobody", "topic_id": bytes(range(16)), "partitions": [fetch_partition()]}


def session(label: str, *topics: dict[str, Any], id: Any = "${session}", epoch: int, **options: Any) -> Any:
    return ask(
        "Fetch", label, max_wait_ms=0, min_bytes=0, session_id=id, session_epoch=epoch, topics=list(topics), **options
    )


def forget(*partitions: int, of: str = "t") -> dict[str, Any]:
    return {"topic": f"${{{of}}}", "topic_id": f"${{{of}.id}}", "partitions": list(partitions)}


SCRIPTS = [
    Script(
        "from every offset",
        each="Fetch",
        steps=[
            topic(),
            fetch("an empty log"),
            *FILLED,
            *[
                fetch(f"offset {offset}", fetch_topic(fetch_partition(offset)))
                for offset in (0, 1, 2, 4, 5, 6, -1, -2, 1 << 62)
            ],
        ],
    ),
    Script(
        "limits",
        each="Fetch",
        steps=[
            topic(partitions=2),
            *FILLED,
            produce(batch("x" * 50), "the other partition", partition=1),
            *[
                fetch(
                    f"{size} bytes of a partition",
                    fetch_topic(fetch_partition(bytes_max=size), fetch_partition(partition=1, bytes_max=size)),
                )
                for size in (0, 1, 300, 480, 1_000, -1)
            ],
            *[
                fetch(
                    f"{size} bytes in all", fetch_topic(fetch_partition(), fetch_partition(partition=1)), max_bytes=size
                )
                for size in (0, 1, 300, 480, 640, 1_000, -1)
            ],
            fetch(
                "the small partition first", fetch_topic(fetch_partition(partition=1), fetch_partition()), max_bytes=200
            ),
            fetch("more bytes wanted than there are, no wait", min_bytes=1 << 20, max_wait_ms=0),
            fetch("more bytes wanted than there are, a short wait", min_bytes=1 << 20, max_wait_ms=1),
            fetch("a wait that is negative", min_bytes=1 << 20, max_wait_ms=-1),
        ],
    ),
    Script(
        "what does not exist",
        each="Fetch",
        steps=[
            topic(),
            *FILLED,
            fetch(
                "another partition",
                fetch_topic(fetch_partition(partition=3), fetch_partition(), fetch_partition(partition=-1)),
            ),
            fetch("another topic", NOBODY, fetch_topic(fetch_partition())),
            fetch("no topic", {"topic": "", "topic_id": bytes(16), "partitions": [fetch_partition()]}),
            fetch(
                "a name that no topic can have",
                {"topic": "no spaces", "topic_id": bytes(15) + b"\1", "partitions": [fetch_partition()]},
            ),
            fetch("no partition", fetch_topic()),
            ask("Fetch", "nothing", max_wait_ms=0, topics=[]),
            fetch("the same partition twice", fetch_topic(fetch_partition(), fetch_partition(2))),
            fetch("the same topic twice", fetch_topic(fetch_partition()), fetch_topic(fetch_partition(2))),
        ],
    ),
    Script(
        "epochs of the leader",
        each="Fetch",
        steps=[
            topic(),
            *FILLED,
            *[
                fetch(f"current epoch {epoch}", fetch_topic(fetch_partition(current_leader_epoch=epoch)))
                for epoch in (-1, 0, 1, -2)
            ],
            *[
                fetch(
                    f"last fetched epoch {epoch}",
                    fetch_topic(fetch_partition(3, current_leader_epoch=0, last_fetched_epoch=epoch)),
                )
                for epoch in (-1, 0, 1, 7)
            ],
            fetch("last fetched epoch beyond the end", fetch_topic(fetch_partition(9, last_fetched_epoch=0))),
        ],
    ),
    Script(
        "isolation",
        each="Fetch",
        steps=[topic(), *FILLED, *[fetch(f"level {level}", isolation_level=level) for level in (0, 1, 2, -1)]],
    ),
    Script(
        "after records were deleted",
        each="Fetch",
        steps=[
            topic(),
            *FILLED,
            ask(
                "DeleteRecords",
                topics=[{"name": "${t}", "partitions": [{"partition_index": 0, "offset": 2}]}],
                timeout_ms=5_000,
            ),
            *[fetch(f"offset {offset}", fetch_topic(fetch_partition(offset))) for offset in (0, 1, 2, 5)],
        ],
    ),
    Script(
        "zstd and versions that do not know it",
        [topic(), produce(batch("a", codec="zstd"), "zstd"), fetch("zstd", versions=ALL)],
    ),
    Script(
        "as a follower",
        [
            topic(),
            *FILLED,
            fetch("by replica id", versions=[4, 11, 14], replica_id=1),
            fetch("by replica state", versions=[15, 17], replica_state={"replica_id": 1, "replica_epoch": 0}),
            fetch("replica -2", versions=[4, 11, 14], replica_id=-2),
        ],
    ),
    Script(
        "the cluster's id and a rack",
        [
            topic(),
            *FILLED,
            fetch("another cluster", versions=[12, 17], cluster_id="another"),
            fetch("this cluster", versions=[12, 17], cluster_id="${cluster}"),
            fetch("a rack", versions=[11, 12, 17], rack_id="r1"),
        ],
    ),
    Script(
        "a session",
        each="Fetch",
        steps=[
            topic(partitions=3),
            *FILLED,
            session(
                "begins",
                fetch_topic(fetch_partition(), fetch_partition(partition=1)),
                id=0,
                epoch=0,
                capture={"session": "session_id"},
            ),
            session("nothing new", epoch=1),
            produce(batch("f"), "into partition 1", partition=1),
            session("what is new", epoch=2),
            session("a partition goes on", fetch_topic(fetch_partition(1, partition=1)), epoch=3),
            session("a partition joins", fetch_topic(fetch_partition(partition=2)), epoch=4),
            session("a partition that does not exist joins", fetch_topic(fetch_partition(partition=7)), epoch=5),
            session("it stays wrong", epoch=6),
            session("it is forgotten", epoch=7, forgotten_topics_data=[forget(7)]),
            session("an offset that does not exist", fetch_topic(fetch_partition(99, partition=1)), epoch=8),
            session("an epoch too early", epoch=8),
            session("an epoch too late", epoch=99),
            session("goes on after that", epoch=9),
            session("ends", fetch_topic(fetch_partition()), epoch=-1),
            session("is over", epoch=10),
        ],
    ),
    Script(
        "sessions that nobody has",
        [
            topic(),
            *FILLED,
            *[
                session(
                    f"session {id} epoch {epoch}",
                    fetch_topic(fetch_partition()),
                    id=id,
                    epoch=epoch,
                    versions=[7, 12, 13, 18],
                )
                for id, epoch in [(123_456, 1), (123_456, -1), (0, -1), (0, 1), (-1, 1), (123_456, -2)]
            ],
            session(
                "a session without partitions",
                id=0,
                epoch=0,
                versions=[7, 12, 13, 18],
                capture={"session": "session_id"},
            ),
        ],
    ),
    Script(
        "a topic that is deleted and made again during a session",
        [
            topic(),
            session(
                "begins",
                fetch_topic(fetch_partition()),
                id=0,
                epoch=0,
                versions=[17],
                capture={"session": "session_id"},
            ),
            ask("DeleteTopics", topics=[{"name": "${t}"}], timeout_ms=5_000),
            ask(
                "Metadata",
                "until it is gone",
                topics=[{"name": "${t}"}],
                allow_auto_topic_creation=False,
                until=lambda answer: answer.topics[0].error_code != 0,
            ),
            session("it is gone", epoch=1, versions=[17]),
        ],
    ),
    Script(
        "large batches come whole",
        [
            topic(),
            produce(batch("x" * 5_000), "large"),
            produce(batch("y"), "small"),
            fetch("limit 100", fetch_topic(fetch_partition(bytes_max=100)), max_bytes=100, versions=ALL),
            end_offset(),
        ],
    ),
]
