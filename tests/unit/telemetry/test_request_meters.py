"""Requests are counted exactly, whatever is timed; what is timed stands for the rest."""

from __future__ import annotations

from headpond.telemetry.requests import STRIDE_MAX, TIMED_INTERVAL_S, RequestMeter, RequestMeters


def serve(meter: RequestMeter, count: int, *, at_s: float, step_s: float, duration_s: float = 0.001) -> float:
    """As a hot handler does; returns the time afterwards."""
    for _ in range(count):
        at_s += step_s
        left = meter.left - 1
        meter.left = left
        if not left:
            meter.duration.observe(duration_s, meter.begin(at_s))
    return at_s


def test_a_quiet_broker_times_every_request() -> None:
    meter = RequestMeters().of("Produce")
    serve(meter, 100, at_s=10.0, step_s=0.1)
    assert meter.total == meter.duration.count == 100


def test_a_busy_broker_counts_all_and_times_few_that_stand_for_the_rest() -> None:
    meter = RequestMeters().of("Produce")
    timed = 0

    class Counting:
        def observe(self, value: float, weight: int) -> None:
            nonlocal timed
            timed += 1
            histogram.observe(value, weight)

    histogram = meter.duration
    meter.duration = Counting()  # type: ignore[assignment]
    serve(meter, 100_000, at_s=10.0, step_s=0.000_02)
    assert meter.total == 100_000
    assert timed < 2.0 / TIMED_INTERVAL_S * 1.1, "the requests took 2 s"
    assert 100_000 - STRIDE_MAX < histogram.count <= 100_000


def test_after_a_burst_every_request_is_timed_again() -> None:
    meter = RequestMeters().of("Fetch")
    now_s = serve(meter, 100_000, at_s=10.0, step_s=0.000_02)
    now_s = serve(meter, 1_000, at_s=now_s, step_s=0.1)
    before = meter.duration.count
    serve(meter, 10, at_s=now_s, step_s=0.1)
    assert meter.duration.count == before + 10
    assert meter.total == 101_010


def test_a_scrape_makes_the_next_request_of_a_quiet_broker_a_timed_one() -> None:
    meters = RequestMeters()
    meter = meters.of("Fetch")
    now_s = serve(meter, 100_000, at_s=10.0, step_s=0.000_02)
    assert meter.left > 1
    meters.rearm(now_s + 0.5)
    assert meter.left > 1, "the broker is still busy"
    meters.rearm(now_s + 2.0)
    assert (meter.left, meter.total) == (1, 100_000)
    serve(meter, 1, at_s=now_s + 2.0, step_s=0.1)
    assert meter.total == 100_001
    assert meter.duration.count == 100_001


def test_a_request_that_is_put_back_counts_once() -> None:
    meter = RequestMeters().of("Produce")
    now_s = serve(meter, 1, at_s=10.0, step_s=0.1)
    meter.uncount()
    serve(meter, 1, at_s=now_s, step_s=0.1)
    assert meter.total == 1


def test_a_timed_request_that_is_put_back_leaves_its_weight_to_the_next_one() -> None:
    meter = RequestMeters().of("Produce")
    now_s = serve(meter, 50, at_s=10.0, step_s=0.000_02)
    while meter.left > 1:
        now_s = serve(meter, 1, at_s=now_s, step_s=0.000_02)
    before = meter.total
    meter.left -= 1
    weight = meter.begin(now_s)
    meter.uncount()
    meter.give_back(weight)
    meter.duration.observe(5.0)  # served again, it is timed by itself
    meter.left -= 1
    meter.timed_apart()
    serve(meter, 1_000, at_s=now_s, step_s=0.1)
    assert meter.total == before + 1 + 1_000 == meter.duration.count


def test_errors_are_counted_by_api_and_name() -> None:
    meters = RequestMeters()
    for code in (3, 3, 87, -1, 12_345):
        meters.of("Produce").failed(code)
    meters.of("Metadata").failed(3)
    assert dict(meters.errors.points()) == {
        ("Produce", "UNKNOWN_TOPIC_OR_PARTITION"): 2,
        ("Produce", "INVALID_RECORD"): 1,
        ("Produce", "UNKNOWN_SERVER_ERROR"): 1,
        ("Produce", "CODE_12345"): 1,
        ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION"): 1,
    }


def test_an_api_that_nobody_uses_has_no_series() -> None:
    meters = RequestMeters()
    meters.of("Metadata").count()
    assert dict(meters.totals()) == {("Metadata",): 1}
    assert list(meters.parked_durations()) == []
