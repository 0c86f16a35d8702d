"""The bench compares with an earlier commit: how it is built, started and shown. Nothing is measured here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import before, report, results, servers
from bench.measure import CPU_PER_GB, CPU_PER_REQUEST, Outcome, Samples, Scenario
from bench.tools import Tools

PYPROJECT = """
[build-system]
requires = []
build-backend = "none"
[project]
name = "{name}"
version = "1"
scripts = {{ {name} = "{name}:main" }}
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits, between which the package got another name; what would install them notes it instead."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    for name in ("oldname", "newname"):
        (folder / "pyproject.toml").write_text(PYPROJECT.format(name=name))
        (folder / "constraints.txt").write_text("")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", name)
    real_run = before._run

    def run(*command: str) -> str:
        if command[0] == "git":
            return real_run(*command)
        with (tmp_path / "installed").open("a") as note:
            note.write(" ".join(command[-4:]) + "\n")
        return ""

    monkeypatch.setattr(before, "HERE", folder)
    monkeypatch.setattr(before, "FOLDER", tmp_path / "build" / "before")
    monkeypatch.setattr(before, "_run", run)
    return folder


def installations(folder: Path) -> int:
    return (folder.parent / "installed").read_text().count("--editable")


def test_a_commit_is_checked_out_and_installed_once(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD~1")
    for _ in range(2):
        before.build("HEAD~1")
    assert git(before.FOLDER / "tree", "rev-parse", "HEAD") == first
    assert installations(repository) == 1


def test_another_commit_or_a_lost_folder_is_built_anew(repository: Path) -> None:
    before.build("HEAD~1")
    before.build("HEAD")
    assert git(before.FOLDER / "tree", "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD")
    subprocess.run(["rm", "-r", str(before.FOLDER)], check=True)
    before.build("HEAD")
    assert installations(repository) == 3


def test_a_commit_that_is_not_there_is_said_in_words(repository: Path, tmp_path: Path) -> None:
    server = servers.Before(tmp_path / "data", Tools.__new__(Tools))
    server.commit = "nosuchcommit"
    with pytest.raises(servers.CannotStart, match="nosuchcommit"):
        server.prepare()


def test_it_is_started_by_the_name_that_it_had(repository: Path, tmp_path: Path) -> None:
    server = servers.Before(tmp_path / "data", Tools.__new__(Tools))
    server.commit = "HEAD~1"
    server.settings = ("headpond.flush=os", "num.partitions=3")
    server.prepare()
    program, *arguments = server.command()
    assert program == str(before.FOLDER / "venv" / "bin" / "oldname")
    assert arguments[:2] == ["serve", "--listen"]
    assert "oldname.flush=os" in arguments and "num.partitions=3" in arguments


def test_it_runs_only_if_it_is_asked_for() -> None:
    assert "before" in servers.KINDS and "before" not in servers.ORDINARY


# --- what is shown ----------------------------------------------------------------------------------------------------


def outcome(name: str, samples: Samples) -> dict[str, Any]:
    metrics = (CPU_PER_REQUEST, CPU_PER_GB)
    return Outcome(Scenario(name, "a load", "how", metrics, (), lambda _: {}), samples).as_json()


def cpu(*values: float) -> list[dict[str, float]]:
    return [{"cpu_us_per_request": value} for value in values]


def run_of(*scenarios: dict[str, Any], commit: str = "abc1234", quick: bool = False) -> dict[str, Any]:
    machine = {
        "cores": 2,
        "cpu": "a CPU",
        "memory_gb": 4,
        "kernel": "6.1",
        "filesystem": "ext4",
        "python": "3.11.7",
        "load_1_min": 0.25,
    }
    return {
        "date": "2026-11-17",
        "commit": commit,
        "before": "1704248",
        "machine": machine,
        "plan": {"quick": quick, "repetitions": 5},
        "headpond_settings": [],
        "scenarios": list(scenarios),
    }


def test_each_row_is_compared_with_the_same_row_of_before() -> None:
    samples = {
        "headpond": cpu(8, 9, 10, 11, 12),
        "before": cpu(10, 20, 20, 30, 40),
        "idempotent": cpu(5),
        "before, idempotent": cpu(10),
        "kafka": cpu(100),
    }
    shown = outcome("requests", samples)
    assert shown["ratios"] == {
        "headpond": {"cpu_us_per_request": {"best": 0.8, "median": 0.5}},
        "idempotent": {"cpu_us_per_request": {"best": 0.5, "median": 0.5}},
    }
    assert "to before: 0.80x (0.50x) CPU-us/req" in report.scenario_text(shown)


def test_results_replace_the_sections_of_their_scenarios_and_leave_the_others() -> None:
    first = run_of(
        outcome("requests", {"headpond": cpu(8, 9, 10), "before": cpu(10, 10, 20)}),
        outcome("produce", {"headpond": [{"cpu_s_per_gb": 0.5}]}),
    )
    page = results.updated("", first, ["produce", "requests"])
    assert page.index("## produce") < page.index("## requests: a load")
    assert "| headpond | 8.0 (9.0) |" in page and "| headpond, to before | 0.80x (0.90x) |" in page
    assert (
        "commit abc1234, before: 1704248; 2 cores (a CPU), 4 GB, kernel 6.1" in page and "3 runs, best (median)" in page
    )
    second = run_of(outcome("requests", {"headpond": cpu(7)}), outcome("failed", {}), commit="def5678")
    again = results.updated(page, second, ["produce", "requests"])
    assert "| headpond | 7.0 |" in again and "8.0 (9.0)" not in again and "## failed" not in again
    assert again.count("commit abc1234") == 1 and again.count("commit def5678") == 1
    assert results.updated(again, second, ["produce", "requests"]) == again


def test_a_short_run_is_not_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "PAGE", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    assert results.main([]) == 1 and "no result file" in capsys.readouterr().err
    file = tmp_path / "2026-11-17-120000.json"
    file.write_text(json.dumps(run_of(outcome("requests-16-connections", {"headpond": cpu(7)}), quick=True)))
    assert results.main([]) == 1 and not results.PAGE.exists()
    file.write_text(json.dumps(run_of(outcome("requests-16-connections", {"headpond": cpu(7)}))))
    assert results.main([str(file)]) == 0 and "## requests-16-connections" in results.PAGE.read_text()


def test_an_unknown_server_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--servers", "headpond,afore", "--data-root", str(tmp_path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "unknown server afore" in done.stderr
