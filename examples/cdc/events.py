"""Rows of a table that were created, updated and deleted.

python events.py customer-changes | headpond produce customer-changes --json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

Row = dict[str, object]


def row(id: int, name: str, city: str) -> Row:
    return {"id": id, "name": name, "city": city}


CHANGES: list[tuple[str, Row | None, Row | None]] = [
    ("c", None, row(1, "Anna", "Rome")),
    ("c", None, row(2, "Bob", "Oslo")),
    ("c", None, row(3, "Carl", "Lima")),
    ("u", row(1, "Anna", "Rome"), row(1, "Anna", "Bern")),
    ("d", row(2, "Bob", "Oslo"), None),
    ("u", row(3, "Carl", "Lima"), row(3, "Karl", "Lima")),
]


def changes() -> Iterator[dict[str, object]]:
    for lsn, (op, before, after) in enumerate(CHANGES, start=1):
        known = after or before or {}
        yield {"key": str(known["id"]), "value": {"op": op, "lsn": lsn, "before": before, "after": after}}


TOPICS = {"customer-changes": changes}

if __name__ == "__main__":
    for record in TOPICS[sys.argv[1]]():
        print(json.dumps(record))
