"""A data folder whose metadata file is lost or damaged: the broker refuses to start, in one sentence that says how to
get the topics back, and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from support.batches import build
from support.broker import BrokerProcess, run_headpond
from support.variants import kinds
from support.verbs import append, create_topic, describe_topic, stored
from support.wire import Wire

STORE = "metadata.sqlite"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped broker with a topic of three partitions."""
    broker = BrokerProcess(tmp_path_factory.mktemp("original"))
    try:
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            topic = create_topic(wire, "orders", partitions=3)
            for partition, value in enumerate([b"one", b"two", b"three"]):
                append(wire, topic, build([value]), partition=partition)
        broker.stop()
        return broker.data_dir
    finally:
        broker.close()


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "data"))


def sql(statement: str, *values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        connection = sqlite3.connect(folder / STORE)
        with connection:
            assert connection.execute(statement, values).rowcount
        connection.close()

    return change


def garbage(at: int, size: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / STORE).open("r+b") as file:
            file.seek(at)
            file.write(b"\xff" * size)

    return change


def no_store(folder: Path) -> None:
    (folder / STORE).unlink()


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (no_store, "orders-0, orders-1, orders-2"),
    "empty": (lambda folder: os.truncate(folder / STORE, 0), "missing or empty"),
    "half": (lambda folder: os.truncate(folder / STORE, 12_288), "malformed"),
    "a garbled header": (garbage(0, 100), "not a database"),
    "garbage in the middle": (garbage(5_000, 8_000), "malformed"),
    "bad JSON": (sql("UPDATE entries SET value = ? WHERE key = 'topics/orders'", b"{nope"), "bad entry topics/orders"),
    "another type": (
        sql("UPDATE entries SET value = ? WHERE key = 'topics/orders'", b'{"id": 7, "partitions": "x"}'),
        "bad entry topics/orders",
    ),
    "no partitions": (
        sql("UPDATE entries SET value = replace(value, '3}', '0}') WHERE key = 'topics/orders'"),
        "bad entry topics/orders",
    ),
    "a number for a value": (sql("UPDATE entries SET value = 5 WHERE key = 'cluster'"), "bad entry cluster"),
    "a text for a revision": (sql("UPDATE entries SET mod_revision = 'x' WHERE key = 'cluster'"), "bad entry cluster"),
    "a key that is no partition": (
        sql("UPDATE entries SET key = key || 'x' WHERE key LIKE 'partitions/%/1'"),
        "/1x: '1x' is not a number",
    ),
    "a bad topic id": (
        sql("UPDATE entries SET key = 'partitions/!!!!!!!!!!!!!!!!!!!!!!/1' WHERE key LIKE 'partitions/%/1'"),
        "bad entry partitions/!",
    ),
    "a key that is no broker": (sql("UPDATE entries SET key = 'brokers/x' WHERE key = 'brokers/1'"), "brokers/x"),
    "a missing partition": (sql("DELETE FROM entries WHERE key LIKE 'partitions/%/1'"), "it is missing, and the topic"),
    "bad settings": (sql("UPDATE entries SET key = 'configs/topic/orders' WHERE key LIKE 'features/g%'"), "configs/"),
    "no state": (sql("DELETE FROM state"), STORE),
    "a state of another type": (sql("UPDATE state SET revision = 'x'"), STORE),
}


ORDINARY_DAMAGE = {"missing", "half", "a garbled header", "bad JSON", "a missing partition", "no state"}


@pytest.mark.parametrize("damage", kinds(DAMAGE, ordinary=ORDINARY_DAMAGE))
def test_a_broker_refuses_a_damaged_metadata_file_in_one_sentence_and_leaves_the_folders_alone(
    folder: Path, damage: str
) -> None:
    spoil, expected = DAMAGE[damage]
    spoil(folder)
    before = {str(path.relative_to(folder)) for path in folder.glob("orders-*/*")}
    for _ in range(2):  # the first try leaves nothing that the second one would take for a store
        done = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder))
        assert (done.returncode, done.stdout) == (1, "")
        (sentence,) = done.stderr.splitlines()
        assert expected in sentence and STORE in sentence
        assert "restore" in sentence and "headpond adopt" in sentence
    assert {str(path.relative_to(folder)) for path in folder.glob("orders-*/*")} == before


def test_adopt_refuses_a_bad_entry_in_one_sentence_too(folder: Path) -> None:
    DAMAGE["bad JSON"][0](folder)
    done = run_headpond("adopt", "--data-dir", str(folder))
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert "bad entry topics/orders" in sentence


def test_a_write_ahead_log_without_its_file_is_not_thrown_away(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        append(wire, create_topic(wire, "orders"), build([b"x"]))
    broker.kill()
    log = broker.data_dir / f"{STORE}-wal"
    held = log.read_bytes()
    (broker.data_dir / STORE).unlink()
    done = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(broker.data_dir))
    assert done.returncode == 1 and f"{STORE}-wal" in done.stderr
    assert log.read_bytes() == held


def test_adopt_brings_the_topics_back_under_their_ids(folder: Path, make_broker: Callable[..., BrokerProcess]) -> None:
    known = make_broker("before")
    known.data_dir = Path(shutil.copytree(folder, folder.parent / "known"))
    with Wire(known.start().bootstrap_servers) as wire:
        topic = describe_topic(wire, "orders")
        batches = [stored(wire, topic, partition=n)[0].data for n in range(3)]
    no_store(folder)
    refused = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder))
    assert refused.returncode == 1
    assert run_headpond("adopt", "--data-dir", str(folder)).returncode == 0
    broker = make_broker("after")
    broker.data_dir = folder
    with Wire(broker.start().bootstrap_servers) as wire:
        found = describe_topic(wire, "orders")
        assert found == topic
        assert [stored(wire, found, partition=n)[0].data for n in range(3)] == batches


@pytest.mark.parametrize(
    "name",
    kinds(
        ["__consumer_offsets-3", "__cluster_metadata-0", "backup-20261117", "orders-0.0123abcd-delete", "orders"],
        ordinary={"__consumer_offsets-3", "backup-20261117"},
    ),
)
def test_a_first_start_takes_folders_that_are_not_topics_for_what_they_are(
    make_broker: Callable[..., BrokerProcess], name: str
) -> None:
    broker = make_broker()
    (broker.data_dir / name).mkdir(parents=True)
    if name != "backup-20261117":
        (broker.data_dir / name / "00000000000000000000.log").touch()
    broker.start()
    broker.stop()


def test_a_broker_with_topics_starts_beside_folders_that_it_does_not_know(
    folder: Path, make_broker: Callable[..., BrokerProcess]
) -> None:
    shutil.copytree(folder / "orders-0", folder / "payments-0")
    broker = make_broker()
    broker.data_dir = folder
    with Wire(broker.start().bootstrap_servers) as wire:
        assert describe_topic(wire, "orders").name == "orders"
    assert (folder / "payments-0").is_dir()
