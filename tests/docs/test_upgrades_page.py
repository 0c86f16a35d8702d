"""The page on upgrades names every file of a data folder, and the numbers that its formats have now."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from pathlib import Path

from headpond.runtime.metastore_database import SCHEMA_VERSION
from headpond.storage.folder import names
from support.batches import build
from support.broker import BrokerProcess
from support.verbs import append, create_topic
from support.wire import Wire

PAGE = (Path(__file__).parents[2] / "docs" / "upgrades.md").read_text()


def patterns() -> list[str]:
    cells = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
    return [found.rpartition("/")[2] for cell in cells for found in re.findall(r"`([^`]+)`", cell)]


def test_every_file_that_a_broker_leaves_is_in_the_table(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(settings={"offsets.topic.num.partitions": 1}).start()
    with Wire(broker.bootstrap_servers) as wire:
        append(wire, create_topic(wire, "orders"), build([b"x"]))
    broker.stop()
    files = {path.name for path in broker.data_dir.rglob("*") if path.is_file()}
    assert {"metadata.sqlite", "meta.properties", ".kafka_cleanshutdown"} <= files
    known = [*patterns(), "metadata.sqlite-wal", "metadata.sqlite-shm"]
    assert {name for name in files if not any(fnmatch.fnmatch(name, each) for each in known)} == set()


def test_every_file_of_ours_is_in_the_table_with_its_number() -> None:
    assert set(names.OURS) <= set(patterns())
    assert f"`user_version`, now {SCHEMA_VERSION}" in PAGE
    assert f"in its first bytes, now `{names.JOURNAL_MAGIC.decode()}`" in PAGE


def test_the_example_of_a_new_name_is_one_that_is_refused() -> None:
    (new,) = re.findall(r"could become `([^`]+)`", PAGE)
    assert new.endswith(names.OURS_IN_OTHER_VERSIONS) and new not in names.OURS
