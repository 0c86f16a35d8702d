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
Batches are made once and sent again and again, so that what is measured is the broker and not this program; latency is
from sending a batch to its answer. Without --topic one is created for the test and deleted after it, also after
Ctrl-C. A compacted topic gets records with keys, the same in each batch. MB are 1,000,000 bytes of values, before
compression; of a topic that was there before, of its batches as they are."""


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
    parser.add_argument("--rate", type=count, metavar="N", help="at most this many records a second (no limit)")
    add_json(parser)
    run_with_broker(parser, "bench.run.bench_produce")


def _configure_consume(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Read records as fast as the broker gives them: those of --topic from the beginning, or of a topic that is "
        "created and filled first.",
        "headpond bench consume",
        "headpond bench consume --topic orders --records 100k",
        notes=_NOTES + "\nLatency is the wait for records that are not here yet.",
    )
    _add_load(parser)
    add_json(parser)
    run_with_broker(parser, "bench.run.bench_consume")


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=count, default=100_000, metavar="N", help="how many (100k)")
    parser.add_argument("--record-size", type=size_bytes, default=1_000, metavar="BYTES", help="of each value (1000)")
    parser.add_argument(
        "--batch-size", type=size_bytes, default=65_536, metavar="BYTES", help="records sent at once (64k)"
    )
    parser.add_argument(
        "--in-flight", type=count, default=2, metavar="N", help="batches on their way per partition (2)"
    )
    parser.add_argument("--acks", choices=("all", "1", "0"), default="all", help="who has to have it (all)")
    parser.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="of batches (none)"
    )
    topic = parser.add_argument(
        "--topic", type=topic_name, metavar="NAME", help="an existing topic; it keeps what is written"
    )
    names_of("topics", topic)
    parser.add_argument(
        "--partitions", type=partition_count, default=4, metavar="N", help="of the topic that is created (4)"
    )
