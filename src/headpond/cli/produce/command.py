"""``headpond produce``: write records from stdin to a topic, one per line.

Lines are written as they come, because stdin may never end: when a line can't be used, the ones before it are written
and counted, nothing behind it is read, and the message says both.
"""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import add_broker, describe, name_and_value, names_of, partition_number, topic_name

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("all", "1", "0")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Write records from stdin to a topic, one per line, until the end of input (Ctrl-D).",
        "echo hello | headpond produce greetings",
        "headpond produce orders --key-separator : < orders.txt",
        'echo \'{"key": "k", "value": {"n": 1}, "headers": {"from": "me"}}\' | headpond produce orders --json',
        "headpond consume orders --json | headpond produce copy-of-orders --json",
        notes="""\
--json takes an object per line with value and, optionally, key, headers (an object, or a list of key and value),
partition and timestamp (ms). A null value is a tombstone; a value that is not a string is written as JSON;
key_base64 and value_base64 hold what is not UTF-8. topic and offset, as consume prints them, are ignored.

Lines are written as they arrive. At an invalid line, or at Ctrl-C, the lines before it are written, nothing after it
is read, and the message says how many were written.""",
    )
    names_of("topics", parser.add_argument("topic", type=topic_name, metavar="TOPIC", help="the topic"))
    parser.add_argument("--json", action="store_true", help="read each line as a JSON object")
    parser.add_argument("-k", "--key-separator", metavar="TEXT", help="text between key and value, e.g. : or \\t")
    parser.add_argument(
        "--header",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="add to every record; repeatable",
    )
    parser.add_argument("--partition", type=partition_number, metavar="N", help="write all records to this partition")
    parser.add_argument(
        "--acks", choices=ACKS, default="all", help="acks required: all (default), 1 (leader) or 0 (none)"
    )
    parser.add_argument("--compression", choices=COMPRESSIONS, default="none", help="compress batches (default none)")
    parser.add_argument(
        "--create", action="store_true", help="create the topic if it does not exist, with the defaults"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary on stderr")
    add_broker(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from headpond.cli.common.connection import run_with_client
    from headpond.cli.common.failures import WrongUsage
    from headpond.cli.produce.run import produce

    if options.json and options.key_separator is not None:
        raise WrongUsage("--json has its key in the object: leave --key-separator out")
    if options.key_separator == "":
        raise WrongUsage("--key-separator can't be empty")
    return run_with_client(options, lambda client: produce(client, options))
