"""Disks that are full, lie about flushing, or give back something else than was written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headpond.runtime import sync_child
from support.batches import build, split
from support.broker import BrokerProcess, run_headpond
from support.variants import kinds, rare
from support.verbs import (
    EARLIEST,
    Topic,
    append,
    create_topic,
    end_offset,
    fetch,
    list_offset,
    produce,
    produce_request,
    stored,
)
from support.waiting import eventually
from support.wire import ConnectionClosed, Wire

KAFKA_STORAGE_ERROR = 56
KIB = 1 << 10
BATCH = build([os.urandom(500 * KIB)])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("a file system of a test's own takes root on Linux")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_writes_serves_reads_and_recovers(
    small_disk: Path, make_broker: Callable[..., BrokerProcess]
) -> None:
    broker = make_broker(settings={"log.segment.bytes": 4 * 1_048_576})
    broker.data_dir = small_disk / "data"
    broker.start()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12 << 20))
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        other = create_topic(wire, "others")
        append(wire, other, build([b"small"]))
        acked = 0
        while (answer := produce(wire, topic, BATCH)).error_code == 0:
            assert answer.base_offset == acked
            acked += 1
            assert acked < 60, "the disk has no room for so many"
        assert answer.error_code == KAFKA_STORAGE_ERROR
        assert acked > 5
        for _ in range(3):
            assert produce(wire, topic, BATCH).error_code == KAFKA_STORAGE_ERROR
        assert end_offset(wire, topic) == acked
        assert [b.crc_is_right for b in stored(wire, topic)] == [True] * acked, "reads go on"
        assert len(stored(wire, other)) == 1
        eventually(lambda: half_written(broker) == [], what=lambda: f"no half batch in {half_written(broker)}")
        ballast.unlink()
        answer = eventually(lambda: (a := produce(wire, topic, BATCH)).error_code == 0 and a)
        assert answer.base_offset == acked
        found = stored(wire, topic)
        assert [b.base_offset for b in found] == list(range(acked + 1))
    broker.restart(kill=True)
    with Wire(broker.bootstrap_servers) as wire:
        assert [b.base_offset for b in stored(wire, topic)] == list(range(acked + 1))
    broker.stop()


def half_written(broker: BrokerProcess) -> list[str]:
    """The segments that hold anything but whole batches."""
    files = {path.name: path.read_bytes() for path in sorted(broker.log_folder("orders").glob("*.log"))}
    return [name for name, data in files.items() if sum(len(b.data) for b in split(data)) != len(data)]


@pytest.fixture
def failing_fsync(tmp_path: Path) -> dict[str, str]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("making fsync fail takes a C compiler")
    shim = tmp_path / "failing_fsync.so"
    source = Path(__file__).parents[1] / "support" / "failing_fsync.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    return {"LD_PRELOAD": str(shim), "FSYNC_FAILS_WHEN": str(tmp_path / "broken")}


@pytest.mark.parametrize("is_busy", [False, True], ids=["synced by a thread", "synced by a process"])
def test_a_failing_fsync_ends_the_process_and_acknowledges_nothing(
    failing_fsync: dict[str, str], make_broker: Callable[..., BrokerProcess], is_busy: bool
) -> None:
    broker = make_broker(env=failing_fsync).start()
    trigger = Path(failing_fsync["FSYNC_FAILS_WHEN"])
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        for n in range(5):
            assert append(wire, topic, build([b"%d" % n])) == n
        if is_busy:
            make_busy(broker, wire, topic)
        trigger.touch()
        with pytest.raises((ConnectionClosed, ConnectionError)):
            answer = produce(wire, topic, build([b"never on the disk"]))
            assert answer.error_code != 0, "acknowledged, though it is not on the disk"
            wire.receive()
    assert broker.wait_exit() == 1
    assert "Traceback" not in broker.logs()
    assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
    trigger.unlink()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        found = stored(wire, topic)
        assert [b.base_offset for b in found] == list(range(len(found)))
        assert len(found) >= 5, "what was acknowledged before is there"
        assert append(wire, topic, build([b"on"])) == len(found)
    broker.stop()


def make_busy(broker: BrokerProcess, wire: Wire, topic: Topic) -> int:
    """Append until syncs are so frequent that a process does them; returns its pid."""

    def found() -> int | None:
        helper = sync_process(broker)
        serves = helper is not None and len(os.listdir(f"/proc/{helper}/task")) == sync_child.THREADS
        for _ in range(100):
            append(wire, topic, build([b"more"]))
        return helper if serves else None

    return eventually(found) or 0


def sync_process(broker: BrokerProcess) -> int | None:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == broker.pid and b"sync_child" in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has it")
def test_the_process_that_syncs_dies_with_the_broker_and_the_broker_with_it(fresh_broker: BrokerProcess) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        helper = make_busy(fresh_broker, wire, topic)
    fresh_broker.kill()
    eventually(lambda: not Path(f"/proc/{helper}").exists())
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        helper = make_busy(fresh_broker, wire, topic)
        os.kill(helper, signal.SIGSTOP)  # what it is given now it never does
        acknowledged = len(stored(wire, topic))
        segment = the_segment(fresh_broker)
        size_bytes = segment.stat().st_size
        wire.send(produce_request(topic, build([b"nobody knows"]), version=12), 12)
        eventually(lambda: segment.stat().st_size > size_bytes)
        with Wire(fresh_broker.bootstrap_servers) as other:
            create_topic(other, "later")  # many turns of the loop: the sync has been handed over
        os.kill(helper, signal.SIGKILL)
        with pytest.raises((ConnectionClosed, ConnectionError)):
            wire.receive()
    assert fresh_broker.wait_exit() == 1
    assert "has died" in fresh_broker.logs()
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert len(stored(wire, topic)) >= acknowledged
    fresh_broker.stop()


def filled(broker: BrokerProcess, *, batches: int = 20) -> Topic:
    with Wire(broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        for n in range(batches):
            append(wire, topic, build([b"%03d" % n * 1_000], timestamp_ms=1_000_000 + n))
    return topic


def the_segment(broker: BrokerProcess) -> Path:
    (segment,) = broker.log_folder("orders").glob("*.log")
    return segment


def forget_recovery_point(broker: BrokerProcess) -> None:
    """What a broker knows to be good it does not scan again; here it is to know nothing."""
    for checkpoint in broker.data_dir.rglob("recovery-point-offset-checkpoint"):
        checkpoint.unlink()


@pytest.mark.parametrize("where", kinds([16, 17, 30, 70, 2_000], ordinary={17, 2_000}))
def test_after_a_crash_a_corrupt_batch_and_all_behind_it_are_cut_off(fresh_broker: BrokerProcess, where: int) -> None:
    topic = filled(fresh_broker)
    fresh_broker.kill()
    forget_recovery_point(fresh_broker)
    segment = the_segment(fresh_broker)
    data = bytearray(segment.read_bytes())
    victim = list(split(bytes(data)))[12]
    data[data.index(victim.data) + where] ^= 0xFF
    segment.write_bytes(data)
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert end_offset(wire, topic) == 12
        found = stored(wire, topic)
        assert [b.base_offset for b in found] == list(range(12))
        assert all(b.crc_is_right for b in found)
        assert fetch(wire, topic, 13).error_code == 1
        assert append(wire, topic, build([b"new"])) == 12
    assert "orders-0" in fresh_broker.logs(), "cutting records off is said in the log"


TAILS = {"zeros": b"\0" * 5_000, "ones": b"\xff" * 300, "torn": BATCH[:1_000], "byte": b"\0"}


@pytest.mark.parametrize("kind", kinds(TAILS, ordinary={"zeros", "torn"}))
def test_after_a_crash_a_tail_that_is_no_batch_is_cut_off(fresh_broker: BrokerProcess, kind: str) -> None:
    topic = filled(fresh_broker)
    fresh_broker.kill()
    with the_segment(fresh_broker).open("ab") as segment:
        segment.write(TAILS[kind])
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert [b.base_offset for b in stored(wire, topic)] == list(range(20))
        assert append(wire, topic, build([b"new"])) == 20
    fresh_broker.stop()
    assert half_written(fresh_broker) == []


@pytest.mark.parametrize(
    ("end", "damage"),
    [
        ("killed", "missing"),
        rare("killed", "empty"),
        rare("killed", "garbage"),
        rare("stopped", "missing"),
        rare("stopped", "empty"),
        ("stopped", "garbage"),
    ],
)
def test_indexes_that_are_lost_or_wrong_are_rebuilt(
    make_broker: Callable[..., BrokerProcess], end: str, damage: str
) -> None:
    broker = make_broker(settings={"log.index.interval.bytes": 1_000}).start()
    topic = filled(broker, batches=50)
    broker.kill() if end == "killed" else broker.stop()
    for pattern in ("*.index", "*.timeindex"):
        for index in broker.log_folder("orders").glob(pattern):
            if damage == "missing":
                index.unlink()
            else:
                index.write_bytes(b"" if damage == "empty" else os.urandom(1_200))
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert [b.base_offset for b in stored(wire, topic)] == list(range(50))
        for offset in (0, 17, 31, 49):
            assert next(split(fetch(wire, topic, offset).records)).base_offset == offset
            assert list_offset(wire, topic, 1_000_000 + offset).offset == offset
        assert append(wire, topic, build([b"new"])) == 50
    broker.stop()


def test_a_snapshot_that_is_garbage_is_rebuilt_from_the_log(fresh_broker: BrokerProcess) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        batch = build([b"x"], producer_id=4_242, producer_epoch=0, base_sequence=0)
        assert append(wire, topic, batch) == 0
    fresh_broker.stop()
    for snapshot in fresh_broker.log_folder("orders").glob("*.snapshot"):
        snapshot.write_bytes(os.urandom(100))
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert append(wire, topic, batch) == 0, "a duplicate, known from the log itself"
        assert end_offset(wire, topic) == 1


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("recovery-point-offset-checkpoint", "missing"),
        rare("recovery-point-offset-checkpoint", "garbage"),
        rare("log-start-offset-checkpoint", "missing"),
        ("log-start-offset-checkpoint", "garbage"),
        (".kafka_cleanshutdown", "missing"),
        rare(".kafka_cleanshutdown", "garbage"),
    ],
)
def test_losing_a_checkpoint_costs_time_and_no_data(fresh_broker: BrokerProcess, name: str, damage: str) -> None:
    topic = filled(fresh_broker)
    fresh_broker.stop()
    for path in fresh_broker.data_dir.rglob(name):
        path.unlink() if damage == "missing" else path.write_bytes(b"\xff\0garbage")
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert [b.base_offset for b in stored(wire, topic)] == list(range(20))
        assert list_offset(wire, topic, EARLIEST).offset == 0
        assert append(wire, topic, build([b"new"])) == 20


@pytest.mark.parametrize(
    "name",
    kinds(
        [
            "orders-0/00000000000000000000.log",
            "orders-0/00000000000000000000.index",
            "orders-0/leader-epoch-checkpoint",
            "recovery-point-offset-checkpoint",
            "metadata.sqlite",
        ],
        ordinary={"orders-0/00000000000000000000.log", "metadata.sqlite"},
    ),
)
def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(fresh_broker: BrokerProcess, name: str) -> None:
    filled(fresh_broker)
    fresh_broker.stop()
    path = fresh_broker.data_dir / name
    path.unlink()
    os.mkfifo(path)
    done = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(fresh_broker.data_dir))
    assert done.returncode == 1
    assert f"{path}: not a regular file, but a named pipe" in done.stderr


def test_a_folder_that_nobody_knows_is_never_deleted(fresh_broker: BrokerProcess) -> None:
    fresh_broker.stop()
    stray = fresh_broker.data_dir / "stray-0"
    stray.mkdir()
    (stray / "00000000000000000000.log").write_bytes(build([b"somebody's record"]))
    fresh_broker.start()
    fresh_broker.stop()
    left = [
        p for p in fresh_broker.data_dir.rglob("00000000000000000000.log") if b"somebody's record" in p.read_bytes()
    ]
    assert left, "the only copy of somebody's record"
