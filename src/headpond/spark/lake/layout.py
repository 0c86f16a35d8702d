"""Where everything lies in a lake. Pure.

    LAKE/topic=orders/date=2026-01-31/00000007-000-ab12cd.parquet    the records: what readers see
    LAKE/_lake/lake.json                                         that this is a lake, and its id
    LAKE/_lake/lock                                              held by whoever writes
    LAKE/_lake/topics/orders.json                                what the lake knows of a topic (``state.py``)
    LAKE/_lake/staging/<run>/<random>.staged                     files on their way
    LAKE/_lake/restores/<name>.json                              how far a restore is
    LAKE/_lake/restore-staging/<name>/                           what a restore is about to write

Spark, pandas and pyarrow pass over names that begin with an underscore. DuckDB does not, so that nothing in there ends
in ``.parquet``: no pattern that a reader is likely to write finds a file before it is part of the lake.
"""

from __future__ import annotations

FORMAT = 1
HIDDEN = "_lake"
STAGED = ".staged"
DATA = ".parquet"

LAKE_FILE = f"{HIDDEN}/lake.json"
LOCK_FILE = f"{HIDDEN}/lock"
STATES = f"{HIDDEN}/topics"
STAGING = f"{HIDDEN}/staging"
RESTORES = f"{HIDDEN}/restores"
RESTORE_STAGING = f"{HIDDEN}/restore-staging"


def state_file(topic: str) -> str:
    return f"{STATES}/{topic}.json"


def topic_folder(topic: str) -> str:
    return f"topic={topic}"


def data_file(topic: str, date: str, version: int, task: int, mark: str) -> str:
    """In the lake. ``mark``: chance, so that nobody's file is ever overwritten but by its own next form."""
    return f"{topic_folder(topic)}/date={date}/{version:08d}-{task:03d}-{mark}{DATA}"


def date_of(path: str) -> str:
    """``2026-01-31`` of a data file's path."""
    return path.split("/")[-2].removeprefix("date=")
