"""Versions of a table with upsert: whose they are, and that a switch is durable."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.runtime.disk_file import DiskFile
from headpond.runtime.files import DiskFileSystem
from headpond.spark.pipeline import versions as module
from headpond.spark.pipeline.failures import WrongFolder
from headpond.spark.pipeline.versions import Versions

MINE, THEIRS = "0123456789ab", "ba9876543210"


def made(table: Path, name: str, content: str = "rows") -> Path:
    folder = table / name
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_text(content)
    return folder


def test_only_versions_of_its_own_are_removed(tmp_path: Path) -> None:
    names = [f"{MINE}-0000000{number}" for number in range(4)]
    others = [f"{THEIRS}-00000001", "backup-20240101", "report-2024", f"{MINE}-2024", f"x{MINE}-00000001"]
    for name in (*names, *others):
        made(tmp_path, name)
    elsewhere = made(tmp_path / "else", "where")
    (tmp_path / f"{MINE}-00000009").symlink_to(elsewhere)
    Versions(str(tmp_path), MINE).remove_but({names[2], names[3]})
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*names[2:], *others, "else", f"{MINE}-00000009"}
    assert (elsewhere / "part-0.parquet").exists()


@pytest.mark.parametrize("name", ["backup-20240101", "report-2024", "notes.txt", f"{THEIRS}-00000001", "current"])
def test_a_folder_that_holds_anything_else_is_refused(tmp_path: Path, name: str) -> None:
    made(tmp_path, f"{MINE}-00000001")
    versions = Versions(str(tmp_path), MINE)
    versions.check("")
    (tmp_path / name).write_text("precious")
    with pytest.raises(WrongFolder, match=f"sink x: {tmp_path} holds '{name}', which is not of this table"):
        versions.check("sink x: ")


def test_a_table_of_another_pipeline_is_refused_and_so_is_any_for_one_that_has_not_run_yet(tmp_path: Path) -> None:
    made(tmp_path, f"{MINE}-00000001")
    (tmp_path / "current").symlink_to(f"{MINE}-00000001")
    (tmp_path / "current.new").symlink_to(f"{MINE}-00000001")
    (tmp_path / ".DS_Store").write_text("")
    mine = Versions(str(tmp_path), MINE)
    mine.check("")
    assert mine.written() == 1
    for identity in (THEIRS, None):
        with pytest.raises(WrongFolder, match="was written by another query"):
            Versions(str(tmp_path), identity).check("")
        assert Versions(str(tmp_path), identity).written() == -1
    Versions(str(tmp_path / "not there"), None).check("")
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongFolder, match="is a file"):
        Versions(str(tmp_path / "file"), MINE).check("")


def test_a_version_is_on_disk_before_the_link_leads_to_it_and_the_link_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    switch = module.switch_link

    def noted_switch(path: str, target: str) -> None:
        switch(path, target)
        done.append("switch")

    class Noted(DiskFileSystem):
        def open(self, path: str, **more: bool) -> DiskFile:
            done.append(f"open {Path(path).name}")
            return super().open(path, **more)

        def sync_dir(self, path: str) -> None:
            done.append(f"sync folder {Path(path).name}")
            super().sync_dir(path)

    sync = DiskFile.sync

    def noted_sync(self: DiskFile) -> None:
        done.append("sync")
        sync(self)

    monkeypatch.setattr(module, "switch_link", noted_switch)
    monkeypatch.setattr(DiskFile, "sync", noted_sync)
    table = tmp_path / "table"
    version = made(table, f"{MINE}-00000003")
    made(version, "inner")
    Versions(str(table), MINE, Noted()).switch(version.name)
    assert done == [
        *("open part-0.parquet", "sync", "sync folder inner"),
        *("open part-0.parquet", "sync", f"sync folder {version.name}", "sync folder table"),
        *("switch", "sync folder table"),
    ]
    assert (table / "current").readlink().name == version.name
