"""From a run of the bench to its verdicts, to RESULTS.md, and to the figures and the chart of the README."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from bench import before, figures, report, results, servers
from bench.measure import CPU_PER_REQUEST, MB_PER_S, REQUESTS_PER_S, Bar, Metric, Outcome, Samples, Scenario
from bench.scenarios import ALL

LOWER, HIGHER = CPU_PER_REQUEST, MB_PER_S


def samples(metric: Metric, **rows: list[float]) -> Samples:
    return {name.replace("_", "-"): [{metric.key: value} for value in values] for name, values in rows.items()}


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "values", "verdict"),
    [
        (HIGHER, [110, 105, 101], "holds"),
        (HIGHER, [100, 50, 40], "holds"),  # the best alone
        (HIGHER, [99, 98, 97], "within 5 %"),
        (HIGHER, [95, 50, 40], "within 5 %"),
        (HIGHER, [94.9, 94, 93], "missed"),
        (LOWER, [90, 95, 99], "holds"),
        (LOWER, [100, 200, 300], "holds"),
        (LOWER, [105, 200, 300], "within 5 %"),
        (LOWER, [105.1, 106, 107], "missed"),
    ],
)
def test_a_bar_holds_when_the_best_run_or_the_median_reaches_it(
    metric: Metric, values: list[float], verdict: str
) -> None:
    bar = Bar("a bar", metric, absolute=100.0)
    assert bar.judge(samples(metric, headpond=values))["verdict"] == verdict


def test_a_bar_beside_a_peer_holds_by_the_median_alone() -> None:
    """The peer's one lucky run makes its best, not its median."""
    found = samples(HIGHER, headpond=[100, 100, 100], kafka=[200, 50, 50])
    outcome = Bar("1.3x", HIGHER, (("kafka", 1.3),)).judge(found)
    assert (outcome["best_ratio"], outcome["median_ratio"], outcome["verdict"]) == (0.5, 2.0, "holds")


def test_a_bar_that_a_missing_peer_could_make_easier_is_not_judged() -> None:
    bar = Bar("either", HIGHER, (("kafka", 1.0), ("mock", 0.7)))
    assert bar.judge(samples(HIGHER, headpond=[99], kafka=[100]))["verdict"] == "not measured"
    assert bar.judge(samples(HIGHER, headpond=[100], kafka=[100]))["verdict"] == "holds"


def test_verdicts_are_told_in_the_report_and_those_that_are_near_count_as_reached() -> None:
    from bench.__main__ import all_hold

    scenario = Scenario("s", "a load", "how", (HIGHER,), (Bar("100", HIGHER, absolute=100.0),), lambda _: {})
    near, missed = (run_of(Outcome(scenario, samples(HIGHER, headpond=[value])).as_json()) for value in (97, 50))
    assert "-> within 5 %" in report.text(near) and all_hold(near)
    assert "-> NO" in report.text(missed) and not all_hold(missed)


# --- RESULTS.md -------------------------------------------------------------------------------------------------------


def outcome(name: str, metric: Metric, **rows: list[float]) -> dict[str, Any]:
    return Outcome(Scenario(name, "a load", "how", (metric,), (), lambda _: {}), samples(metric, **rows)).as_json()


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
        "versions": {"Headpond": "0.1.0", "Apache Kafka": "4.3.1"},
        "plan": {"quick": quick, "repetitions": 5},
        "headpond_settings": [],
        "scenarios": list(scenarios),
    }


def test_results_replace_what_was_measured_beside_the_same_and_leave_the_others() -> None:
    order = ["produce", "requests"]
    first = run_of(
        outcome("requests", LOWER, headpond=[8, 9, 10], before=[10, 10, 20]),
        outcome("produce", HIGHER, headpond=[0.5]),
    )
    entries = results.merged([], first, order)
    page = results.page(entries)
    assert page.index("## produce") < page.index("## requests: a load, beside an earlier commit")
    assert "| headpond | 8.0 (9.0, 22 %) |" in page and "| headpond, to before | 0.80x (0.90x) |" in page
    assert "commit abc1234, before: 1704248; Headpond 0.1.0, Apache Kafka 4.3.1; 2 cores (a CPU), 4 GB" in page
    assert "load 0.2; 3 runs" in page and "load 0.2; 1 run\n" in page
    beside_kafka = run_of(
        outcome("requests", LOWER, headpond=[7], kafka=[9]), outcome("failed", LOWER), commit="def5678"
    )
    entries = results.merged(entries, beside_kafka, order)
    page = results.page(entries)
    assert page.index("requests: a load, beside Apache Kafka") < page.index(
        "requests: a load, beside an earlier commit"
    )
    assert "| headpond | 7.0 |" in page and "8.0 (9.0, 22 %)" in page and "## failed" not in page
    entries = results.merged(entries, run_of(outcome("requests", LOWER, headpond=[6], before=[9])), order)
    page = results.page(entries)
    assert "| headpond | 6.0 |" in page and "| headpond | 7.0 |" in page and "8.0 (9.0, 22 %)" not in page


