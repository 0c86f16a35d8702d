"""``headpond consume``: print the records of a topic.

Without ``--follow`` it reads what is there when it starts and ends; with it, it goes on with what comes.
"""

from __future__ import annotations

import argparse
import re

from headpond.cli.common.arguments import (
    add_json,
    count,
    describe,
    names_of,
    partition_number,
    run_with_broker,
    topic_name,
)

TIMESTAMP_MAX = (1 << 63) - 1


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print the records of a topic, one value per line. Without --follow it prints what is there (by default from\n"
        "the beginning) and ends; with --follow it prints new records (or from where you say) until Ctrl-C. Records\n"
        "of one partition are printed in order. No consumer group is used: no offsets are committed.",
        "headpond consume orders",
        "headpond consume orders --follow --show-key",
        "headpond consume orders --partition 2 --offset -10",
        "headpond consume orders --timestamp 2026-01-31T12:00:00Z --max-messages 100 --json",
        "headpond consume orders --json | headpond produce copy-of-orders --json",
        notes="--json prints what is not UTF-8 as base64, in the fields key_base64 and value_base64: nothing is lost.",
    )
    names_of("topics", parser.add_argument("topic", type=topic_name, metavar="TOPIC", help="the topic"))
    start = parser.add_argument_group("where to start").add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="start with the oldest record")
    start.add_argument(
        "--offset",
        type=offset_option,
        metavar="N",
        help="start at this offset in each partition; -N: the last N records of each; or earliest, latest",
    )
    start.add_argument(
        "--timestamp",
        type=timestamp_option,
        metavar="TIME",
        help="start with the first record at or after this time: milliseconds since 1970, or ISO 8601 (default UTC)",
    )
    parser.add_argument(
        "--partition", type=partition_number, action="append", metavar="N", help="read only this partition; repeatable"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="print new records as they arrive, until Ctrl-C or the pipe closes"
    )
    parser.add_argument("-n", "--max-messages", type=count, metavar="N", help="stop after this many records")
    parser.add_argument("--uncommitted", action="store_true", help="include records of open and aborted transactions")
    show = parser.add_argument_group("what to print")
    show.add_argument("--show-key", action="store_true", help="print the key before the value")
    show.add_argument("--show-headers", action="store_true", help="print headers as name=value,...")
    show.add_argument("--show-offset", action="store_true", help="print partition and offset, e.g. 0:42")
    show.add_argument("--show-timestamp", action="store_true", help="print the timestamp, ISO 8601 in UTC")
    show.add_argument(
        "--separator", default="\\t", metavar="TEXT", help="text between these and the value (default \\t)"
    )
    show.add_argument(
        "--raw", action="store_true", help="on a terminal, print control characters too (they may reprogram it)"
    )
    add_json(show, "print one JSON object per record, with all fields")
    run_with_broker(parser, "consume.run.consume")


def offset_option(text: str) -> int | str:
    if text in ("earliest", "latest"):
        return text
    if not re.fullmatch(r"-?\d{1,19}", text) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} should be a number, -N for the last N, earliest or latest")
    return int(text)


def timestamp_option(text: str) -> int:
    """Milliseconds since 1970, and 0 for a time before: to a broker numbers below 0 are no times, -1 is the end."""
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= TIMESTAMP_MAX:
        return int(text)
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} should be milliseconds since 1970 or a time such as 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int(moment.timestamp() * 1000))
