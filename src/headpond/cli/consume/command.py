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
        "Print the records of a topic, values one per line. Without --follow it prints what is there (from the\n"
        "beginning, if nothing else is said) and ends; with --follow it prints what comes from now on (or from where\n"
        "you say) until Ctrl-C. Records of one partition come in their order. No consumer group is involved:\n"
        "nothing is remembered.",
        "headpond consume orders",
        "headpond consume orders --follow --show-key",
        "headpond consume orders --partition 2 --offset -10",
        "headpond consume orders --timestamp 2026-01-31T12:00:00Z --max-messages 100 --json",
        "headpond consume orders --json | headpond produce copy-of-orders --json",
        notes="--json prints what is no UTF-8 as base64, in fields key_base64 and value_base64: nothing is lost.",
    )
    names_of("topics", parser.add_argument("topic", type=topic_name, metavar="TOPIC", help="the topic"))
    start = parser.add_argument_group("where to start").add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="with the oldest record")
    start.add_argument(
        "--offset",
        type=offset_option,
        metavar="N",
        help="with this offset of each partition; -N is the last N records of each; earliest, latest",
    )
    start.add_argument(
        "--timestamp",
        type=timestamp_option,
        metavar="TIME",
        help="with the first record at or after this time: milliseconds since 1970, or ISO 8601 (UTC if no zone)",
    )
    parser.add_argument(
        "--partition", type=partition_number, action="append", metavar="N", help="only this partition; repeat it"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C or until nobody reads it"
    )
    parser.add_argument("-n", "--max-messages", type=count, metavar="N", help="end after this many records")
    parser.add_argument("--uncommitted", action="store_true", help="also records of open and aborted transactions")
    show = parser.add_argument_group("what to print")
    show.add_argument("--show-key", action="store_true", help="the key in front of the value")
    show.add_argument("--show-headers", action="store_true", help="headers as name=value,...")
    show.add_argument("--show-offset", action="store_true", help="partition and offset, as 0:42")
    show.add_argument("--show-timestamp", action="store_true", help="the timestamp, as ISO 8601 in UTC")
    show.add_argument("--separator", default="\\t", metavar="TEXT", help="between these and the value (\\t)")
    show.add_argument(
        "--raw", action="store_true", help="on a terminal, print control characters too (they may reprogram it)"
    )
    add_json(show, "one JSON object per line, with everything")
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
