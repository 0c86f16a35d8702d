"""DescribeConfigs and ListConfigResources: every setting of every kind of resource, its type, default and synonyms."""

from __future__ import annotations

from typing import Any

from parity.asking import creatable, named, settings
from parity.notation import ALL, Script, ask, topic

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def describe(
    label: str, kind: int, name: str, keys: list[str] | None = None, *, synonyms: bool = True, **options: Any
) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    options.setdefault("unordered", ["results.configs"])
    return ask("DescribeConfigs", label, resources=[resource], include_synonyms=synonyms, **options)


SCRIPTS = [
    Script(
        "every setting of a topic",
        [
            topic(),
            describe("with synonyms and documentation", TOPIC, "${t}", include_documentation=True, versions=ALL),
            describe("without", TOPIC, "${t}", synonyms=False),
            describe("some", TOPIC, "${t}", ["retention.ms", "no.such.setting", "cleanup.policy"]),
            describe("an empty list", TOPIC, "${t}", [], synonyms=False),
            describe("only unknown ones", TOPIC, "${t}", ["no.such.setting"]),
        ],
    ),
    Script(
        "settings as they were written",
        [
            topic("seed"),
            ask(
                "CreateTopics",
                topics=[
                    creatable(
                        "odd-${seed}",
                        configs=settings(
                            {
                                "retention.ms": " 5 ",
                                "cleanup.policy": "delete,delete",
                                "unclean.leader.election.enable": "TRUE",
                                "min.cleanable.dirty.ratio": "0.50",
                                "compression.type": "ZSTD",
                            }
                        ),
                    )
                ],
            ),
            ask(
                "CreateTopics",
                topics=[
                    creatable(
                        "odd-${seed}",
                        configs=settings(
                            {
                                "retention.ms": " 5 ",
                                "cleanup.policy": "delete,delete",
                                "unclean.leader.election.enable": "TRUE",
                                "min.cleanable.dirty.ratio": "0.50",
                            }
                        ),
                    )
                ],
            ),
            ask(
                "Metadata",
                "it is there",
                topics=named("odd-${seed}"),
                until=lambda answer: answer.topics[0].error_code == 0,
            ),
            describe(
                "described",
                TOPIC,
                "odd-${seed}",
                ["retention.ms", "cleanup.policy", "unclean.leader.election.enable", "min.cleanable.dirty.ratio"],
                until=lambda answer: answer.results[0].error_code == 0,
            ),
        ],
    ),
    Script(
        "topics that can't be described",
        [
            *[describe(f"the topic {name!r}", TOPIC, name, versions=ALL) for name in ("nobody", "no spaces", "")],
        ],
    ),
    Script(
        "every setting of the broker",
        [describe("with synonyms and documentation", BROKER, "1", include_documentation=True, versions=[1, 4])],
    ),
    Script(
        "some settings of the broker",
        [
            describe("three", BROKER, "1", ["num.io.threads", "log.retention.ms", "log.retention.hours"], versions=ALL),
            describe("all brokers", BROKER, "", versions=ALL),
            describe("all brokers, one setting", BROKER, "", ["log.retention.ms"], versions=ALL),
            *[
                describe(f"the broker {name!r}", BROKER, name, versions=ALL)
                for name in ("2", "-1", "x", "1x", "99999999999")
            ],
        ],
    ),
    Script(
        "loggers that can't be described",
        [
            *[describe(f"the broker {name!r}", LOGGER, name, ["root"], versions=ALL) for name in ("", "2", "x")],
            describe("the root logger", LOGGER, "1", ["root"], versions=ALL, include_documentation=True),
            describe("one that is not there", LOGGER, "1", ["no.such.logger"], versions=ALL),
        ],
    ),
    Script(
        "client metrics",
        [
            describe("a subscription that is not there", METRICS, "nobody", versions=ALL, include_documentation=True),
            describe("no name", METRICS, "", versions=ALL),
            describe("one setting", METRICS, "nobody", ["interval.ms"], versions=ALL),
        ],
    ),
    Script(
        "groups",
        [
            describe("a group that is not there", GROUP, "nobody", versions=ALL, include_documentation=True),
            describe("no name", GROUP, "", versions=ALL),
            describe("one setting", GROUP, "nobody", ["consumer.session.timeout.ms"], versions=ALL),
        ],
    ),
    Script(
        "kinds that there are not",
        [describe(f"kind {kind}", kind, "x", versions=ALL) for kind in (0, 1, 3, 5, 64, 127, -1)],
    ),
    Script(
        "several at once",
        [
            topic(),
            ask(
                "DescribeConfigs",
                "good and bad",
                versions=ALL,
                resources=[
                    {"resource_type": kind, "resource_name": name, "configuration_keys": ["retention.ms"]}
                    for kind, name in [(TOPIC, "nobody"), (TOPIC, "${t}"), (BROKER, "7"), (TOPIC, "${t}")]
                ],
            ),
            ask("DescribeConfigs", "nothing", versions=ALL, resources=[]),
        ],
    ),
    Script(
        "resources listed",
        fresh=True,
        steps=[
            ask("ListConfigResources", "all", versions=ALL, unordered=["config_resources"]),
            *[
                ask(
                    "ListConfigResources",
                    f"kinds {kinds}",
                    versions=[1],
                    resource_types=kinds,
                    unordered=["config_resources"],
                )
                for kinds in (
                    [TOPIC],
                    [BROKER],
                    [LOGGER],
                    [METRICS],
                    [GROUP],
                    [TOPIC, BROKER],
                    [0],
                    [1],
                    [3],
                    [64],
                    [TOPIC, 0],
                    [BROKER, BROKER],
                )
            ],
            ask(
                "IncrementalAlterConfigs",
                "settings for a group and a subscription",
                resources=[
                    {
                        "resource_type": GROUP,
                        "resource_name": "g",
                        "configs": [{"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "50000"}],
                    },
                    {
                        "resource_type": METRICS,
                        "resource_name": "m",
                        "configs": [{"name": "interval.ms", "config_operation": 0, "value": "5000"}],
                    },
                ],
                unordered=["responses"],
            ),
            describe(
                "the group",
                GROUP,
                "g",
                ["consumer.session.timeout.ms"],
                until=lambda answer: answer.results[0].configs[0].config_source != 5,
            ),
            describe(
                "the subscription",
                METRICS,
                "m",
                until=lambda answer: any(each.value == "5000" for each in answer.results[0].configs),
            ),
            ask("ListConfigResources", "all, then", versions=ALL, unordered=["config_resources"]),
            ask(
                "IncrementalAlterConfigs",
                "taken back",
                resources=[
                    {
                        "resource_type": GROUP,
                        "resource_name": "g",
                        "configs": [{"name": "consumer.session.timeout.ms", "config_operation": 1}],
                    },
                    {
                        "resource_type": METRICS,
                        "resource_name": "m",
                        "configs": [{"name": "interval.ms", "config_operation": 1}],
                    },
                ],
                unordered=["responses"],
            ),
            ask(
                "ListConfigResources",
                "all, in the end",
                until=lambda answer: len(answer.config_resources) == 2,
                unordered=["config_resources"],
            ),
        ],
    ),
]
