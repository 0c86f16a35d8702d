"""The lake pipelines with a real Kafka: from it into a lake, from there into Headpond, and both hold the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from headpond.client import Client
from headpond.client.admin import Admin
from headpond.testing import Broker
from interop.oracle import Oracle
from interop.programs import needs_kafka
from support.broker import headpond_environment
from support.internal_client import run_with_client

for module in ("pyspark", "pyarrow", "numba"):
    pytest.importorskip(module)

pytestmark = [pytest.mark.interop, needs_kafka]

TOPIC = "orders"
COMMAND_S_MAX = 180


def pipeline(bootstrap: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "headpond", "pipeline", *arguments, "--json", "-b", bootstrap, "--master", "local[2]"],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_topic_of_a_real_kafka_moves_through_a_lake_to_headpond_and_back(
    make_kafka: Callable[..., Oracle], tmp_path: Path
) -> None:
    kafka = make_kafka(tmp_path / "kafka").start()
    fill(kafka)
    lake = str(tmp_path / "lake")
    archived = pipeline(kafka.bootstrap_servers, "archive", TOPIC, "--to", lake)
    assert (archived["records"], archived["topics"][0]["skipped_offsets"]) == (105, 5 + 2)
    with Broker() as broker:
        restored = pipeline(broker.bootstrap_servers, "restore", TOPIC, "--from", lake)
        assert restored["records"] == 105
        audit = pipeline(kafka.bootstrap_servers, "audit", TOPIC, "--against", broker.bootstrap_servers)
        comparison = audit["topics"][0]["comparison"]
        assert comparison["is_equal"] and comparison["records"] == comparison["records_there"] == 105
    batches = [one["batches"] for one in audit["topics"][0]["partitions"]]
    assert sum(one["aborted_records"] for one in batches) == 5 and sum(one["missing"] for one in batches) == 0
    assert (sum(one["commit_markers"] for one in batches), sum(one["abort_markers"] for one in batches)) == (1, 1)
    back = pipeline(kafka.bootstrap_servers, "restore", TOPIC, "--from", lake, "--as", "back", "--batch-records", "40")
    assert back["records"] == 105 and back["topics"][0]["transactions"] > 1
    same = pipeline(kafka.bootstrap_servers, "audit", "back", "--against-lake", lake, "--as", TOPIC, "--by", "order")
    assert same["topics"][0]["comparison"]["is_equal"]


def fill(kafka: Oracle) -> None:
    """100 records in both partitions, then 5 that are committed and 5 that are aborted in the first."""

    async def create(client: Client) -> None:
        await Admin(client).create_topic(TOPIC, 2)

    run_with_client(kafka.bootstrap_servers, create)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "compression.type": "zstd"})
    for number in range(100):
        headers = {"n": str(number)} if number % 3 else None
        producer.produce(TOPIC, f"value {number}", f"key {number % 7}", number % 2, headers=headers)
    assert producer.flush(30) == 0
    transactional = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "interop"}
    )
    transactional.init_transactions(30)
    for is_kept in (True, False):
        transactional.begin_transaction()
        for number in range(5):
            transactional.produce(TOPIC, f"{is_kept} {number}", "t", 0)
        transactional.flush(30)
        (transactional.commit_transaction if is_kept else transactional.abort_transaction)(30)
