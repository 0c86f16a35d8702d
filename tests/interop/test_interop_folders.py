"""Log folders both ways: ours opens what a Kafka wrote, a Kafka opens what ours wrote."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headpond.protocol.schema.delete_records import DeleteRecordsRequest
from headpond.storage.folder.names import decode_partition_metadata, encode_partition_metadata
from headpond.storage.recovery.inspection import inspect
from interop.folders import TOPICS, Written, adopted, copy_partitions, latest_by_key, read, write
from interop.oracle import Oracle
from interop.programs import java, kafka_tool, needs_kafka
from support.batches import CODECS, Rec, build
from support.broker import BrokerProcess, run_headpond
from support.verbs import append, create_topic, describe_topic, new_producer
from support.wire import Wire

pytestmark = [pytest.mark.interop, needs_kafka]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write(tmp_path_factory.mktemp("folders"))


@pytest.mark.parametrize("copied", ["closed", "running"])
def test_folders_that_a_kafka_wrote_serve_the_same_records(
    written: Written, make_broker: Callable[..., BrokerProcess], copied: str
) -> None:
    source: Path = getattr(written, copied)
    broker = adopted(make_broker, lambda data_dir: copy_partitions(source, data_dir))
    for _ in range(2):  # the second time after a crash
        found = read(broker.bootstrap_servers, "read_uncommitted")
        for topic in TOPICS:
            if topic != "compacted":
                assert found[topic] == written.uncommitted[topic], topic
        assert latest_by_key(found["compacted"]) == latest_by_key(written.uncommitted["compacted"])
        broker.restart(kill=True)


def test_read_committed_consumers_leave_out_what_was_aborted_in_kafka(
    written: Written, make_broker: Callable[..., BrokerProcess]
) -> None:
    broker = adopted(make_broker, lambda data_dir: copy_partitions(written.closed, data_dir, ("transactions",)))
    index = f"transactions-0/{0:020d}.txnindex"  # made anew from the markers
    assert (broker.data_dir / index).read_bytes() == (written.closed / index).read_bytes()
    for _ in range(2):  # the second time after a crash
        found = read(broker.bootstrap_servers, "read_committed", ("transactions",))
        assert found["transactions"] == written.committed["transactions"]
        broker.restart(kill=True)


def test_an_adopted_topic_keeps_its_id_and_gets_producer_ids_that_its_log_does_not_know(
    written: Written, make_broker: Callable[..., BrokerProcess]
) -> None:
    broker = adopted(make_broker, lambda data_dir: copy_partitions(written.closed, data_dir))
    metadata = (written.closed / "codecs-0" / "partition.metadata").read_bytes()
    known = {
        line["producer"] for line in _producers(written.closed / "codecs-0") + _producers(written.closed / "segments-0")
    }
    with Wire(broker.bootstrap_servers) as wire:
        assert describe_topic(wire, "codecs").id == decode_partition_metadata(metadata)
        assert new_producer(wire)[0] > max(known)
    assert encode_partition_metadata(decode_partition_metadata(metadata)) == metadata


def _producers(folder: Path) -> list[dict[str, int]]:
    snapshot = sorted(folder.glob("*.snapshot"))[-1]
    text = kafka_tool("org.apache.kafka.tools.DumpLogSegments", "--files", str(snapshot))
    return [{"producer": int(part.split()[0])} for part in text.split("producerId: ")[1:]]


def test_a_torn_end_is_cut_off_and_damage_before_the_end_is_refused(
    written: Written, make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    copy_partitions(written.closed, tmp_path / "torn", ("segments", "codecs"))
    segments = sorted((tmp_path / "torn" / "segments-0").glob("*.log"))
    with segments[-1].open("ab") as last:
        last.write(segments[0].read_bytes()[:700])
    with (tmp_path / "torn" / "codecs-0" / f"{0:020d}.log").open("r+b") as damaged:
        damaged.seek(300)
        damaged.write(b"\0\0\0\0")
    (tmp_path / "torn" / "codecs-0" / f"{100:020d}.log").write_bytes(b"")
    done = run_headpond("adopt", "--data-dir", str(tmp_path / "torn"))
    assert done.returncode == 1 and "codecs-0: segment 0 is damaged at byte" in done.stdout, done.stdout
    assert "segments-0: 700 bytes behind offset 4000" in done.stderr, done.stderr
    broker = make_broker()
    shutil.move(tmp_path / "torn", broker.data_dir)
    broker.start()
    found = read(broker.bootstrap_servers, "read_uncommitted", ("segments",))
    assert found["segments"] == written.uncommitted["segments"]
    with pytest.raises(AssertionError), Wire(broker.bootstrap_servers) as wire:
        describe_topic(wire, "codecs")


def test_a_whole_data_folder_goes_there_and_back(
    written: Written, make_broker: Callable[..., BrokerProcess], make_kafka: Callable[..., Oracle], tmp_path: Path
) -> None:
    """Kafka's folder, run by ours, run by Kafka again: it takes our checkpoints, markers and logs for its own."""
    broker = adopted(make_broker, lambda data_dir: shutil.copytree(written.closed, data_dir))
    java("Folders", broker.bootstrap_servers, "append")
    with Wire(broker.bootstrap_servers) as wire:
        delete_records(wire, "segments", before_offset=1500)
    ours = read(broker.bootstrap_servers, "read_uncommitted")
    assert ours["segments"][0]["offset"] == 1500
    assert ours["codecs"][-1]["ends"] == [200, 200] and ours["segments"][-1]["ends"] == [8000]
    broker.stop()
    assert "segments 0 1500" in (broker.data_dir / "log-start-offset-checkpoint").read_text()
    kafka = make_kafka(broker.data_dir)
    kafka.start()
    theirs = read(kafka.bootstrap_servers, "read_uncommitted")
    for topic in TOPICS:
        if topic != "compacted":
            assert theirs[topic] == ours[topic], topic
    assert latest_by_key(theirs["compacted"]) == latest_by_key(ours["compacted"])
    assert (
        read(kafka.bootstrap_servers, "read_committed", ("transactions",))["transactions"]
        == (written.committed["transactions"])
    )
    java("Folders", kafka.bootstrap_servers, "append")
    assert read(kafka.bootstrap_servers, "read_uncommitted", ("segments",))["segments"][-1]["ends"] == [12000]
    assert not kafka.complaints(), kafka.log()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_kafka_serves_our_segments_from_its_partition_folder(
    make_broker: Callable[..., BrokerProcess], make_kafka: Callable[..., Oracle], tmp_path: Path, kill: bool
) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "ours", configs={"segment.bytes": str(1 << 20), "retention.ms": "-1"})
        producer_id, epoch = new_producer(wire)
        for n in range(300):
            rows = [Rec(b"%d-%d" % (n, k) * 1000, b"key", [("h", None)], timestamp_delta_ms=k) for k in range(4)]
            codec = list(CODECS)[n % 5]
            identity = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 4 * n}
            append(wire, topic, build(rows, codec=codec, **identity))
    ours = read(broker.bootstrap_servers, "read_committed", ("ours",))
    assert len(ours["ours"]) == 1201
    broker.kill() if kill else broker.stop()
    kafka = kafka_on_our_files(make_kafka(tmp_path / "kafka"), broker, {"segment.bytes": str(1 << 20)}, recovers=kill)
    assert read(kafka.bootstrap_servers, "read_committed", ("ours",)) == ours
    assert not kafka.complaints(), kafka.log()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_kafka_reads_our_transactions_and_its_dump_tool_finds_no_fault_in_them(
    make_broker: Callable[..., BrokerProcess], make_kafka: Callable[..., Oracle], tmp_path: Path, kill: bool
) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "ours", configs={"segment.bytes": str(1 << 20), "retention.ms": "-1"})
    producers = [transactional_producer(broker, name) for name in ("commits", "aborts", "goes-on")]
    commits, aborts, goes_on = producers
    for n in range(6):  # some segments, each with both kinds of ends
        for producer in (commits, aborts):
            producer.begin_transaction()
            for k in range(50):
                producer.produce("ours", key=b"key", value=b"%d-%d" % (n, k) * 1000)
        aborts.flush(30)
        commits.commit_transaction(30)
        aborts.abort_transaction(30)
    goes_on.begin_transaction()
    goes_on.produce("ours", value=b"nobody knows yet")
    assert goes_on.flush(30) == 0
    commits.begin_transaction()
    commits.produce("ours", value=b"behind it")
    commits.commit_transaction(30)

    isolations = ("read_committed", "read_uncommitted")
    ours = [read(broker.bootstrap_servers, isolation, ("ours",)) for isolation in isolations]
    assert [len(found["ours"]) for found in ours] == [301, 603]  # and the ends
    broker.kill() if kill else broker.stop()
    if kill:
        broker.start()
        broker.stop()

    folder = broker.log_folder("ours")
    indexes = sorted(folder.glob("*.txnindex"))
    said = dump("--files", ",".join(map(str, indexes)))
    assert said.count("version: 0") == 6 and "Exception" not in said, said
    snapshot = sorted(folder.glob("*.snapshot"))[-1]
    said = dump("--files", str(snapshot))
    assert re.search(r"FirstOffset: \D*612\b", said), said  # of the one that goes on
    kafka = kafka_on_our_files(make_kafka(tmp_path / "kafka"), broker, {"segment.bytes": str(1 << 20)}, recovers=kill)
    assert [read(kafka.bootstrap_servers, isolation, ("ours",)) for isolation in isolations] == ours
    assert not kafka.complaints(), kafka.log()


