"""``headpond bench``: a load test of a broker, ours or any Kafka, with throughput and latency percentiles."""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import (
    add_actions,
    add_json,
    count,
    describe,
    names_of,
    partition_count,
    run_with_broker,
    size_bytes,
    topic_name,
)

_NOTES = """\
Batches are built once and sent repeatedly, so that the broker is measured and not this program; latency is the time
from sending a batch to its answer. Without --topic, a topic is created and deleted after the test, also after Ctrl-C.
Records for a compacted topic have keys, the same in each batch. MB are 1,000,000 bytes of values before compression;
with --topic, consume counts the batches as stored."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "A load test: throughput and latency percentiles of a broker, ours or any Kafka.",
        "headpond bench produce --records 1M --record-size 1000",
        "headpond bench consume",
    )
    actions = {
        "produce": ("write records as fast as the broker takes them", _configure_produce),
        "consume": ("read records as fast as the broker gives them", _configure_consume),
    }
    add_actions(parser, actions)


def _configure_produce(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write records as fast as the broker takes them.",
        "headpond bench produce",
        "headpond bench produce --record-size 100 --batch-size 16k --acks all --compression zstd",
        "headpond bench produce --rate 5k --batch-size 1 --json      # one record per request, 5,000 a second",
        notes=_NOTES,
    )
    _add_load(parser)
    parser.add_argument("--rate", type=count, metavar="N", help="maximum records per second (default no limit)")
    add_json(parser)
    run_with_broker(parser, "bench.run.bench_produce")


def _configure_consume(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Read records as fast as the broker gives them: those of --topic from the beginning, or of a topic that is "
        "created and filled first.",
        "headpond bench consume",
        "headpond bench consume --topic orders --records 100k",
        notes=_NOTES + "\nLatency is the time spent waiting for records that have not arrived yet.",
    )
    _add_load(parser)
    add_json(parser)
    run_with_broker(parser, "bench.run.bench_consume")


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=count, default=100_000, metavar="N", help="number of records (default 100k)")
    parser.add_argument(
        "--record-size", type=size_bytes, default=1_000, metavar="BYTES", help="value size in bytes (default 1000)"
    )
    parser.add_argument(
        "--batch-size", type=size_bytes, default=65_536, metavar="BYTES", help="batch size in bytes (default 64k)"
    )
    parser.add_argument(
        "--in-flight", type=count, default=2, metavar="N", help="unanswered batches per partition (default 2)"
    )
    parser.add_argument(
        "--acks",
        choices=("all", "1", "0"),
        default="all",
        help="acks required: all (default), 1 (leader) or 0 (none)",
    )
    parser.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="compress batches (default none)",
    )
    topic = parser.add_argument(
        "--topic", type=topic_name, metavar="NAME", help="use an existing topic; what is written stays there"
    )
    names_of("topics", topic)
    parser.add_argument(
        "--partitions", type=partition_count, default=4, metavar="N", help="partitions of the created topic (default 4)"
    )
