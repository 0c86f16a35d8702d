"""Requests, counted all and timed in part.

A hot handler does, per request, one subtraction and one comparison::

    left = meter.left - 1
    meter.left = left
    if not left:
        ... this one is timed

``left`` counts down to the next timed request, and ``total`` follows from it. A timed request stands for all since the
last one (``weight``), so that the histogram's count keeps up with the total. How many lie between two is chosen so that
no more than some hundred per second are timed: a quiet broker times every request, a busy one every 255th.

Measured from the moment when the request's bytes are in memory to the moment when its answer is ready to be sent;
the time that it was parked (a produce waiting for its flush, a long poll) is measured by itself too.
"""

from __future__ import annotations

from collections.abc import Iterator

from headpond.model import ErrorCode
from headpond.telemetry.metrics import Counter, Histogram, Labelled, Point

TIMED_INTERVAL_S = 0.002
"""When timed requests come faster than this, fewer are timed; when slower than four times this, more."""
STRIDE_MAX = 255
"""Odd, so that a client that asks its partitions in turn does not always have the same one timed."""
REARM_S = 1.0
"""When a scrape finds that the last timed request is older than this, the next one is timed whatever the stride."""


class RequestMeter:
    """One API's requests."""

    __slots__ = (
        "_api",
        "_errors",
        "_goal",
        "_represented",
        "_stride",
        "_timed_s",
        "duration",
        "left",
        "parked",
        "settled",
    )

    def __init__(self, api: str, errors: Labelled[Counter]) -> None:
        self._api = api
        self._errors = errors
        self.left = 1
        self._goal = 1  # the number of the request that is timed next
        self._represented = 0  # requests that stand in the histogram, themselves or by another one
        self._stride = 1
        self._timed_s = 0.0
        self.settled = 0  # grows when a request that may be being timed is put back, or is timed by somebody else
        self.duration = Histogram()
        self.parked = Histogram()

    @property
    def total(self) -> int:
        return self._goal - self.left

    def begin(self, now_s: float) -> int:
        """``left`` has reached 0: choose the next to be timed. Returns for how many this one stands."""
        between_s = now_s - self._timed_s
        if between_s < TIMED_INTERVAL_S:
            self._stride = min(STRIDE_MAX, self._stride * 2 + 1)
        elif between_s > 4 * TIMED_INTERVAL_S:
            self._stride = self._stride // 2 or 1
        self._timed_s = now_s
        weight = self._goal - self._represented
        self._represented = self._goal
        self.left = self._stride
        self._goal += self._stride
        return weight

    def give_back(self, weight: int) -> None:
        """The timed request was put back, or timed apart: the next one stands for these."""
        self._represented -= weight

    def timed_apart(self) -> None:
        """The request that is being served is timed by itself, whatever the countdown says."""
        self._represented += 1
        self.settled += 1

    def count(self) -> None:
        """One that is timed in any case: ``duration`` is told by the caller. Not to be mixed with the countdown."""
        self._goal += 1

    def uncount(self) -> None:
        """The request was put back and will come again."""
        self._goal -= 1
        self.settled += 1

    def failed(self, code: int, times: int = 1) -> None:
        """A response carries that code, so many times."""
        self._errors.at(self._api, _error_name(code)).value += times

    def rearm(self, now_s: float) -> None:
        if self.left > 1 and now_s - self._timed_s > REARM_S:
            self._goal -= self.left - 1
            self.left = 1


class RequestMeters:
    """The meters by API, made when one is first asked for: unused APIs take no series."""

    def __init__(self) -> None:
        self._meters: dict[str, RequestMeter] = {}
        self.errors = Labelled(Counter, labels_count=2)

    def of(self, api: str) -> RequestMeter:
        found = self._meters.get(api)
        if found is None:
            found = self._meters[api] = RequestMeter(api, self.errors)
        return found

    def rearm(self, now_s: float) -> None:
        for meter in self._meters.values():
            meter.rearm(now_s)

    # --- sources of the registry

    def totals(self) -> Iterator[Point]:
        for api, meter in sorted(self._meters.items()):
            yield (api,), meter.total

    def durations(self) -> Iterator[Point]:
        for api, meter in sorted(self._meters.items()):
            yield (api,), meter.duration

    def parked_durations(self) -> Iterator[Point]:
        for api, meter in sorted(self._meters.items()):
            if meter.parked.count:
                yield (api,), meter.parked


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"CODE_{code}"
