"""AlterConfigs and IncrementalAlterConfigs: what changes, what is refused, and what is described afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parity.asking import settings
from parity.notation import Script, ask, topic

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def alter(label: str, kind: int, name: str, pairs: dict[str, str | None], **options: Any) -> Any:
    return ask(
        "AlterConfigs",
        label,
        resources=[{"resource_type": kind, "resource_name": name, "configs": settings(pairs)}],
        **options,
    )


def change(label: str, kind: int, name: str, *operations: tuple[str, int, str | None], **options: Any) -> Any:
    rows = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in operations]
    return ask(
        "IncrementalAlterConfigs",
        label,
        resources=[{"resource_type": kind, "resource_name": name, "configs": rows}],
        **options,
    )


def described(label: str, kind: int, name: str, want: dict[str, str], more: Sequence[str] = ()) -> Any:
    """DescribeConfigs until it says so: Kafka answers a change before its own broker has seen it."""

    def seen(answer: Any) -> bool:
        values = {each.name: each.value for each in answer.results[0].configs}
        return all(values.get(key) == value for key, value in want.items())

    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": [*want, *more]}
    return ask(
        "DescribeConfigs", label, resources=[resource], include_synonyms=True, until=seen, unordered=["results.configs"]
    )


BAD_VALUES = [
    ("retention.ms", "abc"),
    ("retention.ms", "-2"),
    ("retention.ms", None),
    ("cleanup.policy", "shred"),
    ("no.such.setting", "1"),
    ("segment.bytes", "1"),
    ("min.insync.replicas", "0"),
    ("preallocate", "maybe"),
    ("compression.type", "zip"),
    ("", "1"),
    ("max.message.bytes", "-1"),
]

SCRIPTS = [
    Script(
        "a topic's settings replaced",
        each="AlterConfigs",
        steps=[
            topic(max_message_bytes="5000"),
            alter("only checked", TOPIC, "${t}", {"retention.ms": "7"}, validate_only=True),
            described("as before", TOPIC, "${t}", {"retention.ms": "-1", "max.message.bytes": "5000"}),
            alter("two settings", TOPIC, "${t}", {"retention.ms": "1000", "segment.ms": "2000"}),
            described(
                "the third is gone",
                TOPIC,
                "${t}",
                {"retention.ms": "1000", "segment.ms": "2000", "max.message.bytes": "1048588"},
            ),
            alter("none", TOPIC, "${t}", {}),
            described("all defaults", TOPIC, "${t}", {"retention.ms": "604800000", "segment.ms": "604800000"}),
            *[alter(f"{name}={value}", TOPIC, "${t}", {name: value}) for name, value in BAD_VALUES],
            alter("a topic that is not there", TOPIC, "nobody", {"retention.ms": "1"}),
            alter("an impossible name", TOPIC, "no spaces", {"retention.ms": "1"}),
            alter("no name", TOPIC, "", {"retention.ms": "1"}),
            alter("a setting that can't be, of a topic that is not there", TOPIC, "nobody", {"retention.ms": "abc"}),
        ],
    ),
    Script(
        "a topic's settings changed one by one",
        each="IncrementalAlterConfigs",
        steps=[
            topic(max_message_bytes="5000"),
            change("only checked", TOPIC, "${t}", ("retention.ms", SET, "7"), validate_only=True),
            change("set two", TOPIC, "${t}", ("retention.ms", SET, "1000"), ("cleanup.policy", SET, "compact")),
            described(
                "both",
                TOPIC,
                "${t}",
                {"retention.ms": "1000", "cleanup.policy": "compact", "max.message.bytes": "5000"},
            ),
            change("append", TOPIC, "${t}", ("cleanup.policy", APPEND, "delete")),
            described("appended", TOPIC, "${t}", {"cleanup.policy": "compact,delete"}),
            change("append what is there", TOPIC, "${t}", ("cleanup.policy", APPEND, "delete")),
            change("subtract", TOPIC, "${t}", ("cleanup.policy", SUBTRACT, "compact")),
            described("subtracted", TOPIC, "${t}", {"cleanup.policy": "delete"}),
            change("subtract what is not there", TOPIC, "${t}", ("cleanup.policy", SUBTRACT, "compact")),
            change(
                "delete",
                TOPIC,
                "${t}",
                ("cleanup.policy", DELETE, None),
                ("retention.ms", DELETE, "ignored"),
                ("segment.ms", DELETE, None),
            ),
            described("deleted", TOPIC, "${t}", {"cleanup.policy": "delete", "retention.ms": "604800000"}),
            change("append to what is a default", TOPIC, "${t}", ("cleanup.policy", APPEND, "compact")),
            described("appended to the default", TOPIC, "${t}", {"cleanup.policy": "delete,compact"}),
            change("nothing", TOPIC, "${t}"),
            *[change(f"{name}={value}", TOPIC, "${t}", (name, SET, value)) for name, value in BAD_VALUES],
            change("append to a number", TOPIC, "${t}", ("retention.ms", APPEND, "1")),
            change("subtract from a number", TOPIC, "${t}", ("retention.ms", SUBTRACT, "1")),
            change("append to what there is not", TOPIC, "${t}", ("no.such.setting", APPEND, "1")),
            change("append null", TOPIC, "${t}", ("cleanup.policy", APPEND, None)),
            change("subtract everything", TOPIC, "${t}", ("cleanup.policy", SUBTRACT, "delete,compact")),
            change("delete what there is not", TOPIC, "${t}", ("no.such.setting", DELETE, None)),
            change("a setting twice", TOPIC, "${t}", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            change("one bad one spoils all", TOPIC, "${t}", ("retention.ms", SET, "1"), ("segment.ms", SET, "abc")),
            change("an operation that there is not", TOPIC, "${t}", ("retention.ms", 9, "1")),
            change("a topic that is not there", TOPIC, "nobody", ("retention.ms", SET, "1")),
            change("an impossible name", TOPIC, "no spaces", ("retention.ms", SET, "1")),
            change("no name", TOPIC, "", ("retention.ms", SET, "1")),
        ],
    ),
    Script(
        "the broker's settings changed",
        fresh=True,
        steps=[
            change("this broker", BROKER, "1", ("log.retention.ms", SET, "100000")),
            described("this broker's", BROKER, "1", {"log.retention.ms": "100000"}),
            change(
                "all brokers", BROKER, "", ("log.segment.bytes", SET, "2000000"), ("log.retention.ms", SET, "200000")
            ),
            described("all brokers'", BROKER, "", {"log.segment.bytes": "2000000", "log.retention.ms": "200000"}),
            described(
                "this broker's, of both", BROKER, "1", {"log.segment.bytes": "2000000", "log.retention.ms": "100000"}
            ),
            topic(),
            described(
                "what a topic inherits",
                TOPIC,
                "${t}",
                {"segment.bytes": "2000000"},
                ["retention.ms", "segment.ms", "max.message.bytes"],
            ),
            ask(
                "CreateTopics",
                "what a new topic inherits",
                topics=[{"name": "new-${t}", "num_partitions": 1, "replication_factor": 1}],
            ),
            change("this broker's taken back", BROKER, "1", ("log.retention.ms", DELETE, None)),
            described("all brokers' is left", BROKER, "1", {"log.retention.ms": "200000"}),
            alter("all brokers' replaced", BROKER, "", {"log.cleaner.threads": "2", "min.insync.replicas": "1"}),
            described("only that is left", BROKER, "", {"log.cleaner.threads": "2"}),
            alter("all brokers' taken back", BROKER, "", {"min.insync.replicas": "1"}),
        ],
    ),
    Script(
        "settings that the broker won't change",
        [
            change(f"{name}={value}", BROKER, broker, (name, SET, value))
            for broker in ("1", "")
            for name, value in [
                ("node.id", "2"),
                ("log.dirs", "/x"),
                ("no.such.setting", "1"),
                ("log.retention.ms", "abc"),
                ("log.segment.bytes", "1"),
                ("num.io.threads", "0"),
                ("num.io.threads", "1000"),
                ("retention.ms", "1"),
                ("log.cleanup.policy", "shred"),
                ("advertised.listeners", "PLAINTEXT://x:1"),
                ("max.connections.per.ip", "5"),
                ("compression.type", "zip"),
                ("unclean.leader.election.enable", "maybe"),
                ("log.flush.interval.messages", "0"),
                ("num.io.threads", "3"),
                ("num.network.threads", "7"),
                ("background.threads", "100"),
                ("num.replica.fetchers", "9"),
                ("num.recovery.threads.per.data.dir", "9"),
                ("log.cleaner.threads", "3"),
            ]
        ]
        + [
            change(f"the broker {broker!r}", BROKER, broker, ("log.retention.ms", SET, "1"))
            for broker in ("2", "x", "-1")
        ]
        + [
            alter(f"the broker {broker!r}, replaced", BROKER, broker, {"log.retention.ms": "1"})
            for broker in ("2", "x", "-1")
        ],
    ),
    Script(
        "loggers",
        [
            change("a level that there is not", LOGGER, "1", ("root", SET, "LOUD")),
            change("a logger that there is not", LOGGER, "1", ("no.such.logger", SET, "INFO")),
            change("the root logger removed", LOGGER, "1", ("root", DELETE, None)),
            change("appended", LOGGER, "1", ("root", APPEND, "INFO")),
            change("subtracted", LOGGER, "1", ("root", SUBTRACT, "INFO")),
            change("another broker", LOGGER, "2", ("root", SET, "INFO")),
            change("no number", LOGGER, "x", ("root", SET, "INFO")),
            change("no name", LOGGER, "", ("root", SET, "INFO")),
            change("null", LOGGER, "1", ("root", SET, None)),
            alter("replaced", LOGGER, "1", {"root": "INFO"}),
        ],
    ),
    Script(
        "client metrics and groups",
        each="IncrementalAlterConfigs",
        steps=[
            *[
                change(f"metrics {name}={value}", METRICS, "m", (name, SET, value), validate_only=True)
                for name, value in [
                    ("interval.ms", "5000"),
                    ("interval.ms", "5"),
                    ("interval.ms", "99999999"),
                    ("interval.ms", "x"),
                    ("metrics", "org.apache."),
                    ("metrics", ""),
                    ("metrics", "*"),
                    ("match", "client_id=x"),
                    ("match", "client_id"),
                    ("match", "nothing=x"),
                    ("match", "client_id=["),
                    ("no.such.setting", "1"),
                ]
            ],
            change("metrics without a name", METRICS, "", ("interval.ms", SET, "5000")),
            *[
                change(f"group {name}={value}", GROUP, "g", (name, SET, value), validate_only=True)
                for name, value in [
                    ("consumer.session.timeout.ms", "50000"),
                    ("consumer.session.timeout.ms", "1"),
                    ("consumer.session.timeout.ms", "x"),
                    ("consumer.heartbeat.interval.ms", "5000"),
                    ("consumer.heartbeat.interval.ms", "60000"),
                    ("share.auto.offset.reset", "earliest"),
                    ("share.auto.offset.reset", "never"),
                    ("share.auto.offset.reset", "by_duration:PT1H"),
                    ("share.isolation.level", "read_committed"),
                    ("share.isolation.level", "x"),
                    ("share.record.lock.duration.ms", "30000"),
                    ("share.record.lock.duration.ms", "1"),
                    ("streams.num.standby.replicas", "1"),
                    ("streams.num.standby.replicas", "99"),
                    ("no.such.setting", "1"),
                ]
            ],
            change("a group without a name", GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
        ],
    ),
    Script(
        "kinds that there are not",
        [change(f"kind {kind}", kind, "x", ("retention.ms", SET, "1")) for kind in (0, 1, 3, 64, -1)]
        + [alter(f"kind {kind}, replaced", kind, "x", {"retention.ms": "1"}) for kind in (0, 1, 3, 64, -1)],
    ),
    Script(
        "several at once",
        [
            topic(),
            topic("u"),
            ask(
                "IncrementalAlterConfigs",
                "good and bad",
                unordered=["responses"],
                resources=[
                    {
                        "resource_type": TOPIC,
                        "resource_name": name,
                        "configs": [{"name": "retention.ms", "value": "1000"}],
                    }
                    for name in ("${t}", "nobody", "${u}")
                ],
            ),
            described("the good", TOPIC, "${u}", {"retention.ms": "1000"}),
            ask(
                "IncrementalAlterConfigs",
                "one twice",
                unordered=["responses"],
                resources=[
                    {
                        "resource_type": TOPIC,
                        "resource_name": name,
                        "configs": [{"name": "retention.ms", "value": value}],
                    }
                    for name, value in (("${t}", "1"), ("${u}", "5000"), ("${t}", "2"))
                ],
            ),
            described("the other", TOPIC, "${u}", {"retention.ms": "5000"}),
            ask("IncrementalAlterConfigs", "nothing", resources=[]),
            ask("AlterConfigs", "nothing, replaced", resources=[]),
            ask(
                "AlterConfigs",
                "good and bad, replaced",
                unordered=["responses"],
                resources=[
                    {
                        "resource_type": TOPIC,
                        "resource_name": name,
                        "configs": [{"name": "retention.ms", "value": "1000"}],
                    }
                    for name in ("${t}", "nobody", "${u}")
                ],
            ),
            ask(
                "AlterConfigs",
                "one twice, replaced",
                patience_s=2,
                resources=[
                    {
                        "resource_type": TOPIC,
                        "resource_name": "${t}",
                        "configs": [{"name": "retention.ms", "value": value}],
                    }
                    for value in "12"
                ],
            ),
        ],
    ),
]
