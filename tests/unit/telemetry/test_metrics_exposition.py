"""The text that a scraper gets, read back with Prometheus' own parsers; in slices; whatever a source does."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from headpond.telemetry.accept import choose
from headpond.telemetry.exposition import LINES_PER_SLICE, OPEN_METRICS, TEXT, Format, exposition, number
from headpond.telemetry.families import Family, Registry
from headpond.telemetry.metrics import Counter, Histogram, Labelled, Point

NASTY = 'a"b\\c\nd é \U0001f600'


def sample_registry() -> Registry:
    registry = Registry()
    requests = Labelled(Counter, labels_count=2)
    requests.at("Produce", "NONE").value += 3
    requests.at(NASTY, "").value += 1
    registry.add(
        Family("requests_total", "counter", "Requests, with a \\ in the help.", ("api", "error")), requests.points
    )
    wait = Histogram((0.25, 1.0))
    wait.observe(0.2)
    wait.observe(0.5, 2)
    wait.observe(30.0)
    registry.add(Family("wait_seconds", "histogram", "A wait."), wait.points)
    registry.add(Family("build_info", "info", "The build.", ("version",)), lambda: [(("1.2",), 1)])
    registry.add(Family("free_bytes", "gauge", "Free bytes."), lambda: [((), 2**40)])
    registry.add(Family("nothing_yet", "gauge", "A family without a point."), list)
    return registry


def whole(registry: Registry, format: Format) -> str:
    return b"".join(exposition(registry, format, Counter())).decode()


@pytest.mark.parametrize(("format", "parse"), [(TEXT, parse_text), (OPEN_METRICS, parse_open_metrics)])
def test_what_is_written_is_what_prometheus_reads(format: Format, parse: object) -> None:
    families = {family.name: family for family in parse(whole(sample_registry(), format))}  # type: ignore[operator]
    assert {name: family.type for name, family in families.items() if name != "nothing_yet"} == {
        "requests": "counter",
        "wait_seconds": "histogram",
        "build" if format is OPEN_METRICS else "build_info": "info" if format is OPEN_METRICS else "gauge",
        "free_bytes": "gauge",
    }
    counted = {tuple(sample.labels.values()): sample.value for sample in families["requests"].samples}
    assert counted == {("Produce", "NONE"): 3, (NASTY, ""): 1}
    assert families["requests"].documentation == "Requests, with a \\ in the help."
    waits = {(sample.name, sample.labels.get("le")): sample.value for sample in families["wait_seconds"].samples}
    assert waits == {
        ("wait_seconds_bucket", "0.25"): 1,
        ("wait_seconds_bucket", "1.0"): 3,
        ("wait_seconds_bucket", "+Inf"): 4,
        ("wait_seconds_sum", None): 31.2,
        ("wait_seconds_count", None): 4,
    }
    assert families["free_bytes"].samples[0].value == 2**40


def test_open_metrics_names_units_and_ends() -> None:
    text = whole(sample_registry(), OPEN_METRICS)
    assert "# UNIT free_bytes bytes\n" in text
    assert "# TYPE requests counter\n" in text
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (True, "1"), (0.1, "0.1"), (float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert number(value) == text


def test_a_long_family_comes_in_slices_and_a_histogram_is_never_torn() -> None:
    registry = Registry()
    registry.add(
        Family("size_bytes", "gauge", "Sizes.", ("partition",)), lambda: (((str(n),), n) for n in range(10_000))
    )
    many = Labelled(Histogram)
    for n in range(200):
        many.at(str(n)).observe(n)
    registry.add(Family("wait_seconds", "histogram", "Waits.", ("api",)), many.points)
    slices = list(exposition(registry, TEXT, Counter()))
    lines_max = LINES_PER_SLICE + len(Histogram().bounds) + 3
    assert len(slices) > 40
    for part in slices:
        assert part.count(b"\n") <= lines_max
        assert part.count(b"_bucket{") == 19 * part.count(b"wait_seconds_count{")


def test_one_who_walks_far_lets_the_loop_turn() -> None:
    def walk() -> Iterator[Point | None]:
        for _ in range(5):
            yield None
        yield (), 7

    registry = Registry()
    registry.add(Family("found", "gauge", "Found."), walk)
    slices = list(exposition(registry, TEXT, Counter()))
    assert len(slices) == 6
    assert b"".join(slices).endswith(b"found 7\n")


def test_a_source_that_fails_costs_its_own_lines_only(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Iterator[Point]:
        yield ("first",), 1
        raise KeyError("gone")

    registry = Registry()
    registry.add(Family("broken", "gauge", "Broken.", ("which",)), broken)
    registry.add(Family("fine", "gauge", "Fine."), lambda: [((), 1)])
    failures = Counter()
    with caplog.at_level(logging.ERROR):
        text = b"".join(exposition(registry, TEXT, failures)).decode()
    assert {family.name for family in parse_text(text)} == {"broken", "fine"}
    assert failures.value == 1
    assert "the metric broken could not be read" in caplog.text


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("text/html, */*;q=0.1", TEXT),
        ("application/openmetrics-text", OPEN_METRICS),
        ('Application/OpenMetrics-Text; version="1.0.0"; charset=utf-8', OPEN_METRICS),
        ("application/openmetrics-text; version=0.0.1", TEXT),
        ("application/openmetrics-text; q=0", TEXT),
        ("application/openmetrics-text; q=0.3, text/plain; q=0.5", TEXT),
        ("application/openmetrics-text, text/plain", OPEN_METRICS),
        ("application/openmetrics-text; q=high", TEXT),
        ("application/vnd.google.protobuf", TEXT),
        (";;;,,=,q", TEXT),
        (PROMETHEUS_3, OPEN_METRICS),
    ],
)
def test_the_scraper_chooses_the_format(accept: str, format: Format) -> None:
    assert choose(accept) is format
