"""What consumers write down, line by line, for ``churn/judge.py``: what they owned and committed, and when.

    generation 7         of what it is assigned next, if its library tells
    assigned [0, 1]      it owns them from now on
    revoked [0]          it gave them up, and had them until then
    lost [1]             it gave them up, perhaps too late
    first {"0": 7}       the first offset that it read after that
    committed {"0": 9}   with the moment at which it was sent

The times are those of a clock that all processes of the machine share.
"""

from __future__ import annotations

import json
import time
from typing import Any


def note(what: str, about: Any, sent_at: float | None = None, at: float | None = None) -> None:
    """``at``: not now, but then."""
    at = at or time.monotonic()
    print(json.dumps({"at": at, "sent_at": sent_at or at, "what": what, "about": about}), flush=True)
