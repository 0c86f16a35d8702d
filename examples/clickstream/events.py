"""Clicks of a day, some of them out of order, one of them broken.

python events.py clicks | headpond produce clicks --json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

CLICKS = [
    ("anna", "/", "10:00"),
    ("bob", "/shoes", "10:10"),
    ("anna", "/hats", "10:05"),
    ("anna", "/hats/42", "10:20"),
    ("bob", "/cart", "10:12"),
    ("anna", "/", "11:30"),
    ("carl", "/", "13:00"),
]


def clicks() -> Iterator[dict[str, object]]:
    for user, page, at in CLICKS:
        yield {"key": user, "value": {"user": user, "page": page, "at": f"2026-03-01T{at}:00Z"}}
    yield {"key": "dora", "value": "this is no JSON"}


TOPICS = {"clicks": clicks}

if __name__ == "__main__":
    for record in TOPICS[sys.argv[1]]():
        print(json.dumps(record))
