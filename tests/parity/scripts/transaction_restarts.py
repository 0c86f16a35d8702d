"""What a restart leaves of transactions: their states, their partitions, what is pending, and who may go on."""

from __future__ import annotations

from parity.asking import LATEST, fetch, list_offsets
from parity.asking_groups import NOT_YET, group, offsets
from parity.asking_transactions import (
    FEW_PARTITIONS,
    commit,
    described,
    end,
    init,
    known_producers,
    producer,
    write,
)
from parity.notation import Ask, Restart, Script, Step, ask, topic

SETTINGS = FEW_PARTITIONS


def settled() -> list[Step]:
    """The coordinators are there again, and the partition has its leader."""
    again: Ask = ask(
        "DescribeTransactions",
        "its coordinator is there again",
        transactional_ids=["${x}"],
        until=lambda answer: answer.transaction_states[0].error_code not in NOT_YET,
        shown=False,
    )
    leads = list_offsets(
        LATEST,
        label="it leads again",
        until=lambda answer: not answer.topics[0].partitions[0].error_code,
        shown=False,
    )
    return [again, leads]


SCRIPTS = [
    Script(
        "an open transaction",
        fresh=True,
        steps=[
            topic(),
            *group(),
            *producer(),
            write("begun"),
            commit("offsets too"),
            Restart(),
            *settled(),
            described("still open"),
            known_producers("known"),
            list_offsets(LATEST, label="what is certain", isolation_level=1),
            offsets(
                "what is certain of offsets",
                require_stable=True,
                until=lambda answer: answer.groups[0].error_code not in NOT_YET,
            ),
            write("continued", first=2),
            end("committed"),
            described("over", "CompleteCommit"),
            offsets("there", require_stable=True),
            list_offsets(LATEST, label="what is certain then", isolation_level=1),
        ],
    ),
    Script(
        "a transaction that had ended",
        fresh=True,
        steps=[
            topic(),
            *producer(),
            write("begun"),
            end("committed"),
            described("over", "CompleteCommit"),
            Restart(),
            *settled(),
            described("still over"),
            fetch("read", isolation_level=1),
            end("committed again"),
            end("aborted after that", committed=False),
            end("committed with the next epoch", 1),
            write("with the epoch before", first=2),
            write("the next one", 1),
            end("aborted", 1, committed=False),
            described("over again", "CompleteAbort"),
        ],
    ),
    Script(
        "a producer that comes back",
        fresh=True,
        steps=[
            topic(),
            *producer(),
            init("another epoch", producer_id="${pid}", producer_epoch=0),
            Restart(),
            *settled(),
            described("at rest"),
            init("with the epoch before", producer_id="${pid}", producer_epoch=0),
            init("with what it has", producer_id="${pid}", producer_epoch=1),
            init("anybody"),
            write("begun", 3),
            Restart(),
            *settled(),
            init("the next"),
            described("in the end"),
            list_offsets(LATEST, label="what is certain", isolation_level=1),
        ],
    ),
]
