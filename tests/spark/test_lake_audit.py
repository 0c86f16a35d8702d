"""``headpond pipeline audit``: what it finds in a live topic, and whether two sides hold the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headpond.testing import Broker, Record
from spark.lake_support import Pipelines, record

if TYPE_CHECKING:
    import pyarrow as pa

T0 = 1_767_225_600_000


def sentences(audit: dict[str, Any]) -> list[str]:
    return [finding["sentence"] for finding in audit["topics"][0]["findings"]]


def test_figures_of_a_topic_and_a_report_that_needs_nothing_else(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    from confluent_kafka import Producer

    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(number, 0, key="loud" if number % 2 else None) for number in range(300)])
    spark_broker.produce(topic, [Record(None, None, (), T0, 1), Record("x" * 1000, "k", (), T0 - 60_000, 1)])
    producer = Producer({"bootstrap.servers": spark_broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for is_kept in (True, False):
        producer.begin_transaction()
        producer.produce(topic, "<b>", key="<script>", partition=1, timestamp=T0)
        producer.flush(30)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(30)
    report = tmp_path / "audit.html"
    said = pipelines.json("audit", topic, "--report", str(report), "--top", "20")
    assert said["is_well"]
    (found,) = said["topics"]
    assert (found["records"], found["distinct_keys"]) == (304, 8)
    assert found["top_keys"][0] == {"key": "'loud'", "records": 150} and len(found["top_keys"]) == 8
    first, second = found["partitions"]
    assert (first["batches"]["records"], first["batches"]["missing"], first["rows"]["late_records"]) == (300, 0, 0)
    assert (second["rows"]["late_records"], second["rows"]["late_ms_max"]) == (1, 60_000)
    assert (second["rows"]["null_keys"], second["rows"]["null_values"]) == (1, 1)
    assert (second["batches"]["commit_markers"], second["batches"]["abort_markers"]) == (1, 1)
    assert second["batches"]["aborted_records"] == 1
    assert second["rows"]["sizes"] == [
        {"bytes_from": 0, "records": 1},
        {"bytes_from": 8, "records": 2},
        {"bytes_from": 512, "records": 1},
    ]
    assert "one key has 49% of the records: 'loud'" in sentences(said)
    page = report.read_text()
    assert page.count("<svg") == 3 and "No faults found." in page
    assert not re.search(r"<script|src=|href=|url\(|@import|http", page), "it takes something from elsewhere"
    assert "&lt;script&gt;" in page


def test_a_topic_and_its_lake_hold_the_same_until_they_do_not(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(number, number % 2) for number in range(50)])
    pipelines.json("archive", topic, "--to", str(lake))
    against = ("audit", topic, "--against-lake", str(lake))
    same = pipelines.json(*against)["topics"][0]["comparison"]
    assert same["is_equal"] and (same["records"], same["records_there"], same["by"]) == (50, 50, "offset")
    spark_broker.produce(topic, [record(50, 0)])
    later = pipelines.json(*against)["topics"][0]["comparison"]
    assert later["is_equal"] and (later["records"], later["only_here"]) == (50, 1)

    (file,) = (lake / f"topic={topic}").glob("*/*.parquet")
    _rewrite(file, lambda rows: rows.set_column(1, "value", _changed(rows, at=7)))
    differs = pipelines.json(*against, code=1)
    assert not differs["is_well"]
    (difference,) = differs["topics"][0]["comparison"]["differences"]
    assert difference["what"] == "has another value"
    _rewrite(file, lambda rows: rows.slice(0, rows.num_rows - 1))
    assert "is here and not there" in str(pipelines.json(*against, code=1)["topics"][0]["comparison"]["differences"])
    assert "does not hold topic" in pipelines.fails("audit", topic, "--against-lake", str(lake), "--as", "other")


def _changed(rows: pa.Table, *, at: int) -> pa.Array:
    import pyarrow as pa

    values = rows.column("value").to_pylist()
    values[at] = b"other"
    return pa.array(values, pa.binary())


def _rewrite(file: Path, change: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(change(pq.ParquetFile(file).read()), file)


def test_a_copy_is_compared_in_its_order(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    copy = f"{topic}-copy"
    for name, extra in ((topic, []), (copy, [])):
        spark_broker.create_topic(name, partitions=2)
        spark_broker.produce(name, [record(number, number % 2) for number in range(20)] + extra)
    against = ("audit", topic, "--against", spark_broker.bootstrap_servers, "--as", copy)
    same = pipelines.json(*against)["topics"][0]["comparison"]
    assert same["is_equal"] and same["by"] == "order"
    # The same two records in another order are not the same.
    for name, numbers in ((topic, (30, 31)), (copy, (31, 30))):
        spark_broker.produce(name, [record(number, 1, timestamp_ms=T0) for number in numbers])
    found = pipelines.json(*against, code=1)["topics"][0]["comparison"]
    assert found["differences"] == [{"partition": 1, "place": 10, "what": "has another key"}]
    code, out, _ = pipelines.run(*against)
    assert code == 1 and "FAULT: differs from" in out and "record number 10 of partition 1" in out
    spark_broker.create_topic(f"{topic}-one")
    spark_broker.produce(f"{topic}-one", [record(0)])
    missing = pipelines.json("audit", topic, *against[2:4], "--as", f"{topic}-one", code=1)["topics"][0]["comparison"]
    assert missing["partitions_missing"] == [1]


def test_a_damaged_batch_is_a_fault_and_the_rest_of_the_report_is_there(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.create_topic(topic, partitions=2)
    spark_broker.produce(topic, [record(number, number % 2) for number in range(10)])
    (segment,) = (spark_broker.data_dir / f"{topic}-1").glob("*.log")
    content = segment.read_bytes()
    with segment.open("r+b") as file:
        file.seek(content.rindex(b"value 9"))
        file.write(b"VALUE")
    code, out, err = pipelines.run("audit", topic, "--report", str(tmp_path / "audit.html"))
    assert code == 1, err
    assert f"FAULT: {topic}-1: the batch at offset 0 is damaged: its checksum is wrong; nothing behind it" in out
    assert f"{topic}: 1 fault in 5 records" in out and "Faults found." in (tmp_path / "audit.html").read_text()


def test_mistakes_are_one_sentence(pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    spark_broker.produce(topic, [record(0)])
    assert "does not exist" in pipelines.fails("audit", f"{topic}x")
    assert "no broker of kafka.bootstrap.servers (127.0.0.1:1) answers" in pipelines.fails(
        "audit", topic, "--against", "127.0.0.1:1", "--timeout", "0.5"
    )
    code, out, _ = pipelines.run("audit", topic, "--dry-run")
    assert code == 0 and "would read up to 1 record\n" in out
    assert pipelines.run("audit", topic, "--by", "order")[0] == 2


# --- the figures, without Spark ---------------------------------------------------------------------------------------


def chunk(keys: list[bytes | None], times_ms: list[int] | None = None, first_offset: int = 0) -> Any:
    for module in ("pyarrow", "numba"):
        pytest.importorskip(module)
    import pyarrow as pa

    count = len(keys)
    times = [1000 * time_ms for time_ms in (times_ms or [0] * count)]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array([b"v"] * count, pa.binary()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def test_lateness_is_carried_over_chunks() -> None:
    rows = [chunk([None] * 3, [5, 9, 7]), chunk([None] * 3, [8, 10, 10], 3)]
    from headpond.spark.lake.audit_rows import RowWalk

    walk = RowWalk()
    for one in rows:
        walk.take(one)
    facts = walk.end(1)
    assert (facts.late_records, facts.late_ms_max, facts.late_offset) == (2, 2, 2)
    assert (facts.first_ms, facts.last_ms, facts.null_keys) == (5, 10, 6)


def test_frequent_keys_are_found_among_more_than_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    first = chunk([b"often"] * 50 + [b"%d" % number for number in range(500)])
    from headpond.spark.lake import audit_rows

    monkeypatch.setattr(audit_rows, "KEYS_MAX", 100)
    monkeypatch.setattr(audit_rows, "MERGE_ROWS", 300)
    walk = audit_rows.RowWalk()
    walk.take(first)
    walk.take(chunk([b"%d" % number for number in range(500, 900)] + [b"more often"] * 80))
    facts = walk.end(2)
    assert [(one.key, one.records) for one in facts.top] == [(b"more often", 80), (b"often", 50)]
    assert not facts.is_exact


@pytest.mark.parametrize("count", [0, 1, 100, 20_000, 300_000])
def test_distinct_keys_are_estimated_to_a_few_percent(count: int) -> None:
    rows = chunk([b"%d" % number for number in range(count)] or [None])
    from headpond.spark.lake.audit_rows import RowWalk, distinct_estimate

    walk = RowWalk()
    walk.take(rows)
    registers = walk.end(1).registers
    assert distinct_estimate([registers, registers]) == pytest.approx(count, rel=0.05)
