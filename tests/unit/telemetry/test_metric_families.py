"""Names of metrics follow Prometheus' rules; families and labels are bounded."""

from __future__ import annotations

import pytest

from headpond.telemetry import catalogue
from headpond.telemetry.families import Family, Registry, complaints
from headpond.telemetry.metrics import OTHER, Counter, Gauge, Histogram, Labelled


@pytest.mark.parametrize("family", catalogue.ALL, ids=lambda family: family.name)
def test_every_metric_of_the_catalogue_is_named_by_the_rules(family: Family) -> None:
    assert complaints(family) == []
    assert family.name.startswith(("headpond_", "process_"))
    assert family.help.endswith(".")


@pytest.mark.parametrize(
    "family",
    [
        Family("requests", "counter", "A counter without _total."),
        Family("open_total", "gauge", "A gauge with _total."),
        Family("size_count", "gauge", "Looks like a histogram's sample."),
        Family("wait_ms", "gauge", "Not a base unit."),
        Family("disk_percent", "gauge", "Not a ratio."),
        Family("seconds_waited_total", "counter", "The unit is not last."),
        Family("Requests_total", "counter", "Capitals."),
        Family("a:b_total", "counter", "Colons are for recording rules."),
        Family("a_total", "counter", "A label of Prometheus' own.", ("le",)),
        Family("a_total", "counter", "A label that is no name.", ("topic-name",)),
        Family("a_total", "counter", " "),
        Family("a_total", "counter", "two\nlines"),
        Family("build", "info", "An info without _info."),
    ],
    ids=lambda family: family.help,
)
def test_a_name_against_the_rules_is_refused(family: Family) -> None:
    with pytest.raises(ValueError, match=r"metric"):
        Registry().add(family, Counter().points)


def test_two_families_of_one_name_are_refused() -> None:
    registry = Registry()
    registry.add(Family("a_total", "counter", "A counter."), Counter().points)
    with pytest.raises(ValueError, match="another family"):
        registry.add(Family("a", "gauge", "In OpenMetrics the counter's family is called a, too."), Gauge().points)


def test_units_and_base_names() -> None:
    received = Family("received_bytes_total", "counter", "Bytes.")
    assert (received.base, received.unit) == ("received_bytes", "bytes")
    assert Family("build_info", "info", "Build.").base == "build"
    assert Family("connections", "gauge", "Connections.").unit == ""


def test_a_value_on_a_bound_counts_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 2.5):
        histogram.observe(value)
    assert (histogram.counts, histogram.sum, histogram.count) == ([2, 2, 1], 7.5, 5)


def test_an_observation_may_stand_for_many() -> None:
    histogram = Histogram((1.0,))
    histogram.observe(2.0, 63)
    assert (histogram.counts, histogram.sum) == ([0, 63], 126.0)


def test_labels_beyond_the_limit_are_counted_together() -> None:
    family = Labelled(Counter, labels_count=2, series_max=3)
    for number in range(10):
        family.at("api", f"error {number}").value += 1
    points = dict(family.points())
    assert len(points) == 4
    assert points["api", "error 2"] == 1
    assert points[OTHER, OTHER] == 7
    assert family.at("api", "error 2") is family.at("api", "error 2")


def test_a_wrong_number_of_labels_is_a_bug_that_is_told() -> None:
    with pytest.raises(ValueError, match="1 labels where 2"):
        Labelled(Counter, labels_count=2).at("alone")