def transactional_producer(broker: BrokerProcess, name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": name,
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    return producer


def dump(*arguments: str) -> str:
    return kafka_tool("org.apache.kafka.tools.DumpLogSegments", *arguments)


def kafka_on_our_files(kafka: Oracle, broker: BrokerProcess, configs: dict[str, str], *, recovers: bool) -> Oracle:
    """A Kafka whose topic ``ours`` has the files of ours; ``recovers``: it takes them for those of a crash."""
    kafka.start()
    with Wire(kafka.bootstrap_servers) as wire:
        create_topic(wire, "ours", configs={"retention.ms": "-1", **configs})
    kafka.stop()
    theirs = kafka.data_dir / "ours-0"
    for file in theirs.iterdir():
        if file.name != "partition.metadata":  # says which topic of Kafka's it is
            file.unlink()
    for file in broker.log_folder("ours").iterdir():
        if file.name != "partition.metadata":
            shutil.copy(file, theirs)
    if recovers:
        (kafka.data_dir / ".kafka_cleanshutdown").unlink()  # Kafka recovers, and checks every batch
    return kafka.start()


def test_kafkas_storage_tool_accepts_our_meta_properties(fresh_broker: BrokerProcess, tmp_path: Path) -> None:
    fresh_broker.stop()
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\n"
        "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
        f"log.dirs={fresh_broker.data_dir}\n"
    )
    said = kafka_tool("kafka.tools.StorageTool", "info", "-c", str(properties))
    assert "Found metadata: {cluster.id=" in said and "problem" not in said.lower(), said


def test_inspection_reads_what_kafka_wrote_without_changing_it(written: Written) -> None:
    from headpond.model import TopicPartition
    from headpond.runtime.files import DiskFileSystem

    folder = written.closed / "segments-0"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    found = inspect(DiskFileSystem(), str(folder), TopicPartition("segments", 0))
    assert (found.problem, found.start_offset, found.end_offset, found.segments) == (None, 0, 4000, 4)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def delete_records(wire: Wire, topic: str, *, before_offset: int) -> None:
    wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=before_offset)
    entry = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[wanted])
    answer = wire.call(DeleteRecordsRequest(topics=[entry], timeout_ms=30_000), 2)
    assert answer.topics[0].partitions[0].error_code == 0
