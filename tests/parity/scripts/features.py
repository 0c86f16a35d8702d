"""Features turned on, off and back: UpdateFeatures, what ApiVersions says of it, and transactions of every version."""

from __future__ import annotations

from typing import Any

from parity.asking_consumers import beat
from parity.asking_groups import group
from parity.asking_transactions import FEW_PARTITIONS, add, described, end, init, known_producers, producer, write
from parity.notation import Ask, Restart, Script, ask, topic

SETTINGS = {**FEW_PARTITIONS, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50"}

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def change(feature: str, level: int, kind: int = UPGRADE) -> dict[str, Any]:
    """``kind`` as later versions say it; the first has a flag instead."""
    return {
        "feature": feature,
        "max_version_level": level,
        "allow_downgrade": kind != UPGRADE,
        "upgrade_type": kind,
    }


def update(label: str, *changes: dict[str, Any], **options: Any) -> Ask:
    return ask("UpdateFeatures", label, feature_updates=list(changes), unordered=["results"], **options)


def finalized(label: str, level: int | None = None) -> Ask:
    """What clients are told; ``level``: of transactions, waited for: Kafka's broker hears of it after the answer."""

    def is_there(answer: Any) -> bool:
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        return levels.get("transaction.version", 0) == level

    return ask(
        "ApiVersions",
        label,
        client_software_name="parity",
        client_software_version="1.0",
        unordered=["supported_features", "finalized_features"],
        until=None if level is None else is_there,
    )


T, G, M = "transaction.version", "group.version", "metadata.version"

SCRIPTS = [
    Script(
        "changes that are refused",
        fresh=True,
        each="UpdateFeatures",
        steps=[
            update("none"),
            update("of nothing", change("", 1)),
            update("of an unknown feature", change("teleportation.version", 1)),
            update("too high", change(T, 3)),
            update("far too high", change(T, 32_767)),
            update("negative", change(T, -1)),
            update("what is there", change(T, 2)),
            update("what is there, as a downgrade", change(T, 2, SAFE_DOWNGRADE)),
            update("lower, as an upgrade", change(T, 1)),
            update("off, as an upgrade", change(T, 0)),
            update("one twice", change(T, 1, SAFE_DOWNGRADE), change(T, 2)),
            update("a good one and a bad one", change(T, 2), change(G, 7)),
            update("a kind that there is not", change(T, 1, 7)),
            update("no kind", change(T, 1, 0)),
            update("metadata too low", change(M, 6, UNSAFE_DOWNGRADE)),
            update("metadata too high", change(M, 31)),
            update("metadata off", change(M, 0, UNSAFE_DOWNGRADE)),
            finalized("in the end", 2),
        ],
    ),
    Script(
        "the first version knows upgrades only",
        fresh=True,
        steps=[
            update("down", change(T, 1, SAFE_DOWNGRADE), versions=[0]),
            finalized("in the end", 2),
        ],
    ),
    Script(
        "changes only tried",
        fresh=True,
        steps=[
            update("lower", change(T, 1, SAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("lower, unsafely", change(T, 1, UNSAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("off", change(T, 0, SAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("too high", change(T, 3), validate_only=True, versions=[1, 2]),
            update("metadata lower", change(M, 29, SAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("metadata lower, unsafely", change(M, 29, UNSAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("metadata as low as it goes", change(M, 7, SAFE_DOWNGRADE), validate_only=True, versions=[1, 2]),
            update("a kind that there is not, too high", change(T, 3, 7), validate_only=True, versions=[1, 2]),
            update("a kind that there is not, unknown", change("x", 3, 7), validate_only=True, versions=[1, 2]),
            update("unknown and negative", change("x", -3), validate_only=True, versions=[1, 2]),
            finalized("in the end", 2),
        ],
    ),
    Script(
        "down and up again",
        fresh=True,
        each="UpdateFeatures",
        only=[1, 2],
        steps=[
            update("transactions down", change(T, 1, SAFE_DOWNGRADE)),
            finalized("then", 1),
            update("up, as a downgrade", change(T, 2, SAFE_DOWNGRADE)),
            update("transactions off", change(T, 0, UNSAFE_DOWNGRADE)),
            finalized("when off", 0),
            topic(),
            *group(),
            update("transactions on, groups off", change(T, 2), change(G, 0, SAFE_DOWNGRADE)),
            finalized("when on", 2),
            beat("a consumer of the new protocol comes", versions=[0, 1]),
            ask("ConsumerGroupDescribe", "its group", group_ids=["${g}", ""], versions=[0, 1]),
            update("groups on", change(G, 1)),
            finalized("in the end", 2),
        ],
    ),
    Script(
        "what a restart knows",
        fresh=True,
        steps=[
            update("transactions off", change(T, 0, SAFE_DOWNGRADE)),
            finalized("before", 0),
            Restart(),
            finalized("after", 0),
        ],
    ),
    *(
        Script(
            f"transactions of version {version}",
            fresh=True,
            steps=[
                topic(),
                update("turned down", change(T, version, SAFE_DOWNGRADE)),
                finalized("seen", version),
                *producer(),
                add("begun"),
                write("written", versions=[11]),
                end("committed", versions=[4]),
                described("over", "CompleteCommit"),
                known_producers("known"),
                init("the next producer"),
                described("at rest"),
                add("begun again", 1),
                init("while it is open"),
                described("at rest again"),
                init("in a hurry", timeout_ms=300),
                add("begun in a hurry", 4),
                described("aborted", "CompleteAbort"),
                end("too late", 4, versions=[4]),
                init("after all"),
                described("in the end"),
            ],
        )
        for version in (1, 0)
    ),
]
