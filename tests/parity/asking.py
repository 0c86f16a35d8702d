"""What scripts say all the time, in one line each."""

from __future__ import annotations

from typing import Any

from parity.notation import Ask, Late, ask

EARLIEST, LATEST = -2, -1


def produce(
    records: Late | bytes | None, label: str = "", *, to: str = "t", partition: int = 0, acks: int = -1, **options: Any
) -> Ask:
    data = [{"index": partition, "records": records}]
    named = {"name": f"${{{to}}}", "topic_id": f"${{{to}.id}}"}
    return ask(
        "Produce", label, acks=acks, timeout_ms=30_000, topic_data=[{**named, "partition_data": data}], **options
    )


def fetch_partition(offset: int = 0, *, partition: int = 0, bytes_max: int = 1 << 20, **fields: Any) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": bytes_max, **fields}


def fetch_topic(*partitions: dict[str, Any], of: str = "t") -> dict[str, Any]:
    return {"topic": f"${{{of}}}", "topic_id": f"${{{of}.id}}", "partitions": list(partitions)}


def fetch(label: str = "", *topics: dict[str, Any], max_wait_ms: int = 0, min_bytes: int = 1, **options: Any) -> Ask:
    """Without a session unless it says so; of the whole topic ``t`` unless it says of what."""
    what = list(topics) or [fetch_topic(fetch_partition())]
    return ask("Fetch", label, max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=what, **options)


def list_offsets(
    *timestamps: int, label: str = "", of: str = "t", partition: int = 0, epoch: int = -1, **options: Any
) -> Ask:
    """One partition for each timestamp: Kafka answers INVALID_REQUEST for a partition that is named twice."""
    asked = [
        {"partition_index": partition + at, "timestamp": timestamp, "current_leader_epoch": epoch}
        for at, timestamp in enumerate(timestamps)
    ]
    options.setdefault("replica_id", -1)
    return ask("ListOffsets", label, topics=[{"name": f"${{{of}}}", "partitions": asked}], timeout_ms=5_000, **options)


def end_offset(of: str = "t", partition: int = 0, *, label: str = "the end of the log") -> Ask:
    return list_offsets(LATEST, label=label, of=of, partition=partition)


def new_producer(name: str = "pid") -> Ask:
    """A producer id under ``name``. Kafka answers COORDINATOR_LOAD_IN_PROGRESS until it has its first block of ids."""
    return ask(
        "InitProducerId",
        "a producer id",
        transactional_id=None,
        transaction_timeout_ms=60_000,
        capture={name: "producer_id"},
        until=lambda answer: answer.error_code != 14,
    )


def settings(pairs: dict[str, str | None]) -> list[dict[str, str | None]]:
    return [{"name": name, "value": value} for name, value in pairs.items()]


def creatable(name: str, partitions: int = 1, replication_factor: int = 1, **fields: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": replication_factor, **fields}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]
