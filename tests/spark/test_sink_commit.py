"""The driver's protocol, step by step: whether it is killed, outlived or done again, each micro-batch is there once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import pyarrow as pa

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.client.group_admin import Groups
from headpond.client.transaction_admin import Transactions
from headpond.model import TopicPartition
from headpond.runtime.random import SystemRandom
from headpond.spark.sink import commit as committing
from headpond.spark.sink import rows as encoding
from headpond.spark.sink import tasks as sending
from headpond.spark.sink.errors import SinkFailed
from headpond.spark.sink.messages import PREFIX, write_of_batch, write_of_query
from headpond.spark.sink.options import parse_sink_options
from headpond.spark.sink.rows import CHUNK_BYTES
from headpond.spark.sink.staging import Folder
from headpond.spark.sink.tasks import stage
from headpond.spark.sink.writers import BatchWriter, StreamWriter
from headpond.testing import Broker
from spark.audit import committed, values
from spark.sink_runs import STEPS, Killed, Query, asleep_after, killed_after, texts
from support.internal_client import run_with_client


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def query(broker: Broker, topic: str, tmp_path: Path) -> Query:
    broker.create_topic(topic, partitions=3)
    return Query(broker.bootstrap_servers, topic, str(uuid.uuid4()), tmp_path)


def test_a_micro_batch_is_written_with_its_marker_and_leaves_no_files(broker: Broker, query: Query, topic: str) -> None:
    query.run(0)
    query.run(1)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6})
    assert query.staged_files() == []

    async def ask(client: Client) -> None:
        (place, marker), *others = (await Groups(client).offsets(PREFIX + query.query_id)).items()
        assert (place, marker.offset, others) == (TopicPartition(topic, 0), 1, [])
        assert marker.metadata.startswith('{"rows": 6, "checksum": "')
        found = await Transactions(client).describe(PREFIX + query.query_id)
        assert found is not None and not found.is_open

    run_with_client(broker.bootstrap_servers, ask)


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_is_killed_after_any_step_is_made_good_by_the_next(
    broker: Broker, query: Query, topic: str, step: str
) -> None:
    query.run(0)
    with pytest.raises(Killed):
        query.commit(query.stage(1), killed_after(step))
    query.run(1)
    query.run(2)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6})
    assert query.staged_files() == []


@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_sleeps_after_any_step_can_do_nothing_when_it_wakes(
    broker: Broker, query: Query, topic: str, step: str
) -> None:
    query.run(0)

    def meanwhile() -> None:
        query.run(1)
        query.run(2)

    zombie = query.stage(1)
    try:
        query.commit(zombie, asleep_after(step, meanwhile))
    except SinkFailed as error:
        assert step not in ("end", "clean")
        assert str(error).startswith(("nothing was written: ", "nobody knows yet", "the staged file"))
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6})
    query.run(3)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6, 3: 6})


def test_a_run_whose_staged_files_another_run_has_removed_says_so(broker: Broker, query: Query, topic: str) -> None:
    """Two queries on one checkpoint."""
    query.run(0)
    late = query.stage(1)
    query.run(1)
    query.run(2)
    overtaken = (
        r"micro-batch 1 of the query .* was overtaken by another run, which has written micro-batch 2 .* one run"
    )
    with pytest.raises(SinkFailed, match=f"^nothing was written: {overtaken} at a time$"):
        query.commit(late)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6})


def test_a_staging_folder_that_the_driver_does_not_share_is_named(broker: Broker, query: Query, topic: str) -> None:
    query.run(0)
    elsewhere = query.stage(1)
    for path in query.folder.rglob("*.batches"):
        path.unlink()
    with pytest.raises(SinkFailed, match=r"the driver does not find .*1-0-.*give the option stagingDir, a folder that"):
        query.commit(elsewhere)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6})


def test_a_micro_batch_that_comes_again_is_skipped(broker: Broker, query: Query, topic: str) -> None:
    for _ in range(3):
        query.run(0)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6})
    assert query.staged_files() == []


def test_one_that_comes_again_with_as_many_other_rows_is_the_same_micro_batch(
    broker: Broker, query: Query, topic: str
) -> None:
    """Of a query that is not deterministic: to refuse it would leave the query stuck."""
    query.run(0)
    write = write_of_query(query.query_id, 0)
    rows = pa.RecordBatch.from_pydict({"value": [f"by chance {number}" for number in range(6)]})
    query.commit([stage(query.options, str(query.folder), write, 0, iter([rows]))])
    query.run(1)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6})
    assert query.staged_files() == []


def test_a_checkpoint_that_was_set_back_is_refused(broker: Broker, query: Query, topic: str) -> None:
    for batch_id in range(3):
        query.run(batch_id)
    with pytest.raises(SinkFailed, match=r"micro-batch 1 of the query .* comes after micro-batch 2 of it was written"):
        query.run(1)
    with pytest.raises(SinkFailed, match=r"was written before with 6 rows and has 7 now; its checkpoint was changed"):
        query.run(2, rows=7)
    with pytest.raises(SinkFailed, match="comes after micro-batch 2"):
        query.run(1, rows=0)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6})


@pytest.mark.parametrize("older", ["skip", "fail"])
def test_a_version_that_is_older_than_the_last_is_skipped_or_refused(
    broker: Broker, topic: str, tmp_path: Path, older: str
) -> None:
    """The number of a micro-batch comes again with other rows once a checkpoint was set back."""
    broker.create_topic(topic)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "stagingDir": str(tmp_path)}

    def write(version: int, *rows: str) -> None:
        numbered = {**given, "txnAppId": topic, "txnVersion": str(version), "txnOlder": older}
        options = parse_sink_options(numbered, is_stream=False)
        one = write_of_batch(options, SystemRandom())
        done = stage(options, str(tmp_path), one, 0, iter([pa.RecordBatch.from_pydict({"value": list(rows)})]))
        committing.Commit(options, str(tmp_path), one, [done]).run()

    write(1, "a")
    write(3, "b")
    write(3, "b")
    if older == "skip":
        write(2, "c")
    else:
        for rows in (("c",), ()):
            with pytest.raises(
                SinkFailed, match=r"version 2 of .* comes after version 3 .* its checkpoint was set back"
            ):
                write(2, *rows)
        with pytest.raises(
            SinkFailed, match="was written before with 1 rows and has 2 now; its checkpoint was changed"
        ):
            write(3, "b", "c")
    write(4, "d")
    assert values(broker.bootstrap_servers, topic) == ["a", "b", "d"]


def test_an_empty_micro_batch_writes_nothing(broker: Broker, query: Query, topic: str) -> None:
    query.run(0)
    query.run(1, rows=0)
    query.run(2)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 2: 6})


def test_attempts_that_no_message_names_are_not_written_and_are_swept(broker: Broker, query: Query, topic: str) -> None:
    query.stage(0)
    messages = query.stage(0)
    query.stage(0)
    assert len(query.staged_files()) == 6
    query.commit(messages)
    assert query.staged_files() == []
    assert values(broker.bootstrap_servers, topic) == texts({0: 6})
    query.stage(0)  # a task of micro-batch 0 that nobody waited for
    ahead = query.stage(2)
    query.run(1)
    assert [name[0] for name in query.staged_files()] == ["2", "2"]
    query.commit(ahead)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6, 1: 6, 2: 6})


def test_a_staged_file_that_is_damaged_or_gone_writes_nothing(broker: Broker, query: Query, topic: str) -> None:
    messages = query.stage(0)
    (first, second) = sorted(query.folder.rglob("*.batches"))
    whole = second.read_bytes()
    second.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(SinkFailed, match="is damaged"):
        query.commit(messages)
    second.write_bytes(whole[:-1])
    with pytest.raises(SinkFailed, match=rf"has {len(whole) - 1} bytes and a task has staged {len(whole)}"):
        query.commit(messages)
    second.unlink()
    with pytest.raises(SinkFailed, match="a folder that all nodes share"):
        query.commit(messages)
    assert committed(broker.bootstrap_servers, topic) == []
    first.unlink()
    query.run(0)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6})


def test_a_topic_that_takes_less_than_it_did_when_the_rows_were_staged_gets_nothing(
    broker: Broker, query: Query, topic: str
) -> None:
    messages = query.stage(0, rows=2_000)

    async def shrink(client: Client) -> None:
        await Admin(client).alter_configs(ConfigResource("topic", topic), {"max.message.bytes": "1000"})

    run_with_client(broker.bootstrap_servers, shrink)
    with pytest.raises(SinkFailed, match="nothing was written"):
        query.commit(messages)
    assert committed(broker.bootstrap_servers, topic) == []

    async def is_open(client: Client) -> bool:
        found = await Transactions(client).describe(PREFIX + query.query_id)
        return found is not None and found.is_open

    assert not run_with_client(broker.bootstrap_servers, is_open), "readers would wait for its time-out"
    query.run(0, rows=2_000)
    assert values(broker.bootstrap_servers, topic) == texts({0: 2_000})


def test_a_broker_that_is_killed_between_the_steps_loses_and_repeats_nothing(topic: str, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic(topic, partitions=3)
        query = Query(broker.bootstrap_servers, topic, str(uuid.uuid4()), tmp_path)
        for batch_id, step in enumerate(STEPS[:-1]):
            query.commit(query.stage(batch_id), asleep_after(step, lambda: broker.restart(kill=True)))
        assert values(broker.bootstrap_servers, topic) == texts(dict.fromkeys(range(len(STEPS) - 1), 6))


def test_a_transaction_that_was_open_for_too_long_is_told_as_such(broker: Broker, topic: str, tmp_path: Path) -> None:
    broker.create_topic(topic, partitions=3)
    timeout = {"kafka.transaction.timeout.ms": "1"}
    query = Query(broker.bootstrap_servers, topic, str(uuid.uuid4()), tmp_path, **timeout)
    other = Query(broker.bootstrap_servers, topic, query.query_id, tmp_path)
    with pytest.raises(SinkFailed, match=r"took over, or the transaction was open for longer than .* \(1\)"):
        query.commit(query.stage(0), asleep_after("produce", lambda: other.run(0)))
    too_long = Query(
        broker.bootstrap_servers, topic, query.query_id, tmp_path, **{"kafka.transaction.timeout.ms": "2000000000"}
    )
    with pytest.raises(SinkFailed, match=r"2000000000\) is more than the brokers allow"):
        too_long.run(1)


def test_a_group_that_is_not_the_sinks_is_left_alone(broker: Broker, query: Query, topic: str) -> None:
    async def commit(client: Client) -> None:
        await Groups(client).commit(PREFIX + query.query_id, {TopicPartition(topic, 0): 5})

    run_with_client(broker.bootstrap_servers, commit)
    with pytest.raises(SinkFailed, match="holds an offset that is none of the sink's markers"):
        query.run(0)
    assert committed(broker.bootstrap_servers, topic) == []


def to_topics(broker: Broker, folder: Path) -> Callable[[int, list[str]], None]:
    """A query with a column topic: writes the number of the micro-batch to each of the topics."""
    query = Query(broker.bootstrap_servers, "unused", str(uuid.uuid4()), folder)
    query.options = parse_sink_options({"kafka.bootstrap.servers": broker.bootstrap_servers}, is_stream=True)

    def run(batch_id: int, names: list[str]) -> None:
        rows = pa.RecordBatch.from_pydict({"topic": names, "value": [f"{batch_id}" for _ in names]})
        write = write_of_query(query.query_id, batch_id)
        query.commit([stage(query.options, str(folder), write, 0, iter([rows]))])

    return run


def test_rows_for_many_topics_are_one_transaction_and_the_newest_marker_counts(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    topics = [f"{topic}-{letter}" for letter in "abc"]
    for name in topics:
        broker.create_topic(name, partitions=2)
    run = to_topics(broker, tmp_path)
    run(0, topics[1:])
    run(1, topics[:2])
    run(2, topics[2:])
    run(2, topics[2:])
    found = {name: values(broker.bootstrap_servers, name) for name in topics}
    assert list(found.values()) == [["1"], ["0", "1"], ["0", "2"]]
    with pytest.raises(SinkFailed, match="comes after micro-batch 2"):
        run(1, topics[:2])


def test_a_topic_that_was_made_anew_takes_no_marker_of_the_others_along(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    topics = [f"{topic}-a", f"{topic}-b"]
    for name in topics:
        broker.create_topic(name)
    run = to_topics(broker, tmp_path)
    run(0, topics)

    async def delete(client: Client) -> None:
        await Admin(client).delete_topics([topics[0]])

    run_with_client(broker.bootstrap_servers, delete)
    broker.create_topic(topics[0])
    run(0, topics)  # written already, and its driver was killed before Spark knew
    assert values(broker.bootstrap_servers, topics[1]) == ["0"]
    run(1, topics)
    assert [values(broker.bootstrap_servers, name) for name in topics] == [["1"], ["0", "1"]]


def test_a_topic_that_is_deleted_before_the_commit_fails_it_at_once(broker: Broker, query: Query, topic: str) -> None:
    messages = query.stage(0)

    async def delete(client: Client) -> None:
        await Admin(client).delete_topics([topic])

    run_with_client(broker.bootstrap_servers, delete)
    with pytest.raises(SinkFailed, match=r"nothing was written: .*UNKNOWN_TOPIC_OR_PARTITION"):
        query.commit(messages)
    broker.create_topic(topic, partitions=3)
    query.run(0)
    assert values(broker.bootstrap_servers, topic) == texts({0: 6})


def test_an_application_counts_its_versions_for_each_topic(broker: Broker, topic: str, tmp_path: Path) -> None:
    """As Delta does for each table: the same batch goes to two topics under one number."""
    topics = [f"{topic}-a", f"{topic}-b"]

    def write(name: str, version: int) -> None:
        given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "stagingDir": str(tmp_path), "topic": name}
        given |= {"txnAppId": topic, "txnVersion": str(version)}
        writer = BatchWriter(parse_sink_options(given, is_stream=False))
        writer.commit([writer.write(iter([pa.RecordBatch.from_pydict({"value": [f"{version}"]})]))])

    for name in topics:
        broker.create_topic(name)
    for version in (1, 2, 1):
        for name in topics:
            write(name, version)
    assert [values(broker.bootstrap_servers, name) for name in topics] == [["1", "2"], ["1", "2"]]


def test_a_task_that_says_nothing_of_its_rows_is_missed(query: Query, broker: Broker, topic: str) -> None:
    writer = StreamWriter(query.options)
    with pytest.raises(SinkFailed, match="nothing was written: 1 tasks did not say what they have staged"):
        writer.commit([*query.stage(0), None], 0)
    assert committed(broker.bootstrap_servers, topic) == []
    with pytest.raises(SinkFailed, match="a task of micro-batch 0 answers for 1"):
        writer.commit(query.stage(0), 1)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_what_does_not_go_in_one_piece_goes_in_many_and_in_order(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivery: str
) -> None:
    """Chunks of some rows, batches of a few, and some of these sent at once."""
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(encoding, "BATCH_BYTES", 200)
    for module in (committing, sending):
        monkeypatch.setattr(module, "SENT_AT_ONCE_BYTES", 600)
    broker.create_topic(topic, partitions=3)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "delivery": delivery}
    writer = BatchWriter(parse_sink_options({**given, "stagingDir": str(tmp_path)}, is_stream=False))
    rows = [
        pa.RecordBatch.from_pydict({"key": [f"{number % 7}" for number in some], "value": [f"{one}" for one in some]})
        for some in (range(start, start + 50) for start in range(0, 1_000, 50))
    ]
    writer.commit([writer.write(iter(rows))])
    found = [int(record.value or b"-1") for record in committed(broker.bootstrap_servers, topic)]
    assert sorted(found) == list(range(1_000))
    for key in range(7):
        its = [number for number in found if number % 7 == key]
        assert its == sorted(its)


def test_a_task_that_fails_takes_its_file_along(query: Query) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": ["x" * 1000] * (CHUNK_BYTES // 1000 + 1)})
        assert len(query.staged_files()) == 1
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        stage(query.options, str(query.folder), write_of_query(query.query_id, 0), 0, rows())
    assert query.staged_files() == []


def test_folders_of_writes_whose_driver_died_are_swept_after_a_week(tmp_path: Path) -> None:
    import os
    import time

    from headpond.runtime.clock import SystemClock

    for name in ("write-old", "write-new", "a-query"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0-0-a.batches").write_bytes(b"x")
    a_month_ago_s = time.time() - 30 * 24 * 3_600
    for name in ("write-old", "a-query"):
        os.utime(tmp_path / name, (a_month_ago_s, a_month_ago_s))
    Folder(str(tmp_path), "write-mine").sweep_old_writes(SystemClock())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-query", "write-new"]
