"""T7: when all has healed, no transaction is open.

In every final log the last stable offset is the high watermark, and the coordinators list no transaction that is
ongoing or ending.

Exempt   none: a transaction whose client is gone times out. The world has to wait for that before it looks.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.history import History


def check(history: History) -> Iterator[str]:
    for place, log in history.final_logs.items():
        if log.last_stable_offset != log.high_watermark:
            yield (
                f"{place} has the last stable offset {log.last_stable_offset} in the end, and the high watermark "
                f"{log.high_watermark}"
            )
    for transactional_id in history.transactions_open_at_end:
        yield f"a transaction of {transactional_id} is open in the end"
