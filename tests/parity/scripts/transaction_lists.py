"""What is told about transactions: DescribeTransactions, ListTransactions with its filters, DescribeProducers."""

from __future__ import annotations

from typing import Any

from parity.asking import produce
from parity.asking_transactions import FEW_PARTITIONS, add, described, end, init, producer, write
from parity.notation import ALL, Ask, Script, ask, batch, name, topic

SETTINGS = FEW_PARTITIONS


def listed(label: str, **fields: Any) -> Ask:
    """By every version that has the field; others list everything, which differs from run to run."""
    versions = [2] if "transactional_id_pattern" in fields else [1, 2] if "duration_filter" in fields else ALL
    return ask(
        "ListTransactions",
        label,
        versions=versions,
        unordered=["transaction_states", "unknown_state_filters"],
        **fields,
    )


def matching(pattern: str) -> Ask:
    return listed(f"by {pattern!r}", transactional_id_pattern=pattern)


STATES = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
]

ODD_IDS = ["shop 1/eu", "größe-ÄÖ", "日本", "a\nb", "tab\there", "x{2}", "under_score.dot-dash", "☃", "\U0001d4b3"]
PATTERNS = [
    "shop 1/eu",
    "shop.*",
    r"shop\s1\/eu",
    r"shop\W\d\Weu",
    "shop",
    ".*eu",
    "gr..e-..",
    r"gr\pL+-\p{Lu}{2}",
    "(?i)GRÖSSE-äö",
    "(?i)GRÖßE-äö",
    r"[\x{e0}-\x{ff}a-z]+-[Ä-Ö]+",
    r"\p{Han}+",
    r"\p{L}+",
    r"[^\x00-\x7f]+",
    "..",
    ".",
    "日.",
    "a.b",
    "(?s)a.b",
    r"a\sb",
    r"a\nb",
    "(?m)a$\n^b",
    r"\w+\t\w+",
    r"x\{2\}",
    "x{2}",
    r"\Qx{2}\E",
    r"[[:alpha:]_]+\.[[:alpha:]]+-dash",
    r"\w+\.\w+-\w+",
    r"\bunder_score\b.*",
    "(?i)UNDER_SCORE.*",
    "(?P<n>a)\nb",
    r"\x{1D4B3}",
    r"\p{So}",
    r"\p{Greek}*",
    "[^a]",
    "",
    "(",
    "*a",
    r"\p{Nonsense}",
    r"(?=a)a.*",
    r"(a)\1",
    "a**",
    "[b-a]",
    r"\8",
    "x{1001}",
]

SCRIPTS = [
    Script(
        "transactions in every state that lasts",
        [
            topic(),
            *producer(),
            listed("at rest", producer_id_filters=["${pid}"]),
            *(
                listed(f"at rest, by {state}", producer_id_filters=["${pid}"], state_filters=[state])
                for state in STATES
            ),
            write("begun"),
            listed("open", producer_id_filters=["${pid}"], state_filters=["Ongoing"]),
            listed(
                "open, by states that it is not in", producer_id_filters=["${pid}"], state_filters=["Empty", "Dead"]
            ),
            end("ended"),
            described("over", "CompleteCommit"),
            listed("over, and committed", producer_id_filters=["${pid}"], state_filters=["CompleteCommit"]),
            listed("states in small letters", state_filters=["empty", "ONGOING", "Prepare_Commit", ""]),
            listed("one state twice", producer_id_filters=["${pid}"], state_filters=["Empty", "Empty", "no", "no"]),
            listed("by producers that are not there", producer_id_filters=[123456, -1]),
            listed("by one of two", producer_id_filters=[123456, "${pid}"]),
        ],
    ),
    Script(
        "transactions by how long they run",
        [
            topic(),
            *producer(),
            listed("one that was never begun, by 0", producer_id_filters=["${pid}"], duration_filter=0),
            listed("one that was never begun, by an hour", producer_id_filters=["${pid}"], duration_filter=3_600_000),
            add("begun"),
            listed("by an hour", producer_id_filters=["${pid}"], duration_filter=3_600_000),
            listed("by -1", producer_id_filters=["${pid}"], duration_filter=-1),
            listed("by less than -1", producer_id_filters=["${pid}"], duration_filter=-2),
            end("ended", versions=[4]),
            described("over", "CompleteCommit"),
            listed("one that is over, by an hour", producer_id_filters=["${pid}"], duration_filter=3_600_000),
        ],
    ),
    Script(
        "ids of all kinds found by patterns",
        [
            *(
                ask(
                    "FindCoordinator",
                    f"the coordinator of {each!r}",
                    key_type=1,
                    coordinator_keys=[each],
                    until=lambda answer: answer.coordinators[0].error_code == 0,
                    shown=False,
                )
                for each in ODD_IDS
            ),
            *(
                init(f"the producer of {each!r}", of=each, capture={f"p{number}": "producer_id"})
                for number, each in enumerate(ODD_IDS)
            ),
            *(matching(pattern) for pattern in PATTERNS),
            ask("DescribeTransactions", "described", transactional_ids=ODD_IDS),
        ],
        fresh=True,
    ),
    Script(
        "coordinators of transactional ids",
        each="FindCoordinator",
        only=range(1, 7),
        steps=[
            name("x"),
            ask(
                "FindCoordinator",
                "of one",
                key="${x}",
                key_type=1,
                coordinator_keys=["${x}"],
                until=lambda answer: answer.error_code == 0 and all(c.error_code == 0 for c in answer.coordinators),
            ),
            ask("FindCoordinator", "of an empty one", key="", key_type=1, coordinator_keys=[""]),
            ask("FindCoordinator", "of an unknown kind", key="${x}", key_type=7, coordinator_keys=["${x}"]),
        ],
    ),
    Script(
        "producers of partitions",
        [
            topic(partitions=2),
            *producer(),
            write("written"),
            init("another", of=None, capture={"other": "producer_id"}),
            produce(
                batch("a", producer_id="${other}", producer_epoch=0, base_sequence=0), "written by another", partition=1
            ),
            *(
                ask(
                    "DescribeProducers",
                    label,
                    versions=ALL,
                    topics=[{"name": of, "partition_indexes": list(indexes)}],
                    unordered=["topics.partitions.active_producers", "topics.partitions"],
                )
                for label, of, indexes in [
                    ("of both", "${t}", [0, 1]),
                    ("of one that is not there", "${t}", [0, 9]),
                    ("of a negative one", "${t}", [-1]),
                    ("of one twice", "${t}", [0, 0]),
                    ("of none", "${t}", []),
                    ("of a topic that is not there", "nothing", [0]),
                    ("of a topic with a wrong name", "no/thing", [0]),
                    ("of a topic without a name", "", [0]),
                ]
            ),
            ask("DescribeProducers", "of no topic", versions=ALL, topics=[]),
            end("ended"),
        ],
    ),
]
