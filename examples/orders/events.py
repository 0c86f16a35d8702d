"""Products, one of which was renamed and one taken out, and orders of them.

python events.py products | headpond produce products --json
python events.py orders | headpond produce orders --json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator


def products() -> Iterator[dict[str, object]]:
    yield {"key": "A1", "value": {"name": "apple", "price": 0.5}}
    yield {"key": "B2", "value": {"name": "bread", "price": 3.2}}
    yield {"key": "C3", "value": {"name": "cake", "price": 12}}
    yield {"key": "A1", "value": {"name": "red apple", "price": 0.6}}
    yield {"key": "C3", "value": None}


def orders() -> Iterator[dict[str, object]]:
    for number, (sku, quantity) in enumerate([("A1", 10), ("B2", 1), ("C3", 1), ("A1", 5)], start=1):
        yield {"key": str(number), "value": {"id": number, "sku": sku, "quantity": quantity}}


TOPICS = {"products": products, "orders": orders}

if __name__ == "__main__":
    for record in TOPICS[sys.argv[1]]():
        print(json.dumps(record))
