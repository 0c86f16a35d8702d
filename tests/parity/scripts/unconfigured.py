"""What a broker answers without an authorizer, tokens, quotas, SCRAM users, reassignments or elections to do."""

from __future__ import annotations

from typing import Any

from parity.asking import named
from parity.notation import ALL, Script, ask, topic

ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ONE_ACL = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def elect(label: str, topics: Any, *, kind: int = 0, **options: Any) -> Any:
    return ask(
        "ElectLeaders", label, versions=ALL, election_type=kind, topic_partitions=topics, timeout_ms=5_000, **options
    )


def of(name: str, *partitions: int) -> dict[str, Any]:
    return {"topic": name, "partitions": list(partitions)}


def quotas(label: str, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    rows = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
    return ask("DescribeClientQuotas", label, versions=ALL, components=rows, strict=strict)


SCRIPTS = [
    Script(
        "no authorizer",
        [
            ask("DescribeAcls", "all", versions=ALL, **ANY_ACL),
            ask(
                "DescribeAcls",
                "one",
                versions=ALL,
                **{**ANY_ACL, "resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": 3},
            ),
            ask("CreateAcls", "one", versions=ALL, creations=[ONE_ACL]),
            ask("CreateAcls", "two", versions=ALL, creations=[ONE_ACL, {**ONE_ACL, "resource_name": "u"}]),
            ask("CreateAcls", "none", versions=ALL, creations=[]),
            ask("DeleteAcls", "all", versions=ALL, filters=[ANY_ACL]),
            ask("DeleteAcls", "two filters", versions=ALL, filters=[ANY_ACL, {**ANY_ACL, "resource_type_filter": 2}]),
            ask("DeleteAcls", "none", versions=ALL, filters=[]),
        ],
    ),
    Script(
        "acls that can't be",
        [
            ask("DescribeAcls", "an unknown kind of resource", versions=ALL, **{**ANY_ACL, "resource_type_filter": 0}),
            ask("DescribeAcls", "an unknown operation", versions=ALL, **{**ANY_ACL, "operation": 0}),
            ask("CreateAcls", "an unknown operation", versions=ALL, creations=[{**ONE_ACL, "operation": 0}]),
            ask("DeleteAcls", "an unknown pattern", versions=ALL, filters=[{**ANY_ACL, "pattern_type_filter": 0}]),
        ],
    ),
    Script(
        "no delegation tokens",
        [
            ask(
                "CreateDelegationToken",
                versions=ALL,
                renewers=[],
                max_lifetime_ms=-1,
                owner_principal_type=None,
                owner_principal_name=None,
            ),
            ask(
                "CreateDelegationToken",
                "for somebody",
                versions=ALL,
                renewers=[{"principal_type": "User", "principal_name": "a"}],
                max_lifetime_ms=5_000,
                owner_principal_type="User",
                owner_principal_name="b",
            ),
            ask("RenewDelegationToken", versions=ALL, hmac=b"abc", renew_period_ms=-1),
            ask("ExpireDelegationToken", versions=ALL, hmac=b"abc", expiry_time_period_ms=-1),
            ask("DescribeDelegationToken", "all", versions=ALL, owners=None),
            ask(
                "DescribeDelegationToken",
                "of somebody",
                versions=ALL,
                owners=[{"principal_type": "User", "principal_name": "a"}],
            ),
            ask("DescribeDelegationToken", "of nobody", versions=ALL, owners=[]),
        ],
    ),
    Script(
        "no quotas",
        [
            quotas("all"),
            quotas("all, strictly", strict=True),
            quotas("a user", ("user", 0, "a")),
            quotas("the default user", ("user", 1, None)),
            quotas("any client id, strictly", ("client-id", 2, None), strict=True),
            quotas("an address", ("ip", 0, "127.0.0.1")),
            quotas("an address and a user", ("ip", 0, "127.0.0.1"), ("user", 0, "a")),
            quotas("a kind twice", ("user", 0, "a"), ("user", 0, "b")),
            quotas("a kind that there is not", ("shoe-size", 0, "44")),
            quotas("a kind without a name", ("", 0, "a")),
            quotas("a match that there is not", ("user", 7, "a")),
            quotas("an exact match of nothing", ("user", 0, None)),
            quotas("a default with a name", ("user", 1, "a")),
        ],
    ),
    Script(
        "no SCRAM users",
        [
            ask("DescribeUserScramCredentials", "all", users=None),
            ask("DescribeUserScramCredentials", "an empty list", users=[]),
            ask("DescribeUserScramCredentials", "two", users=named("a", "b"), unordered=["results"]),
            ask("DescribeUserScramCredentials", "one twice", users=named("a", "a", "b"), unordered=["results"]),
            ask("DescribeUserScramCredentials", "no name", users=named("")),
        ],
    ),
    Script(
        "no reassignments",
        [
            topic(),
            ask("ListPartitionReassignments", "all", topics=None),
            ask("ListPartitionReassignments", "of a topic", topics=[{"name": "${t}", "partition_indexes": [0]}]),
            ask(
                "ListPartitionReassignments",
                "of what is not there",
                topics=[{"name": "nobody", "partition_indexes": [0, 1]}, {"name": "${t}", "partition_indexes": [7]}],
            ),
            ask("ListPartitionReassignments", "of nothing", topics=[]),
            ask("ListPartitionReassignments", "no time", topics=None, timeout_ms=0),
        ],
    ),
    Script(
        "no leader to elect",
        [
            topic(partitions=2),
            elect("the preferred one", [of("${t}", 0, 1)]),
            elect("any", [of("${t}", 0)], kind=1),
            elect(
                "what is not there",
                [of("${t}", 7, -1), of("nobody", 0), of("no spaces", 0)],
                unordered=["replica_election_results", "replica_election_results.partition_result"],
            ),
            elect("no partition", [of("${t}")]),
            elect("nothing", []),
            elect("one twice", [of("${t}", 0, 0), of("${t}", 0)]),
            ask(
                "ElectLeaders",
                "a kind that there is not",
                versions=[1, 2],
                election_type=7,
                topic_partitions=[of("${t}", 0)],
                timeout_ms=5_000,
            ),
            ask("ElectLeaders", "no time", versions=ALL, topic_partitions=[of("${t}", 0)], timeout_ms=0),
        ],
    ),
    Script(
        "all leaders elected",
        fresh=True,
        steps=[topic(), elect("all, the preferred ones", None), elect("all, any", None, kind=1)],
    ),
]
