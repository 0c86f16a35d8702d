"""What idempotence and transactions cost a producer: the same bulk load without them, with one, with both."""

from __future__ import annotations

from ..harness import Bench
from ..measure import CPU_PER_GB, MB_PER_S, Bar, Sample, Samples, Scenario
from .throughput import BIG_BATCHES, produce_once

TRANSACTION_S = 1.0
ALL = BIG_BATCHES | {"acks": "all"}
IDEMPOTENT = ALL | {"enable.idempotence": "true"}
ALIKE = "plain, acks=all, 5 in flight"
# What is measured is the way of producing; each is its own row. The bars compare like with like: idempotence asks for
# acks=all and at most five requests in flight, which is the Java producer's default without it too. librdkafka's
# default then is any number: the rows above show what that is worth.
LOADS: dict[str, tuple[dict[str, str], float]] = {
    "plain": (BIG_BATCHES, 0),
    "plain, acks=all": (ALL, 0),
    ALIKE: (ALL | {"max.in.flight.requests.per.connection": "5"}, 0),
    "idempotent": (IDEMPOTENT, 0),
    "transactional": (IDEMPOTENT | {"transactional.id": "bench"}, TRANSACTION_S),
}


def _produce(bench: Bench) -> Samples:
    names = bench.servers("penstock")
    topic = bench.new_topic(names)
    if not names:
        return {}
    server = bench.server("penstock")

    def one_run(load: str) -> Sample:
        client, transaction_s = LOADS[load]
        return produce_once(
            server, topic, bench.plan.run_s, record_bytes=1000, client=client, transaction_s=transaction_s
        )

    bench.warm_up(names, lambda _, seconds: produce_once(server, topic, seconds, record_bytes=1000, client=ALL))
    return bench.in_turns(list(LOADS), one_run)


def _bar(subject: str) -> Bar:
    text = f"{subject}: at least 0.9x the MB/s of plain produce with the same acks and requests in flight"
    return Bar(text, MB_PER_S, ((ALIKE, 0.9),), subject=subject)


SCENARIOS = (
    Scenario(
        "exactly-once-produce",
        "idempotent and transactional produce, 1 KB records, 1 MB batches",
        "one librdkafka producer, 4 partitions, linger 5 ms, 1 MB batches, 1,000-byte values; transactions of 1 s",
        (MB_PER_S, CPU_PER_GB),
        (_bar("idempotent"), _bar("transactional")),
        _produce,
        ("rdkload",),
    ),
)
