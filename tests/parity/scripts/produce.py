"""Produce: what is appended, what is refused with which words, and what a refusal leaves behind."""

from __future__ import annotations

from typing import Any

from crc32c import crc32c

from parity.asking import end_offset, fetch, produce
from parity.notation import ALL, T0_MS, Ask, Late, Script, Variables, ask, batch, joined, topic
from support.batches import CODECS, HEADER_BYTES, Rec

FAR_AHEAD_MS = 4_102_444_800_000  # in the year 2100
HOUR_MS = 3_600_000
KEYED = Rec(b"v", b"k")


def of_garbage(size_bytes: int, **fields: Any) -> Late:
    """A batch with the right sizes, counts and CRC whose records are none."""

    def make(variables: Variables) -> bytes:
        whole = batch("x" * size_bytes, **fields).make(variables)
        body = whole[21:HEADER_BYTES] + b"\xff" * (len(whole) - HEADER_BYTES)
        return whole[:17] + crc32c(body).to_bytes(4, "big") + body

    return Late(make)


FAULTS: dict[str, Late | bytes] = {
    "a wrong checksum": batch("a", "b", crc=1),
    "more records counted than numbered": batch("a", "b", count=3),
    "more records numbered than counted": batch("a", "b", last_offset_delta=5),
    "a count of zero": batch("a", count=0),
    "a negative count": batch("a", count=-1),
    "no record at all": batch(),
    "no batch": b"",
    "two batches": joined(batch("a"), batch("b")),
    "bytes that are no batch": b"abc",
    "a header cut short": b"\0" * 20,
    "a length beyond the end": batch("a", "b", batch_length=6_000),
    "a negative length": batch("a", "b", batch_length=-1),
    "a length below any header": batch("a", "b", batch_length=10),
    "message format 0": batch("a", "b", magic=0),
    "message format 1": batch("a", "b", magic=1),
    "a message format of the future": batch("a", "b", magic=3),
    "a negative message format": batch("a", "b", magic=-1),
    "a control batch": batch("a", "b", attributes=0x20, producer_id=1, producer_epoch=0),
    "a base offset of its own": batch("a", "b", base_offset=77),
    "a transaction without transactional id": batch(
        "a", attributes=0x10, producer_id=1, producer_epoch=0, base_sequence=0
    ),
    "a codec that does not exist": batch("a", attributes=5),
    "a producer id without an epoch": batch("a", producer_id=1),
    "a producer id without a sequence": batch("a", producer_id=1, producer_epoch=0),
    "a negative sequence": batch("a", producer_id=1, producer_epoch=0, base_sequence=-2),
    "one record far ahead": batch("a", Rec(timestamp_delta_ms=FAR_AHEAD_MS - T0_MS), "c"),
    "all records far ahead": batch("a", "b", timestamp_ms=FAR_AHEAD_MS),
}


def to_partitions(label: str, parts: list[tuple[int, Late | bytes]], **options: object) -> Ask:
    data = [{"index": index, "records": records} for index, records in parts]
    return ask(
        "Produce",
        label,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[{"name": "${t}", "topic_id": "${t.id}", "partition_data": data}],
        **options,
    )


