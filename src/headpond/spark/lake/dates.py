"""Rows by the day of their timestamp, in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (date.min - _EPOCH).days, (date.max - _EPOCH).days


def split_by_date(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(``2026-01-31``, its rows) for each day, the rows in their order."""
    times_us = rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    days = times_us // DAY_US
    first = int(days[0])
    if bool((days == first).all()):
        yield date_text(first), rows
        return
    for day in np.unique(days):
        yield date_text(int(day)), rows.filter(pa.array(days == day))


def date_text(day: int) -> str:
    """Of a number of days since 1970. Days that no calendar has count as the first or last that it has: a producer may
    write any number, and readers want a date."""
    return (_EPOCH + timedelta(days=min(max(day, _FIRST_DAY), _LAST_DAY))).isoformat()
