"""What idempotence and transactions cost: the same bulk load without them, with one, with both.

Three times. The raw generator spends next to nothing on a producer id, so that its rows show what the broker pays for
it. Java's producer is the one that Kafka itself is measured with. librdkafka pays for it itself, whatever broker it
talks to: with a producer id it sends a partition's next request only after all of its earlier ones are answered, and
asks the socket again and again meanwhile, with a core that the broker lacks. Its own CPU, and its rows with Apache
Kafka and with its own mock broker, which does nothing for a producer id, show how much of it that is.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..harness import Bench, watched
from ..measure import CLIENT_CPU_PER_GB, CPU_PER_GB, MB_PER_S, Bar, Sample, Samples, Scenario
from ..servers import OURS, Server
from ..tools import JAVA_PRODUCER
from .throughput import BIG_BATCHES, produce_once

TRANSACTION_S = 1.0

# --- the raw generator: one connection with five requests in flight, as every idempotent producer has at most

BATCH_BYTES = 900_000
RAW = {"partitions": 4, "connections": 1, "depth": 5, "acks": -1, "record_bytes": BATCH_BYTES}
RAW_LOADS: dict[str, dict[str, int]] = {
    "plain": RAW,
    "idempotent": RAW | {"idempotent": 1},
    "transactional": RAW | {"transaction_ms": round(TRANSACTION_S * 1000)},
}


def _raw_once(server: Server, topic: str, seconds: float, load: str) -> Sample:
    with watched(server) as used:
        done = server.tools.loadgen(server.port, topic, seconds, **RAW_LOADS[load])
    return {
        "mb_per_s": done["requests_per_s"] * BATCH_BYTES / 1e6,
        "cpu_s_per_gb": used["cpu_s"] / (done["requests"] * BATCH_BYTES / 1e9),
    }


def _raw(bench: Bench) -> Samples:
    names = bench.servers(*OURS)
    topic = bench.new_topic(names)
    rows = _rows(names, RAW_LOADS, RAW_LOADS)
    bench.warm_up(names, lambda server, seconds: _raw_once(server, topic, seconds, "plain"))

    def one_run(row: str) -> Sample:
        name, load = rows[row]
        return _raw_once(bench.server(name), topic, bench.plan.run_s, load)

    return bench.in_turns(list(rows), one_run)


# --- librdkafka

ALL = BIG_BATCHES | {"acks": "all"}
IDEMPOTENT = ALL | {"enable.idempotence": "true"}
ALIKE = "plain, acks=all, 5 in flight"
# The bars compare like with like: idempotence asks for acks=all and at most five requests in flight, which is the Java
# producer's default without it too. librdkafka's default then is any number: the first rows show what that is worth.
LOADS: dict[str, tuple[dict[str, str], float]] = {
    "plain": (BIG_BATCHES, 0),
    "plain, acks=all": (ALL, 0),
    ALIKE: (ALL | {"max.in.flight.requests.per.connection": "5"}, 0),
    "idempotent": (IDEMPOTENT, 0),
    "transactional": (IDEMPOTENT | {"transactional.id": "bench"}, TRANSACTION_S),
}
OTHERS = ("kafka", "mock")
WITH_OTHERS = (ALIKE, "idempotent", "transactional")


def _librdkafka(bench: Bench) -> Samples:
    names = bench.servers(*OURS, *OTHERS)
    topic = bench.new_topic(names)
    rows = _rows(names, LOADS, WITH_OTHERS)

    def one_run(row: str) -> Sample:
        name, load = rows[row]
        client, transaction_s = LOADS[load]
        return produce_once(
            bench.server(name), topic, bench.plan.run_s, record_bytes=1000, client=client, transaction_s=transaction_s
        )

    bench.warm_up(
        names, lambda server, seconds: produce_once(server, topic, seconds, record_bytes=1000, client=IDEMPOTENT)
    )
    return bench.in_turns(list(rows), one_run)


# --- Java's producer, with its own default of five requests in flight

JAVA = {"linger.ms": "5", "batch.size": "1000000", "acks": "all"}
JAVA_LOADS: dict[str, tuple[dict[str, str], float]] = {
    "plain": (JAVA | {"enable.idempotence": "false"}, 0),
    "idempotent": (JAVA, 0),
    "transactional": (JAVA, TRANSACTION_S),
}


def _java_once(server: Server, topic: str, seconds: float, load: str) -> Sample:
    client, transaction_s = JAVA_LOADS[load]
    with watched(server) as used:
        done = server.tools.java_produce(
            server.bootstrap, topic, seconds, record_bytes=1000, transaction_s=transaction_s, client=client
        )
    return {"mb_per_s": done["mb_per_s"], "cpu_s_per_gb": used["cpu_s"] / (done["bytes"] / 1e9)}


def _java(bench: Bench) -> Samples:
    names = bench.servers(*OURS, "kafka")
    topic = bench.new_topic(names)
    rows = _rows(names, JAVA_LOADS, JAVA_LOADS)

    def one_run(row: str) -> Sample:
        name, load = rows[row]
        return _java_once(bench.server(name), topic, bench.plan.run_s, load)

    bench.warm_up(names, lambda server, seconds: _java_once(server, topic, seconds / 2, "plain"))
    return bench.in_turns(list(rows), one_run)


def _rows(names: list[str], loads: Iterable[str], with_others: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Server and load by the name of their row; those of other brokers begin with the broker's name."""
    rows = {load: ("headpond", load) for load in loads if "headpond" in names}
    others = [name for name in names if name != "headpond"]
    return rows | {f"{other}, {load}": (other, load) for other in others for load in with_others}


def _bars(plain: str) -> tuple[Bar, ...]:
    """For Headpond's rows; what another broker reaches is shown beside them, without a bar."""
    alike = "at least 0.9x the MB/s of plain produce with the same acks and requests in flight"
    return tuple(
        Bar(f"{load}: {alike}", MB_PER_S, ((plain, 0.9),), subject=load) for load in ("idempotent", "transactional")
    )


SCENARIOS = (
    Scenario(
        "exactly-once-produce",
        "idempotent and transactional produce, 1 MB batches",
        "raw socket, 1 connection, 5 requests in flight, batches of 900,000 bytes, 4 partitions, acks=all; "
        "transactions of 1 s",
        (MB_PER_S, CPU_PER_GB),
        _bars("plain"),
        _raw,
        ("loadgen",),
    ),
    Scenario(
        "exactly-once-java",
        "the same with Java's producer, 1 KB records",
        "Kafka's own kafka-producer-perf-test, 4 partitions, linger 5 ms, 1 MB batches, 1,000-byte values, 5 requests "
        "in flight; each run a new JVM, the first half of its records not timed; transactions of 1 s",
        (MB_PER_S, CPU_PER_GB),
        _bars("plain"),
        _java,
        (JAVA_PRODUCER,),
    ),
    Scenario(
        "exactly-once-librdkafka",
        "the same with librdkafka, 1 KB records",
        "one librdkafka producer, 4 partitions, linger 5 ms, 1 MB batches, 1,000-byte values; transactions of 1 s",
        (MB_PER_S, CPU_PER_GB, CLIENT_CPU_PER_GB),
        _bars(ALIKE),
        _librdkafka,
        ("rdkload",),
    ),
)
