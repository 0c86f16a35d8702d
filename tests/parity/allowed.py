"""Where Headpond may answer otherwise than Kafka: each place, what it answers there, and why.

The list is meant to stay short. A place that no longer differs fails the test that names it, so the list can't rot;
what is different on purpose is told to users in docs/differences.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parity.recording import MISSING, Difference

ANY = object()


@dataclass(frozen=True)
class Allowed:
    reason: str
    script: str
    """``family/script``, as a regular expression that matches the whole."""
    step: str = ".*"
    path: str = ".*"
    ours: Any = ANY
    """What we answer instead; a function says whether it is right."""
    kafka: Any = ANY

    def speaks_of(self, family: str, script: str) -> bool:
        return re.fullmatch(self.script, f"{family}/{script}") is not None

    def covers(self, family: str, script: str, difference: Difference) -> bool:
        return (
            self.speaks_of(family, script)
            and re.fullmatch(self.step, difference.step) is not None
            and re.fullmatch(self.path, difference.path) is not None
            and _is(self.ours, difference.ours)
            and _is(self.kafka, difference.kafka)
        )


def _is(wanted: Any, value: Any) -> bool:
    if wanted is ANY:
        return True
    return bool(wanted(value)) if isinstance(wanted, Callable) else wanted == value  # type: ignore[arg-type]


def _is_there(value: Any) -> bool:
    return bool(value != MISSING)


def _is_elr_default(value: Any) -> bool:
    return bool(isinstance(value, list) and [each["name"] for each in value] == ["min.insync.replicas"])


ORACLE_PROPERTIES = "|".join(
    name.replace(".", r"\.")
    for name in (
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "listeners",
        "log.dirs",
        "node.id",
        "offsets.topic.replication.factor",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    )
)
"""What the properties of the peer say, because one node is broker and controller and has no others."""

ALLOWED: list[Allowed] = [
    # --- not there yet: docs/protocol.md says which
    Allowed(
        "APIs that are not served are not advertised",
        "(connections|features)/.*",
        path=r"api_keys\[\d+\]",
        ours=MISSING,
    ),
    Allowed(
        "a feature is there when what it stands for works",
        "(connections|features)/.*",
        path=r"(supported|finalized)_features\[(streams|share|eligible\.leader\.replicas|kraft)\.version\]",
        ours=MISSING,
    ),
    Allowed(
        "to Kafka a restart is the end of a leader and the start of one: it raises the epoch twice, we raise it once",
        "(transaction_)?restarts/.*",
        path=r".*\.leader_epoch",
        kafka=lambda value: value in (2, 4),
        ours=lambda value: value in (1, 2),
    ),
    # --- settings
    Allowed(
        "settings of our own stand beside Kafka's",
        ".*",
        path=r".*\[headpond\.[a-z.]+\]",
        kafka=MISSING,
        ours=_is_there,
    ),
    Allowed(
        "Kafka's formatter turns eligible leader replicas on, and with them a cluster-wide min.insync.replicas of 1",
        ".*",
        path=r".*\[min\.insync\.replicas\]\.(config_source|synonyms)",
    ),
    Allowed(
        "the same, seen among the settings of all brokers",
        "configs/some settings of the broker",
        step="all brokers",
        path=r"results\[0\]\.configs",
        kafka=_is_elr_default,
        ours=MISSING,
    ),
    Allowed(
        "the peer's own addresses, folder and role; with one node, its internal topics have one replica",
        "configs/every setting of the broker",
        path=rf"results\[0\]\.configs\[({ORACLE_PROPERTIES})\]\.(value|config_source|synonyms.*)",
    ),
    Allowed(
        "listeners do not change while the broker runs, so they are shown as read-only",
        "configs/every setting of the broker",
        path=r".*\[(listeners|listener\.security\.protocol\.map)\]\.read_only",
        kafka=MISSING,
        ours=True,
    ),
    Allowed(
        "the default data folder is headpond-data",
        "configs/every setting of the broker",
        path=r".*\[log\.dir\]\.(value|synonyms\[log\.dir\]\.value)",
        kafka="/tmp/kafka-logs",
        ours="headpond-data",
    ),
    Allowed(
        "which levels are logged is a matter of the process's logging set-up",
        "configs/loggers that can't be described",
        step="the root logger",
        path=r".*\[root\]\.value",
        ours="WARN",
    ),
    # --- what docs/differences.md tells
    Allowed(
        "Kafka's snapshot holds the last batch of a producer; we find the others at the end of the log",
        "restarts/producers",
        step="an older one",
        path=r"responses\[0\]\.partition_responses\[0\]\.(error_code|base_offset|log_append_time_ms)",
        kafka=lambda value: value in (45, -1, MISSING),
        ours=lambda value: value in (MISSING, "${a moment of this run}"),
    ),
    Allowed(
        "Kafka walks the records of every batch; we look where a promise needs it",
        "produce/records that are garbage",
        step=".*in a plain topic",
        path=r"responses\[.*\]\.partition_responses\[0\]\..*",
    ),
    Allowed(
        "where we do look, garbage is an invalid record, compressed or not",
        "produce/records that are garbage",
        step="in a compacted topic",
        path=r"responses\[.*\]\.partition_responses\[0\]\.error_code",
        kafka=-1,
        ours=87,
    ),
    Allowed(
        "a Produce that names a partition twice appends both batches; Kafka drops all but the last without a word",
        "produce/odd requests",
        step="a partition twice|the end of the log",
        path=r"responses\[.*\]\.partition_responses|topics\[.*\]\.partitions\[0\]\.offset",
        kafka=lambda value: value == 4 or len(value) == 1,
        ours=lambda value: value == 6 or len(value) == 2,
    ),
    Allowed(
        "Kafka 4.3.1 never answers a Produce whose records are null",
        "produce/odd requests",
        step="null records",
        path="no answer|responses",
        kafka=lambda value: value in ("at all", MISSING),
        ours=lambda value: value == MISSING or value[0]["partition_responses"][0]["error_code"] == 87,
    ),
    Allowed(
        "an unknown operation is a request that makes no sense, not a failure of the server",
        "alter_configs/a topic's settings changed one by one",
        step="an operation that there is not",
        path=r"responses\[0\]\.error_(code|message)",
        kafka=lambda value: value in (-1, None),
        ours=lambda value: value in (42, "Unknown operations type 9"),
    ),
    Allowed(
        "Kafka 4.3.1 never answers an AlterConfigs that names a resource twice",
        "alter_configs/several at once",
        step="one twice, replaced",
        path="no answer|responses",
        kafka=lambda value: value in ("at all", MISSING),
        ours=lambda value: value == MISSING or [each["error_code"] for each in value] == [42, 42],
    ),
    Allowed(
        "too many partitions are the same error in CreatePartitions as in CreateTopics",
        "topics/partitions added",
        step="far too many, only checked",
        path=r"results\[.*\]\.error_(code|message)",
        kafka=lambda value: value in (-1, MISSING),
        ours=lambda value: value in (44, "Excessively large number of partitions per request."),
    ),
    Allowed(
        "an empty name is a wrong name, not a failure of the server",
        "metadata/partitions of topics described",
        step="the name ''",
        path=r"topics\[0\]\.(error_code|topic_authorized_operations)",
        kafka=lambda value: value in (-1, MISSING),
        ours=lambda value: value in (17, 3576),
    ),
    Allowed(
        "an OffsetFetch with an epoch and no member is of a member that is not there, not a failure of the server",
        "consumer_groups/offsets of a consumer group",
        step="fetched by an epoch alone",
        path=r"groups\[0\]\.error_code",
        kafka=-1,
        ours=25,
    ),
    Allowed(
        "of what a member that is gone held, the others are told also where all of them speak the classic protocol",
        "migration_upgrade/(a new member comes to a classic group|a classic member comes to a consumer group)"
        "|migration_upgrade/the last new member is put out"
        "|migration_restarts/a consumer group that is too large to be a classic group",
        step="[kl]'s heartbeat when m has gone",
        path="error_code",
        kafka=MISSING,
        ours=27,
    ),
    Allowed(
        "a consumer group that has become a classic one is rebalanced, whoever ended it and also after a restart",
        "migration_downgrade/the last new member, an instance, comes back the old way"
        "|migration_restarts/a mixed group that may become what it likes, then only one, then only the other",
        step="when i has come the (old way|new way again), the old way"
        "|when it has changed and was restarted, the old way"
        "|[ki]'s heartbeat( under the old id)?|i syncs",
        path=r"error_code|protocol_(type|name)|assignment"
        r"|groups\[0\]\.(group_state|protocol_data|members\[\d\]\.member_metadata)",
        ours=lambda value: value in (27, "PreparingRebalance", MISSING),
    ),
    Allowed(
        "what a classic member owned when it joined last is its own until it gives that up: Kafka gives it to another",
        "migration_restarts/a mixed group that may become what it likes, then only one, then only the other",
        step="m comes while it may change|when it has changed back( and was restarted)?, the new way",
        path=r"assignment\.topic_partitions"
        r"|groups\[0\]\.members\[0\]\.assignment\.topic_partitions\[0\]\.partitions|groups\[0\]\.members\[1\]\.assignment",
        ours=lambda value: value in (MISSING, [0, 1]),
    ),
    Allowed(
        "a batch that is not valid is refused for that, before its transaction's coordinator is asked",
        "transaction_epochs/producers that are not the one",
        step="a producer of no epoch",
        path=r"responses\[.*\]\.partition_responses\[0\]\.(error_code|log_start_offset)",
        kafka=lambda value: value in (47, MISSING),
        ours=lambda value: value in (87, 0),
    ),
    Allowed(
        "Kafka 4.3.1 never answers an AddPartitionsToTxn of a broker that names no transaction",
        "transaction_ends/transactions named by brokers",
        step="nobody",
        path="no answer",
        kafka="at all",
        ours=MISSING,
    ),
    Allowed(
        "Kafka 4.3.1 never answers a marker that names a partition twice",
        "transaction_ends/markers of a coordinator",
        step="on a partition twice",
        path="no answer|markers",
        kafka=lambda value: value in ("at all", MISSING),
        ours=lambda value: value == MISSING or value[0]["topics"][0]["partitions"] == [{"partition_index": 1}],
    ),
]


def sift(family: str, script: str, found: Sequence[Difference]) -> tuple[list[Difference], list[Allowed]]:
    """(what is not allowed, the allowances that were used)."""
    refused, used = [], []
    for difference in found:
        allowance = next((each for each in ALLOWED if each.covers(family, script, difference)), None)
        if allowance is None:
            refused.append(difference)
        else:
            used.append(allowance)
    return refused, used
