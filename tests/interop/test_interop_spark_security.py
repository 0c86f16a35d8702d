"""Spark itself with a real Kafka behind TLS and SASL: what it writes is what it reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interop.oracle import Oracle
from interop.programs import needs_kafka
from interop.secured import PASSWORD, Secured, start_secured
from support.certificates import needs_openssl

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

from pyspark.sql import SparkSession

from headpond.spark.session import start_session

pytestmark = [pytest.mark.interop, needs_kafka, needs_openssl]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    found = start_secured(Oracle, tmp_path_factory.mktemp("secured"))
    yield found
    found.kafka.kill()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session("headpond-interop", master="local[2]")
    yield session
    session.stop()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_secured_kafka_is_written_and_read(
    spark: SparkSession, secured: Secured, mechanism: str, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = f"orders-{mechanism.lower()}"
    given = {f"kafka.{name}": value for name, value in secured.sasl_ssl(mechanism).items()}
    given["kafka.bootstrap.servers"] = secured.at("SASL_SSL")
    create(secured, topic)
    frame = spark.range(0, 1_000, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("headpond").options(**given, topic=topic).mode("append").save()
    rows = spark.read.format("headpond").options(**given, subscribe=topic).load()
    assert sorted(int(bytes(row.value)) for row in rows.collect()) == list(range(1_000))
    rows.explain(extended=True)
    assert PASSWORD not in "".join(capfd.readouterr())


def create(secured: Secured, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": secured.kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(60)
