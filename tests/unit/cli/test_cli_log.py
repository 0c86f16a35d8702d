"""``headpond log dump`` and ``verify``: sound files are told, and every kind of damage is named with its place."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond.cli.main import main
from headpond.protocol.records.control import build_end_txn_marker
from headpond.storage.producers.snapshot import SnapshotEntry
from headpond.storage.producers.txn_index import AbortedTxn, encode
from support.batches import Rec, build
from support.other_side import encode_snapshot, stamp

NAME = "00000000000000000000"
TIME_MS = 1_700_000_000_000


class Folder:
    """A partition's folder with three batches of ten records and indexes that point to the second and the third."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.path = data_dir / "orders-0"
        self.path.mkdir(parents=True)
        self.batches = [
            _batch(0, [b"v"] * 10, timestamp_ms=TIME_MS),
            _batch(10, [b"v"] * 10, timestamp_ms=TIME_MS + 5, codec="zstd"),
            _batch(20, [b"v"] * 10, timestamp_ms=TIME_MS + 3),
        ]
        second, third = len(self.batches[0]), len(self.batches[0]) + len(self.batches[1])
        self.write(".log", b"".join(self.batches))
        self.write(".index", struct.pack(">iiii", 19, second, 29, third))
        self.write(".timeindex", struct.pack(">qi", TIME_MS + 5, 19))
        (self.path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (self.path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")

    def write(self, suffix: str, data: bytes) -> None:
        (self.path / (NAME + suffix)).write_bytes(data)

    def file(self, suffix: str) -> str:
        return str(self.path / (NAME + suffix))


def _batch(base_offset: int, values: list[bytes], *, leader_epoch: int = 0, **options: Any) -> bytes:
    batch = bytearray(build(values, base_offset=base_offset, **options))
    struct.pack_into(">i", batch, 12, leader_epoch)
    return bytes(batch)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "data")


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def faults(self) -> list[str]:
        return [f"{Path(fault['path']).name}: {fault['what']}" for fault in self.document["faults"]]


@pytest.fixture
def headpond(capfd: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Said:
        code = main([str(each) for each in arguments])
        return Said(code, *capfd.readouterr())

    return run


def verify(headpond: Any, path: object, *arguments: str) -> Said:
    said: Said = headpond("log", "verify", path, "--json", *arguments)
    assert said.code == (1 if said.document["faults"] else 0)
    return said


# --- no files at all --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["named pipe", "device"])
def special(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Puts something that is no file in the place of one."""
    held: list[int] = []

    def put(path: str) -> str:
        Path(path).unlink(missing_ok=True)
        if request.param == "device":
            Path(path).symlink_to("/dev/zero")
        else:
            os.mkfifo(path)
            held.append(os.open(path, os.O_RDWR))  # or it would be waited for
        return f"not a regular file, but a {request.param}"

    yield put
    for each in held:
        os.close(each)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
def test_what_is_no_file_is_a_fault_and_the_rest_is_read(
    folder: Folder, headpond: Any, special: Any, suffix: str
) -> None:
    other = Folder(folder.data_dir / "next")
    other.path.rename(folder.data_dir / "orders-1")
    why = special(folder.file(suffix))
    said = verify(headpond, folder.data_dir)
    assert f"{NAME}{suffix}: can't be read: {why}" in said.faults
    assert said.document["batches"] == (3 if suffix == ".log" else 6)
    dumped = headpond("log", "dump", folder.data_dir)
    assert f"!! {folder.file(suffix)}: {why}" in dumped.out and dumped.code == 1
    alone = headpond("log", "dump", folder.file(suffix))
    assert alone.err == f"headpond: {folder.file(suffix)}: {why}\n" and alone.code == 1


def test_folders_that_are_links_to_one_above_have_an_end(folder: Folder, headpond: Any) -> None:
    for name in ("self", "again"):
        (folder.path / name).symlink_to(folder.data_dir)
    assert verify(headpond, folder.data_dir).faults == []
    assert headpond("log", "dump", folder.data_dir).code == 0


# --- sound files ------------------------------------------------------------------------------------------------------


def test_a_sound_folder_has_no_fault(folder: Folder, headpond: Any) -> None:
    said = verify(headpond, folder.path, "--records")
    assert said.faults == []
    assert (said.document["partitions"], said.document["batches"], said.document["records"]) == (1, 3, 30)
    plain = headpond("log", "verify", folder.path)
    assert plain.out.strip().endswith("3 batches, 30 records: no faults") and plain.code == 0


def test_the_batches_of_a_segment_are_listed_in_order(folder: Folder, headpond: Any) -> None:
    found = headpond("log", "dump", folder.file(".log"), "--json").lines
    assert [(each["kind"], each["base_offset"], each["last_offset"], each["codec"]) for each in found] == [
        ("batch", 0, 9, "none"),
        ("batch", 10, 19, "zstd"),
        ("batch", 20, 29, "none"),
    ]
    assert [each["position"] for each in found] == [0, *(len(b"".join(folder.batches[:n])) for n in (1, 2))]
    text = headpond("log", "dump", folder.file(".log"))
    assert "10-19" in text.out and "zstd" in text.out and text.code == 0


def test_records_are_shown_with_bytes_that_are_no_text_as_base64(folder: Folder, headpond: Any) -> None:
    headers = [("h", b"\xff"), ("n", None)]
    folder.write(".log", _batch(0, [Rec(b"\xff\xfe", "clé".encode(), headers), Rec(None, None)]))  # type: ignore[list-item]
    records = list(headpond("log", "dump", folder.file(".log"), "--records", "--json").lines[1:])
    first, second = records
    assert (first["key"], first["value_base64"]) == ("clé", "//4=")
    assert first["headers"] == [{"key": "h", "value_base64": "/w=="}, {"key": "n", "value": None}]
    assert (second["offset"], second["key"], second["value"]) == (1, None, None)
    assert "base64://4=" in headpond("log", "dump", folder.file(".log"), "--records").out


def test_what_stands_in_files_is_shown_and_not_obeyed(folder: Folder, headpond: Any) -> None:
    evil = "\x1b]0;t\x07\x9b2J\x7f"
    folder.write(".log", _batch(0, [Rec(evil.encode(), evil.encode(), [(evil, evil.encode())])]))  # type: ignore[list-item]
    (folder.data_dir / "meta.properties").write_text(f"version=1\ncluster.id=x{evil}\nnode.id=1\n")
    (folder.data_dir / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{evil} 0 0\n")
    (folder.data_dir / f"{evil.replace('/', '')}-0").mkdir()
    (folder.data_dir / f"{evil}-0" / f"{NAME}.log").write_bytes(b"garbage")
    for command in (("dump", "--records"), ("verify",)):
        said = headpond("log", *command, folder.data_dir)
        assert "\\x1b" in said.out or "\\u001b" in said.out
        assert all(line.isprintable() for line in (said.out + said.err).split("\n"))


def test_a_transaction_marker_is_shown_as_what_it_is(folder: Folder, headpond: Any) -> None:
    marker = Rec(struct.pack(">hi", 0, 7), struct.pack(">hh", 0, 1))
    control = _batch(0, [marker], attributes=0x30, producer_id=5, producer_epoch=1)  # type: ignore[list-item]
    folder.write(".log", control)
    assert "commit marker, coordinator epoch 7" in headpond("log", "dump", folder.file(".log"), "--records").out


def test_the_other_files_are_shown(folder: Folder, headpond: Any) -> None:
    folder.write(".snapshot", encode_snapshot([SnapshotEntry(5, 1, 9, -1, 0, TIME_MS, 0, -1)]))
    folder.write(".txnindex", encode([AbortedTxn(5, 0, 9, 20)]))
    (folder.data_dir / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    said = headpond("log", "dump", folder.data_dir, "--json")
    found = {(Path(line["file"]).name, line["kind"]) for line in said.lines}
    assert found == {
        (NAME + ".log", "batch"),
        (NAME + ".index", "entry"),
        (NAME + ".timeindex", "entry"),
        (NAME + ".txnindex", "aborted"),
        (NAME + ".snapshot", "producer"),
        ("leader-epoch-checkpoint", "line"),
        ("partition.metadata", "line"),
        ("recovery-point-offset-checkpoint", "line"),
    }
    assert said.code == 0


def test_space_that_an_index_has_set_aside_is_no_fault(folder: Folder, headpond: Any) -> None:
    """A Kafka that runs, or was killed, has indexes of 10 MiB with zeros at the end."""
    for suffix, entry_bytes in ((".index", 8), (".timeindex", 12)):
        path = Path(folder.file(suffix))
        path.write_bytes(path.read_bytes() + bytes(entry_bytes * 1_000))
    assert verify(headpond, folder.path).faults == []
    assert len(headpond("log", "dump", folder.file(".index"), "--json").lines) == 2


def test_an_entry_may_name_the_last_of_several_batches_that_were_appended_at_once(
    folder: Folder, headpond: Any
) -> None:
    folder.write(".index", struct.pack(">ii", 29, len(folder.batches[0])))
    assert verify(headpond, folder.path).faults == []


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_is_found_and_the_batches_behind_it_are_still_read(folder: Folder, headpond: Any) -> None:
    data = bytearray(b"".join(folder.batches))
    data[len(folder.batches[0]) - 3] ^= 1
    folder.write(".log", bytes(data))
    said = verify(headpond, folder.path)
    (fault,) = said.faults
    assert fault.startswith(f"{NAME}.log: the batch at offset 0, position 0: the CRC is 0x")
    assert said.document["batches"] == 3
    dumped = headpond("log", "dump", folder.file(".log"))
    assert "!! the CRC is" in dumped.out and dumped.code == 1 and "1 fault" in dumped.err


def test_a_file_that_ends_inside_a_batch_is_found(folder: Folder, headpond: Any) -> None:
    Path(folder.file(".log")).write_bytes(b"".join(folder.batches)[:-5])
    faults = verify(headpond, folder.path).faults
    expected = len(folder.batches[2])
    assert any(f"the file ends inside a batch: {expected - 5} of its {expected} bytes are there" in f for f in faults)


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        (b"\xff" * 100, "no batch starts like this"),
        (bytes(100), "zeros"),
        (b"abc", "the file ends inside a batch: 3 bytes are left"),
        (struct.pack(">qiib", 30, 2**31 - 1, 0, 2) + bytes(44), "the file ends inside a batch"),
    ],
    ids=["garbage", "zeros", "three bytes", "a length of 2 GiB"],
)
def test_what_is_no_batch_is_named_with_its_place(folder: Folder, headpond: Any, rest: bytes, says: str) -> None:
    whole = b"".join(folder.batches)
    folder.write(".log", whole + rest)
    (fault,) = verify(headpond, folder.path).faults
    assert f"position {len(whole)}: {says}" in fault


def test_offsets_that_go_back_are_found(folder: Folder, headpond: Any) -> None:
    folder.write(".log", folder.batches[1] + folder.batches[0])
    Path(folder.file(".index")).unlink()
    Path(folder.file(".timeindex")).unlink()
    assert any("offset 0 can't follow 19" in fault for fault in verify(headpond, folder.path).faults)


def test_records_that_do_not_add_up_are_found_when_asked_for(folder: Folder, headpond: Any) -> None:
    folder.write(".log", _batch(0, [b"v"] * 5, count=4, last_offset_delta=4))
    for suffix in (".index", ".timeindex"):
        Path(folder.file(suffix)).unlink()
    assert verify(headpond, folder.path).faults == []  # the CRC is right
    (fault,) = verify(headpond, folder.path, "--records").faults
    assert "records can't be read" in fault


@pytest.mark.parametrize(
    ("suffix", "data", "says"),
    [
        (".index", struct.pack(">ii", 19, 3), "no batch starts there"),
        (".index", struct.pack(">ii", 29, 10**6), "behind the end of the segment"),
        (".index", struct.pack(">iiii", 19, 50, 19, 60), "does not follow"),
        (".index", struct.pack(">ii", 5, 10**6)[:7], "7 bytes at the end are no entry"),
        (".timeindex", struct.pack(">qi", 12345, 19), "offset 19 has timestamp 12345"),
        (".timeindex", struct.pack(">qi", TIME_MS, 99), "offset 99 lies behind the end"),
        (".snapshot", b"\0\1garbage-garbage", "snapshot"),
        (".txnindex", b"\0\7" + bytes(32), "entry 0"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_damaged_index_or_snapshot_is_found(
    folder: Folder, headpond: Any, suffix: str, data: bytes, says: str
) -> None:
    folder.write(suffix, data)
    (fault, *_) = verify(headpond, folder.path).faults
    assert fault.startswith(NAME + suffix) and says in fault
    dumped = headpond("log", "dump", folder.file(suffix))
    assert says in dumped.out and dumped.code == 1


def test_an_entry_that_would_skip_records_is_found(folder: Folder, headpond: Any) -> None:
    folder.write(".index", struct.pack(">ii", 5, len(folder.batches[0])))
    (fault,) = verify(headpond, folder.path).faults
    assert "the batch there begins at 10" in fault


def test_segments_that_overlap_are_found(folder: Folder, headpond: Any) -> None:
    (folder.path / "00000000000000000025.log").write_bytes(_batch(25, [b"v"] * 10))
    (fault,) = verify(headpond, folder.path).faults
    assert fault == "00000000000000000025.log: it begins before the segment in front of it ends (30)"


def test_leader_epochs_that_contradict_the_batches_are_found(folder: Folder, headpond: Any) -> None:
    (folder.path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 10\n")
    (fault, *_) = verify(headpond, folder.path).faults
    assert "leader epoch 0, but leader-epoch-checkpoint says 4" in fault


def test_leader_epochs_that_fall_are_found(folder: Folder, headpond: Any) -> None:
    (folder.path / "leader-epoch-checkpoint").unlink()
    folder.write(".log", _batch(0, [b"v"] * 10, leader_epoch=3, timestamp_ms=TIME_MS + 5) + folder.batches[1])
    folder.write(".index", b"")
    folder.write(".timeindex", b"")
    (fault,) = verify(headpond, folder.path).faults
    assert "leader epoch 0 after 3" in fault


@pytest.mark.parametrize(
    "name",
    [
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
def test_a_checkpoint_beyond_the_end_of_its_log_is_found(folder: Folder, headpond: Any, name: str) -> None:
    (folder.data_dir / name).write_text("0\n2\norders 0 31\nother 0 7\n")
    (fault,) = verify(headpond, folder.data_dir).faults
    assert fault == f"{name}: orders-0 is at offset 31, its log ends at 30"


def test_a_malformed_checkpoint_is_found(folder: Folder, headpond: Any) -> None:
    (folder.path / "leader-epoch-checkpoint").write_text("0\n7\n0 0\n")
    (fault,) = verify(headpond, folder.path).faults
    assert fault.startswith("leader-epoch-checkpoint: ")


def test_a_file_full_of_faults_is_told_by_its_first(folder: Folder, headpond: Any) -> None:
    bad = b"".join(_batch(offset, [b"v"], crc=1) for offset in range(100))
    folder.write(".log", bad)
    faults = [fault for fault in verify(headpond, folder.path).faults if ".log" in fault]
    assert len(faults) == 21 and faults[-1].endswith("and 80 more faults")


# --- wrong paths ------------------------------------------------------------------------------------------------------


def test_what_is_not_there_or_not_a_broker_s_is_refused_in_one_sentence(tmp_path: Path, headpond: Any) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "python-3").mkdir()  # named as a partition's folder, and none
    for path, says in (
        (tmp_path / "nothing", "there is no such file or folder"),
        (tmp_path / "notes.txt", "is no file of a broker"),
    ):
        for action in ("dump", "verify"):
            said = headpond("log", action, path)
            assert (said.code, said.out) == (1, "") and says in said.err and len(said.err.splitlines()) == 1
    assert "neither a data folder nor a partition's" in headpond("log", "verify", tmp_path).err
    assert "no file of a broker in" in headpond("log", "dump", tmp_path).err


def test_a_text_that_calls_itself_a_segment_is_garbage_from_its_first_byte(tmp_path: Path, headpond: Any) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_text("this is no segment but the notes of somebody who likes the suffix .log\n")
    said = headpond("log", "dump", path)
    assert said.code == 1 and "!! no batch starts like this" in said.out


def test_nothing_is_written(folder: Folder, headpond: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.data_dir.rglob("*")}
    headpond("log", "verify", folder.data_dir, "--records")
    headpond("log", "dump", folder.data_dir, "--records")
    assert {path: path.stat().st_mtime_ns for path in folder.data_dir.rglob("*")} == before


# --- aborted transactions ---------------------------------------------------------------------------------------------


class Transactions(Folder):
    """Records 0-1 in a transaction that is aborted at offset 2, record 3 in one that is committed at offset 4."""

    ABORTED = AbortedTxn(5, 0, 2, 3)

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        for suffix in (".index", ".timeindex"):
            self.write(suffix, b"")
        self.write(".log", b"".join(self.parts()))
        self.write(".txnindex", encode([self.ABORTED]))

    def parts(self) -> list[bytes]:
        writer = {"attributes": 0x10, "producer_id": 5, "producer_epoch": 1}
        return [
            _batch(0, [b"v"] * 2, base_sequence=0, **writer),
            _marker(2, is_abort=True),
            _batch(3, [b"v"], base_sequence=2, **writer),
            _marker(4, is_abort=False),
        ]

    def checkpoint(self, recovery_point: int) -> None:
        checkpoint = self.data_dir / "recovery-point-offset-checkpoint"
        checkpoint.write_text(f"0\n1\norders 0 {recovery_point}\n")


def _marker(offset: int, *, is_abort: bool) -> bytes:
    marker = build_end_txn_marker(
        producer_id=5, producer_epoch=1, is_abort=is_abort, coordinator_epoch=0, timestamp=TIME_MS
    )
    stamp(marker, 0, base_offset=offset, leader_epoch=0)
    return bytes(marker)


@pytest.fixture
def transactions(tmp_path: Path) -> Transactions:
    return Transactions(tmp_path / "data")


MISSING = f"{NAME}.txnindex: it has no entry for the transaction that was aborted at offset 2"


@pytest.mark.parametrize("lost", ["the file", "its entries"])
def test_an_aborted_transaction_that_readers_would_not_be_told_of_is_a_fault(
    transactions: Transactions, lost: str, headpond: Any
) -> None:
    transactions.checkpoint(5)
    assert verify(headpond, transactions.data_dir).faults == []
    if lost == "the file":
        Path(transactions.file(".txnindex")).unlink()
    else:
        transactions.write(".txnindex", b"")
    assert verify(headpond, transactions.data_dir).faults == [MISSING]
    assert verify(headpond, transactions.path).faults == [MISSING]
    said = headpond("log", "verify", transactions.data_dir)
    assert ".txnindex that stays where it is" in said.err and said.code == 1


def test_entries_that_the_recovery_point_does_not_vouch_for_may_be_on_their_way(
    transactions: Transactions, headpond: Any
) -> None:
    Path(transactions.file(".txnindex")).unlink()
    transactions.checkpoint(2)
    assert verify(headpond, transactions.data_dir).faults == verify(headpond, transactions.path).faults == []


def test_of_a_folder_that_was_set_aside_no_entries_are_promised(transactions: Transactions, headpond: Any) -> None:
    Path(transactions.file(".txnindex")).unlink()
    transactions.checkpoint(5)
    transactions.path.rename(transactions.data_dir / f"orders-0.{'0' * 32}-stray")
    assert verify(headpond, transactions.data_dir).faults == []


def test_behind_a_gap_that_compaction_left_nobody_misses_an_entry(transactions: Transactions, headpond: Any) -> None:
    """The end of the transaction of record 3 is gone, and so are the records of the one that was aborted at 7."""
    transactions.write(".log", b"".join([*transactions.parts()[:3], _marker(7, is_abort=True)]))
    assert verify(headpond, transactions.path).faults == []