SCRIPTS = [
    Script(
        "batches are appended and their offsets told",
        each="Produce",
        steps=[
            topic(),
            produce(batch("a", "b"), "two records"),
            produce(
                batch(Rec(b"v", b"k", [("h", b"x"), ("n", None)]), Rec(None, b"k")), "keys, headers, nulls", acks=1
            ),
            produce(batch("c"), "no acknowledgement", acks=0, answered=False),
            end_offset(),
            fetch("what is stored"),
        ],
    ),
    Script(
        "batches that are refused",
        each="Produce",
        steps=[
            topic(),
            produce(batch("first"), "a good one"),
            *[
                step
                for fault, records in FAULTS.items()
                for step in (produce(records, fault), end_offset(label=f"the end after {fault}"))
            ],
            produce(batch("last"), "another good one"),
        ],
    ),
    Script(
        "codecs",
        each="Produce",
        steps=[
            topic(),
            *[produce(batch(Rec(b"v" * 50, b"k"), "b", codec=codec), codec) for codec in CODECS],
            fetch("what is stored"),
            end_offset(),
        ],
    ),
    Script(
        "bad batches without acknowledgement close the connection",
        [topic()]
        + [
            step
            for fault in ("a wrong checksum", "no batch", "a control batch", "one record far ahead")
            for step in (
                produce(FAULTS[fault], f"unacknowledged: {fault}", acks=0, answered=False),
                ask("DescribeCluster", f"the connection after {fault}"),
            )
        ]
        + [end_offset()],
    ),
    Script(
        "topics, ids and partitions that do not exist",
        each="Produce",
        steps=[
            topic(),
            to_partitions(
                "a partition that does not exist",
                [(7, batch("a")), (0, batch("b")), (-1, batch("c"))],
                unordered=["responses.partition_responses"],
            ),
            ask(
                "Produce",
                "a topic that does not exist",
                acks=-1,
                timeout_ms=5_000,
                topic_data=[
                    {
                        "name": "nobody",
                        "topic_id": bytes(range(16)),
                        "partition_data": [{"index": 0, "records": batch("a")}],
                    }
                ],
            ),
            ask(
                "Produce",
                "a topic without a name",
                acks=-1,
                timeout_ms=5_000,
                topic_data=[
                    {"name": "", "topic_id": bytes(16), "partition_data": [{"index": 0, "records": batch("a")}]}
                ],
            ),
            ask(
                "Produce",
                "a name that no topic can have",
                acks=-1,
                timeout_ms=5_000,
                topic_data=[{"name": "no spaces", "partition_data": [{"index": 0, "records": batch("a")}]}],
            ),
            ask("Produce", "nothing", acks=-1, timeout_ms=5_000, topic_data=[]),
            ask(
                "Produce",
                "no partition",
                acks=-1,
                timeout_ms=5_000,
                topic_data=[{"name": "${t}", "topic_id": "${t.id}", "partition_data": []}],
            ),
            end_offset(),
        ],
    ),
    Script(
        "one partition's failure is its own",
        each="Produce",
        steps=[
            topic(partitions=4),
            to_partitions(
                "good and bad",
                [(0, batch("a")), (9, batch("b")), (1, batch("c", crc=1)), (2, batch("d")), (3, b"abc")],
                unordered=["responses.partition_responses"],
            ),
            end_offset(partition=2),
        ],
    ),
    Script(
        "other acks",
        each="Produce",
        steps=[topic(), *[produce(batch("a"), f"acks {acks}", acks=acks) for acks in (2, -2, 32_767)], end_offset()],
    ),
    Script(
        "the broker's time",
        each="Produce",
        steps=[
            topic(message_timestamp_type="LogAppendTime"),
            produce(batch("a", Rec(b"b", timestamp_delta_ms=5))),
            produce(batch("c", timestamp_ms=FAR_AHEAD_MS), "a timestamp far ahead does not matter"),
            produce(batch("d", codec="gzip"), "compressed"),
            fetch("what is stored"),
        ],
    ),
    Script(
        "a batch that says it bears the broker's time",
        [
            topic(),
            produce(batch("a", attributes=8), "in a topic with the client's time", versions=[3, 7, 13]),
            end_offset(),
            topic("l", message_timestamp_type="LogAppendTime"),
            produce(batch("a", attributes=8), "in one with the broker's", to="l", versions=[3, 7, 13]),
            end_offset("l"),
        ],
    ),
    Script(
        "timestamps at the edges",
        [
            topic(),
            *[
                produce(batch("a", timestamp_ms=stamp), f"timestamp {stamp}", versions=[3, 7, 8, 13])
                for stamp in (0, -1, -2, 1, T0_MS, FAR_AHEAD_MS, (1 << 63) - 1)
            ],
            end_offset(),
        ],
    ),
    Script(
        "limits of the topic's own on timestamps",
        [
            topic(message_timestamp_before_max_ms="1000"),
            produce(batch("a", "b"), "too old", versions=[3, 7, 8, 13]),
            produce(batch("a", timestamp_ms=-1), "without one", versions=[3, 13]),
            topic("u", message_timestamp_after_max_ms=str((1 << 63) - 1)),
            produce(batch("a", timestamp_ms=FAR_AHEAD_MS), "no limit ahead", to="u"),
            end_offset(),
            end_offset("u"),
        ],
    ),
    Script(
        "larger than the topic allows",
        each="Produce",
        steps=[
            topic(max_message_bytes="200"),
            produce(batch("x" * 200), "too large"),
            produce(batch("x" * 100), "not too large"),
            produce(joined(batch("x" * 100), batch("x" * 100)), "two batches, together too large"),
            end_offset(),
        ],
    ),
    Script(
        "compacted topics want keys",
        each="Produce",
        steps=[
            topic(cleanup_policy="compact"),
            produce(batch(KEYED, KEYED), "with keys"),
            produce(batch(KEYED, "no key", KEYED, "no key"), "some without"),
            produce(batch(Rec(b"v", b"")), "an empty key"),
            produce(batch("no key", codec="gzip"), "compressed and without"),
            end_offset(),
        ],
    ),
    Script(
        "a codec of the topic's own",
        [
            *[
                step
                for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")
                for step in (
                    topic(codec[0] + "t", compression_type=codec),
                    produce(
                        batch("a" * 30, "b" * 30), f"plain into {codec}", to=codec[0] + "t", versions=[3, 6, 7, 13]
                    ),
                    produce(
                        batch("a" * 30, "b" * 30, codec="gzip"),
                        f"gzip into {codec}",
                        to=codec[0] + "t",
                        versions=[3, 13],
                    ),
                    end_offset(codec[0] + "t"),
                )
            ]
        ],
    ),
    Script(
        "more in-sync replicas wanted than there are replicas",
        [
            topic(min_insync_replicas="2"),
            produce(batch("a"), "acks all", versions=ALL),
            produce(batch("a"), "acks 1", acks=1),
        ],
    ),
    Script(
        "transactional ids on the request",
        [
            topic(),
            produce(batch("a"), "with an id and no transaction in the batch", transactional_id="tx", versions=[3, 12]),
            produce(batch("a"), "with an empty id", transactional_id="", versions=[3, 12]),
            end_offset(),
        ],
    ),
    Script(
        "records that are garbage",
        [
            topic(),
            produce(of_garbage(50), "in a plain topic", versions=[3, 13]),
            produce(of_garbage(50, codec="gzip"), "said to be compressed, in a plain topic", versions=[3, 13]),
            topic("c", cleanup_policy="compact"),
            produce(of_garbage(50), "in a compacted topic", to="c", versions=[3, 13]),
            produce(
                of_garbage(50, codec="gzip"), "said to be compressed, in a compacted topic", to="c", versions=[3, 13]
            ),
            end_offset("c"),
        ],
    ),
    Script(
        "odd requests",
        [
            topic(),
            to_partitions("a partition twice", [(0, batch("a")), (0, batch("b", "c"))], versions=[3, 13]),
            end_offset(),
            topic("n"),
            produce(None, "null records", to="n", versions=[3, 13], patience_s=2),
            end_offset("n"),
        ],
    ),
    Script(
        "internal topics are not written by clients",
        [
            ask(
                "Produce",
                "into the offsets topic",
                versions=[3, 12],
                acks=-1,
                timeout_ms=5_000,
                topic_data=[{"name": "__consumer_offsets", "partition_data": [{"index": 0, "records": batch("a")}]}],
            )
        ],
    ),
]