def test_a_short_run_is_not_for_the_page_nor_one_of_a_commit_that_nobody_can_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, file in (("STORE", "R.json"), ("PAGE", "R.md"), ("README", "README.md"), ("CHART", "figures.svg")):
        monkeypatch.setattr(results, name, tmp_path / file)
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(before, "is_in_history", lambda commit: commit == "abc1234")
    results.README.write_text(f"# Read me\n\n{figures.BEGIN}\n{figures.END}\n\nThe end.\n")
    assert results.main([]) == 1 and "no result file" in capsys.readouterr().err
    (tmp_path / "results").mkdir()
    file = tmp_path / "results" / "2026-11-17-120000.json"
    measured = outcome("requests-16-connections", REQUESTS_PER_S, headpond=[30_000, 20_000], kafka=[20_000, 10_000])
    file.write_text(json.dumps(run_of(measured, quick=True)))
    assert results.main([]) == 1 and not results.PAGE.exists()
    assert "a short run" in capsys.readouterr().err
    file.write_text(json.dumps(run_of(measured, commit="def5678 with changes")))
    assert results.main([]) == 1 and not results.PAGE.exists()
    assert "measured at def5678 with changes, which is not in this history" in capsys.readouterr().err
    file.write_text(json.dumps(run_of(measured)))
    assert results.main([str(file)]) == 0 and "## requests-16-connections" in results.PAGE.read_text()
    assert "30,000 (25,000) requests/s | 20,000 (15,000) requests/s | 1.50x (1.67x)" in results.README.read_text()
    assert results.README.read_text().endswith("\n\nThe end.\n") and "20,000" in results.CHART.read_text()


# --- the README's figures ---------------------------------------------------------------------------------------------


def entries_of(**rows: list[float]) -> list[results.Entry]:
    return results.merged([], run_of(outcome("requests-16-connections", REQUESTS_PER_S, **rows)), [])


def test_a_row_of_the_readme_needs_both_brokers_in_the_same_run() -> None:
    assert figures.rows(entries_of(headpond=[1.0])) == []
    assert figures.rows(entries_of(headpond=[1.0], before=[1.0])) == []
    assert figures.table([]) == figures.NONE_YET
    (row,) = figures.rows(entries_of(headpond=[3.0, 1.0], kafka=[1.0, 1.0]))
    assert (row.ratio("best"), row.ratio("median")) == (3.0, 2.0)
    assert "Best (median) of 2 interleaved runs, 2026-11-17; Apache Kafka 4.3.1, " in figures.table([row])


def test_a_row_of_the_readme_says_where_a_lower_figure_is_the_better_one() -> None:
    memory = Metric("rss_mb", "MB", "lower")
    (row,) = figures.rows(results.merged([], run_of(outcome("idle-memory", memory, headpond=[50], kafka=[500])), []))
    assert "| memory at rest (lower is better) | 50" in figures.table([row])
    assert "is better" not in figures.table(figures.rows(entries_of(headpond=[1.0], kafka=[1.0])))


def test_the_longer_bar_of_a_pair_has_the_full_length() -> None:
    chart = ET.fromstring(figures.chart(entries_of(headpond=[4000.0], kafka=[1000.0])))
    bars = chart.findall("{http://www.w3.org/2000/svg}rect")[-2:]
    assert [float(bar.attrib["width"]) for bar in bars] == [figures.LONGEST, figures.LONGEST / 4]


def test_there_are_six_figures_at_most_of_loads_that_are_measured() -> None:
    known = {scenario.name: {metric.key for metric in scenario.metrics} for scenario in ALL}
    assert len(figures.HEADLINES) <= 6
    for headline in figures.HEADLINES:
        assert headline.metric in known[headline.scenario] and headline.peer in servers.KINDS


def test_nothing_that_is_made_from_the_results_was_written_by_hand() -> None:
    entries = results.load()
    assert results.page(entries) == results.PAGE.read_text()
    assert figures.chart(entries) == results.CHART.read_text()
    readme = results.README.read_text()
    assert figures.put_into(readme, entries) == readme


def test_the_version_of_kafka_is_the_one_that_is_started() -> None:
    assert servers.kafka_version().count(".") == 2
