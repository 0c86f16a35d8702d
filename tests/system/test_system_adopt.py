"""``headpond adopt``: partition folders from elsewhere become topics; what is not whole or not sound is left alone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headpond.protocol.records.control import build_end_txn_marker
from support.batches import build
from support.broker import BrokerProcess, run_headpond
from support.variants import kinds
from support.verbs import Topic, append, batches, create_topic, describe_topic, end_offset, fetch, new_producer, stored
from support.wire import Wire

BATCHES = 20
TRANSACTIONAL = 0x10


@pytest.fixture
def source(make_broker: Callable[..., BrokerProcess]) -> tuple[BrokerProcess, Topic, list[bytes]]:
    """A stopped broker with a topic of two partitions, and the batches of the first."""
    broker = make_broker("source").start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders", partitions=2)
        producer_id, epoch = new_producer(wire)
        for n in range(BATCHES):
            identity = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": n}
            append(wire, topic, build([b"%d" % n], **identity))
        append(wire, topic, build([b"other"]), partition=1)
        batches = [batch.data for batch in stored(wire, topic)]
    broker.stop()
    return broker, topic, batches


def adopt(data_dir: Path, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    done = run_headpond("adopt", "--data-dir", str(data_dir), "--json", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def copy(source: BrokerProcess, target: Path, *names: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copytree(source.data_dir / name, target / name)


def test_copied_folders_become_the_topic_that_they_were(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    from_broker, topic, batches = source
    broker = make_broker("target")
    copy(from_broker, broker.data_dir, "orders-0", "orders-1")
    (looked,) = adopt(broker.data_dir, "--dry-run")
    assert (looked["topic"], looked["adopted"], looked["refused"]) == ("orders", False, None)
    (done,) = adopt(broker.data_dir)
    assert done["adopted"] and [each["end_offset"] for each in done["partitions"]] == [BATCHES, 1]
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert describe_topic(wire, "orders") == topic
        assert [batch.data for batch in stored(wire, topic)] == batches
        last_epoch = stored(wire, topic)[-1].leader_epoch
        # A new producer is never taken for one that the log knows.
        producer_id, epoch = new_producer(wire)
        fresh = build([b"0"], producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        assert append(wire, topic, fresh) == BATCHES
        assert stored(wire, topic)[-1].leader_epoch > last_epoch
    broker.restart(kill=True)
    with Wire(broker.bootstrap_servers) as wire:
        assert end_offset(wire, topic) == BATCHES + 1
    broker.stop()
    assert "WARNING" not in broker.logs(), broker.logs()
    assert adopt(broker.data_dir) == []


def snapshot(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every file and folder, with its time and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (path.stat().st_mtime_ns, content)
    return found


def test_to_look_leaves_copied_folders_as_they_are(
    source: tuple[BrokerProcess, Topic, list[bytes]], tmp_path: Path
) -> None:
    from_broker, _, _ = source
    copy(from_broker, tmp_path / "data", "orders-0", "orders-1")
    before = snapshot(tmp_path / "data")
    (looked,) = adopt(tmp_path / "data", "--dry-run")
    assert looked["refused"] is None
    assert snapshot(tmp_path / "data") == before


@pytest.mark.parametrize("kill", kinds([False, True], ordinary={True}), ids=["stopped", "killed"])
def test_to_look_leaves_the_folder_of_a_broker_as_it_is(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess], kill: bool
) -> None:
    """What a crash left in the write-ahead log of the metadata store is seen, and stays there."""
    from_broker, _, _ = source
    broker = make_broker("target").start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "payments")
    broker.kill() if kill else broker.stop()
    copy(from_broker, broker.data_dir, "orders-0", "orders-1")
    before = snapshot(broker.data_dir)
    assert kill == any(name.endswith("-wal") for name in before)
    (looked,) = adopt(broker.data_dir, "--dry-run")
    assert (looked["topic"], looked["refused"]) == ("orders", None)
    assert snapshot(broker.data_dir) == before


def test_an_adopted_topic_keeps_its_old_records_until_its_retention_is_set(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    from_broker, topic, batches = source
    broker = make_broker("target", settings={"log.retention.ms": 1, "log.retention.check.interval.ms": 1})
    copy(from_broker, broker.data_dir, "orders-0", "orders-1")
    adopt(broker.data_dir)
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert [batch.data for batch in stored(wire, topic)] == batches


def test_a_topic_that_is_not_whole_is_left_alone(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    from_broker, topic, _ = source
    broker = make_broker("target")
    copy(from_broker, broker.data_dir, "orders-1")
    (found,) = adopt(broker.data_dir, code=1)
    assert "orders-0" in found["refused"] and not found["adopted"]
    (broker.data_dir / "orders-0").mkdir()
    (found,) = adopt(broker.data_dir)
    assert found["adopted"]
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert end_offset(wire, topic) == 0 and end_offset(wire, topic, partition=1) == 1
        assert append(wire, topic, build([b"first"])) == 0


def test_a_topic_with_a_pipe_or_a_device_in_the_place_of_a_file_is_left_alone_and_others_are_not(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    from_broker, _, _ = source
    broker = make_broker("target")
    copy(from_broker, broker.data_dir, "orders-0", "orders-1")
    for name in ("piped-0", "endless-0"):
        (broker.data_dir / name).mkdir()
    os.mkfifo(broker.data_dir / "piped-0" / "00000000000000000000.log")
    (broker.data_dir / "endless-0" / "00000000000000000000.log").symlink_to("/dev/zero")
    found = {each["topic"]: each["refused"] for each in adopt(broker.data_dir, code=1)}
    assert found == {
        "endless": "endless-0: 00000000000000000000.log can't be read: not a regular file, but a device",
        "orders": None,
        "piped": "piped-0: 00000000000000000000.log can't be read: not a regular file, but a named pipe",
    }


def test_a_name_that_is_taken_is_not_adopted_and_the_folder_stays(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    from_broker, _, _ = source
    broker = make_broker("target").start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "orders")
    broker.stop()
    copy(from_broker, broker.data_dir, "orders-1")
    (found,) = adopt(broker.data_dir, code=1)
    assert found["refused"] and (broker.data_dir / "orders-1").is_dir()


def test_internal_topics_are_left_alone_and_only_the_named_topics_are_looked_at(
    source: tuple[BrokerProcess, Topic, list[bytes]], tmp_path: Path
) -> None:
    from_broker, _, _ = source
    copy(from_broker, tmp_path / "data", "orders-0", "orders-1")
    for name in ("__consumer_offsets-0", "__cluster_metadata-0"):
        shutil.copytree(from_broker.data_dir / "orders-0", tmp_path / "data" / name)
    found = {each["topic"]: each for each in adopt(tmp_path / "data", code=1)}
    assert found["orders"]["adopted"]
    assert all("internal" in found[name]["refused"] for name in ("__consumer_offsets", "__cluster_metadata"))
    done = run_headpond("adopt", "nothing", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1 and "no folders of nothing" in done.stderr


def test_read_committed_consumers_are_told_what_was_aborted(make_broker: Callable[..., BrokerProcess]) -> None:
    """Records of a producer before, in and after an aborted transaction, as a Kafka has written them."""
    broker = make_broker()
    folder = broker.data_dir / "orders-0"
    folder.mkdir(parents=True)
    identity = {"producer_id": 7, "producer_epoch": 0}
    end = build_end_txn_marker(
        producer_id=7, producer_epoch=0, is_abort=True, coordinator_epoch=0, timestamp=1_700_000_000_000
    )
    marker = (3).to_bytes(8, "big") + bytes(end)[8:]
    (folder / f"{0:020d}.log").write_bytes(
        build([b"before"])
        + build([b"in", b"in"], base_offset=1, attributes=TRANSACTIONAL, base_sequence=0, **identity)
        + marker
        + build([b"after"], base_offset=4)
    )
    adopt(broker.data_dir)
    broker.start()
    for _ in range(2):  # the second time after a crash
        with Wire(broker.bootstrap_servers) as wire:
            topic = describe_topic(wire, "orders")
            for offset, aborted in ((0, [(7, 1)]), (3, [(7, 1)]), (4, [])):
                answer = fetch(wire, topic, offset, isolation_level=1)
                assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == aborted
                assert answer.last_stable_offset == answer.high_watermark == 5
                assert batches(answer)[-1].last_offset == 4
            assert not fetch(wire, topic, isolation_level=0).aborted_transactions
        broker.restart(kill=True)


def test_a_running_broker_is_not_disturbed(fresh_broker: BrokerProcess) -> None:
    for arguments in ([], ["--dry-run"]):
        done = run_headpond("adopt", "--data-dir", str(fresh_broker.data_dir), *arguments)
        assert done.returncode == 1 and "in use by another broker" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_folder_without_strays_says_so(tmp_path: Path) -> None:
    done = run_headpond("adopt", "--data-dir", str(tmp_path))
    assert done.returncode == 1 and "holds no partition folder that the broker does not know" in done.stderr


def test_to_look_into_a_folder_that_is_not_there_makes_none(tmp_path: Path) -> None:
    done = run_headpond("adopt", "--data-dir", str(tmp_path / "nothing"), "--dry-run")
    assert done.returncode == 1 and "there is no such folder" in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_to_look_into_folders_with_a_journal_of_another_version_is_refused_as_to_adopt_them(
    source: tuple[BrokerProcess, Topic, list[bytes]], tmp_path: Path
) -> None:
    from_broker, _, _ = source
    copy(from_broker, tmp_path / "data", "orders-0", "orders-1")
    (tmp_path / "data" / ".journal_a").write_bytes(b"JRN2 and more")
    before = snapshot(tmp_path / "data")
    done = run_headpond("adopt", "--data-dir", str(tmp_path / "data"), "--dry-run")
    assert done.returncode == 1 and ".journal_a, a file of another version" in done.stderr
    assert snapshot(tmp_path / "data") == before


def test_a_folder_whose_number_no_broker_would_write_is_nobody_s(
    source: tuple[BrokerProcess, Topic, list[bytes]], make_broker: Callable[..., BrokerProcess]
) -> None:
    """Somebody's copy beside the folder that it was made of: neither adopted nor in the way."""
    from_broker, _, batches = source
    for name in ("orders-00", "orders-2147483648", "backup-20261117000000"):
        shutil.copytree(from_broker.data_dir / "orders-0", from_broker.data_dir / name)
    done = run_headpond("adopt", "--data-dir", str(from_broker.data_dir))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    broker = from_broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert [batch.data for batch in stored(wire, describe_topic(wire, "orders"))] == batches
    assert (broker.data_dir / "orders-00" / f"{0:020d}.log").exists()


def test_indexes_without_their_segments_are_not_an_empty_partition(
    source: tuple[BrokerProcess, Topic, list[bytes]], tmp_path: Path
) -> None:
    from_broker, _, _ = source
    target = tmp_path / "data"
    copy(from_broker, target, "orders-0", "orders-1")
    (target / "orders-0" / f"{0:020d}.log").unlink()
    before = sorted(path.name for path in (target / "orders-0").iterdir())
    (found,) = adopt(target, code=1)
    assert not found["adopted"] and "orders-0: it has indexes and no .log" in found["refused"]
    assert sorted(path.name for path in (target / "orders-0").iterdir()) == before
