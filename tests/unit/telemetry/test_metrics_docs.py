"""The page and the dashboard name metrics that exist, and all of them."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headpond.telemetry import catalogue, endpoint, exposition, http, logs, metrics, requests
from headpond.telemetry.families import Family

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "operations-metrics.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs" / "grafana" / "headpond.json").read_text())
METRIC = re.compile(r"\b(?:headpond|process)_[a-z0-9_]+")
SELECTOR = re.compile(r"\b((?:headpond|process)_[a-z0-9_]+)\{([^}]*)\}")
LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)")
GROUPING = re.compile(r"\bby \(([^)]*)\)")


def samples(family: Family) -> set[str]:
    if family.kind == "histogram":
        return {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
    return {family.name}


FAMILY_OF_SAMPLE = {sample: family for family in catalogue.ALL for sample in samples(family)}


def panels() -> Iterator[dict[str, Any]]:
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def test_the_table_is_up_to_date() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "metrics_page.py"))
    assert tool["page"]() == PAGE, "run tools/metrics_page.py"


def test_the_page_names_no_metric_that_does_not_exist() -> None:
    known = FAMILY_OF_SAMPLE.keys() | {family.name for family in catalogue.ALL}
    assert set(METRIC.findall(PAGE)) <= known


@pytest.mark.parametrize(
    "words",
    [
        f"slices of {exposition.LINES_PER_SLICE} lines",
        f"sends nothing for {endpoint.REQUEST_S_MAX:.0f} s",
        f"{http.REQUEST_BYTES_MAX:,} bytes",
        f"does not read for {endpoint.STALL_S_MAX:.0f} s",
        f"{endpoint.CONNECTIONS_MAX} may be there at once",
        f"at most {metrics.SERIES_MAX:,} series",
        f"up to {requests.STRIDE_MAX} others",
        f"After {logs.BURST} messages of one kind within {logs.WINDOW_S:.0f} s",
    ],
)
def test_the_page_tells_the_limits_as_they_are(words: str) -> None:
    assert words in " ".join(PAGE.split())


def test_every_panel_asks_for_metrics_that_exist_with_labels_that_they_have() -> None:
    assert len(expressions()) > 30
    for expression in expressions():
        named = METRIC.findall(expression)
        assert named, expression
        for sample in named:
            assert sample in FAMILY_OF_SAMPLE, f"{sample} in {expression}"
        for sample, selector in SELECTOR.findall(expression):
            allowed = {*FAMILY_OF_SAMPLE[sample].labels, "instance", "le"}
            assert set(LABEL.findall(selector)) <= allowed, expression
        for grouping in GROUPING.findall(expression):
            labels = {label for sample in named for label in FAMILY_OF_SAMPLE[sample].labels}
            assert {label.strip() for label in grouping.split(",")} <= labels | {"instance", "le"}, expression
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")


def test_counters_are_never_shown_without_a_rate_and_gauges_never_with_one() -> None:
    for expression in expressions():
        for sample in METRIC.findall(expression):
            family = FAMILY_OF_SAMPLE[sample]
            has_rate = re.search(rf"\b(rate|increase)\({sample}\b", expression) is not None
            assert has_rate == (family.kind in ("counter", "histogram")), expression


def test_the_variables_ask_for_metrics_that_exist() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "instance", "topic"}
    for name in ("instance", "topic"):
        assert set(METRIC.findall(variables[name]["query"]["query"])) <= FAMILY_OF_SAMPLE.keys()
    used = {name for expression in expressions() for name in re.findall(r"\$([a-z]+)", expression)}
    assert used <= variables.keys()


def test_panels_have_their_own_ids_and_places() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_panel_leaves_the_choice_of_the_prometheus_to_the_reader() -> None:
    for panel in panels():
        for asker in (panel, *panel.get("targets", ())):
            if asker.get("type") != "row":
                assert asker["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]


def test_what_matters_is_on_the_dashboard() -> None:
    shown = {FAMILY_OF_SAMPLE[sample] for expression in expressions() for sample in METRIC.findall(expression)}
    left_out = {family.name for family in catalogue.ALL if family not in shown}
    assert left_out == {
        "headpond_topics",
        "headpond_partitions_led",
        "headpond_partitions_without_series",
        "headpond_retention_runs_total",
        "headpond_retention_segments_total",
        "headpond_compaction_cleanings_total",
        "headpond_compaction_removed_records_total",
        "headpond_compaction_seconds_total",
        "headpond_recovery_scanned_bytes",
        "headpond_log_messages_suppressed_total",
        "headpond_scrape_failures_total",
        "process_virtual_memory_bytes",
        "process_start_time_seconds",
    }
