"""Payments of three cards: one in a hurry, one in two places, one that is fine.

python events.py payments | headpond produce payments --json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

PAYMENTS = [
    ("hasty", 10, "NL", "12:01"),
    ("hasty", 20, "NL", "12:02"),
    ("hasty", 30, "NL", "12:03"),
    ("hasty", 40, "NL", "12:04"),
    ("split", 15, "NL", "12:00"),
    ("split", 99, "BR", "12:20"),
    ("fine", 5, "NL", "12:00"),
    ("fine", 5, "DE", "15:00"),
]


def payments() -> Iterator[dict[str, object]]:
    for card, amount, country, at in PAYMENTS:
        value = {"card": card, "amount": amount, "country": country, "at": f"2026-03-01T{at}:00Z"}
        yield {"key": card, "value": value}


TOPICS = {"payments": payments}

if __name__ == "__main__":
    for record in TOPICS[sys.argv[1]]():
        print(json.dumps(record))
