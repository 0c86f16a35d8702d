"""``headpond pipeline snapshot``: the latest value per key, as of now or of a moment, and what takes keys away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headpond.spark.lake.errors import LakeError
from headpond.spark.lake.table import Table
from headpond.testing import Broker, Record
from spark.lake_support import Pipelines

T0 = 1_767_225_600_000


def table_of(path: Path) -> dict[Any, Any]:
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    found = {row["key"]: row["value"] for row in rows}
    assert len(found) == len(rows), "a key has two rows"
    return found


def seen(folder: Path) -> list[str]:
    """What is in a folder for those who don't look for hidden names."""
    names = sorted(each.name for each in folder.iterdir())
    assert not [name for name in names if "headpond-new" in name or "headpond-old" in name]
    return [name for name in names if not name.startswith(".")]


def written(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    records = [
        Record("1", "anna", (), T0, 0),
        Record("1", "bob", (), T0 + 1, 1),
        Record("no key", None, (), T0 + 2, 0),
        Record("2", "anna", (), T0 + 10, 0),
        Record(None, "bob", (), T0 + 11, 1),
        Record("late", "anna", (), T0 + 5, 0),  # written last, and so the latest, whatever its time
        Record("old partition", "moved", (), T0 + 20, 0),
        Record("new partition", "moved", (), T0 + 30, 1),
        Record("", "empty", (), T0, 1),
    ]
    for one in records:
        broker.produce(topic, [one])


def test_the_latest_value_of_each_key_from_the_topic_and_from_a_lake(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    written(spark_broker, topic)
    pipelines.json("archive", topic, "--to", str(tmp_path / "lake"))
    expected = {"anna": "late", "moved": "new partition", "empty": ""}
    for number, source in enumerate(((), ("--from", str(tmp_path / "lake")))):
        out = tmp_path / f"table-{number}"
        said = pipelines.json("snapshot", topic, *source, "--to", str(out), "--strings")
        assert table_of(out) == expected
        assert (said["keys"], said["tombstones"], said["null_keys"], said["records"]) == (3, 1, 1, 9)
    pipelines.json("snapshot", topic, "--to", str(tmp_path / "bytes"))
    assert table_of(tmp_path / "bytes") == {key.encode(): value.encode() for key, value in expected.items()}


def test_a_moment_by_time_and_by_offset(pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path) -> None:
    written(spark_broker, topic)
    pipelines.json("archive", topic, "--to", str(tmp_path / "lake"))
    number = 0

    def snapshot(*until: str) -> dict[str, str]:
        nonlocal number
        found = []
        for source in ((), ("--from", str(tmp_path / "lake"))):
            number += 1
            pipelines.json("snapshot", topic, *source, "--to", str(tmp_path / f"t{number}"), "--strings", *until)
            found.append(table_of(tmp_path / f"t{number}"))
        assert found[0] == found[1], "the lake says otherwise than the topic"
        return found[0]

    assert snapshot("--until", str(T0 + 2)) == {"anna": "1", "bob": "1", "empty": ""}
    assert snapshot("--until", str(T0 + 20)) == {"anna": "late", "moved": "old partition", "empty": ""}
    assert snapshot("--until-offset", "1") == {"anna": "1", "bob": "1"}
    assert snapshot("--until-offset", "0:3", "--until-offset", "1:2") == {"anna": "2"}
    assert snapshot("--until", "5") == {}


def test_what_is_refused_is_one_sentence(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    written(spark_broker, topic)
    out = str(tmp_path / "table")
    assert "1 records of" in pipelines.fails("snapshot", topic, "--to", out, "--null-keys", "fail")
    assert seen(tmp_path) == [], "nothing half-written"
    assert pipelines.fails("snapshot", topic, "--to", out, "--until-offset", "0:99") == (
        f"{topic}-0 has no offset 99: what can be read of it reaches from 0 to 5"
    )
    assert "has no partition 7" in pipelines.fails("snapshot", topic, "--to", out, "--until-offset", "7:1")
    assert "does not exist" in pipelines.fails("snapshot", f"{topic}x", "--to", out)
    code, said, _ = pipelines.run("snapshot", topic, "--to", out, "--dry-run")
    assert code == 0 and f"would read up to 9 records and write {out}" in said and not (tmp_path / "table").exists()


def test_a_table_is_replaced_only_when_asked_for_and_only_if_it_is_one(
    pipelines: Pipelines, spark_broker: Broker, topic: str, tmp_path: Path
) -> None:
    spark_broker.produce(topic, [Record("1", "k", (), T0)])
    out = tmp_path / "table"
    command = ("snapshot", topic, "--to", str(out), "--strings")
    pipelines.json(*command)
    spark_broker.produce(topic, [Record("2", "k", (), T0)])
    assert pipelines.fails(*command) == f"{out} exists already: --overwrite replaces it"
    assert table_of(out) == {"k": "1"}
    pipelines.json(*command, "--overwrite")
    assert table_of(out) == {"k": "2"} and seen(tmp_path) == ["table"]
    (tmp_path / "mine").mkdir()
    assert "exists and is no table" in pipelines.fails("snapshot", topic, "--to", str(tmp_path / "mine"), "--overwrite")


def test_a_crash_between_two_renames_brings_the_old_table_back(tmp_path: Path) -> None:
    old = tmp_path / ".table.table-old-1"
    old.mkdir()
    (old / "_SUCCESS").touch()
    (tmp_path / ".table.table-new-1").mkdir()
    table = Table(str(tmp_path / "table"))
    try:
        with table.being_written() as folder:
            Path(folder).mkdir()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert seen(tmp_path) == ["table"] and (tmp_path / "table/_SUCCESS").exists()


def test_one_command_writes_a_table_at_a_time(tmp_path: Path) -> None:
    table = Table(str(tmp_path / "table"))
    with table.being_written() as folder:
        Path(folder).mkdir()
        refused = pytest.raises(LakeError, match="table is being written by another process: wait for its end")
        with refused, Table(str(tmp_path / "table")).being_written():
            pass
        assert Path(folder).exists()
    assert seen(tmp_path) == ["table"]
