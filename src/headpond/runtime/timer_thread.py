"""Something that is done again and again while this thread waits for something else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

END_S_MAX = 5.0
"""For an action that hangs: it is left behind, for what the block has done is done."""


@contextlib.contextmanager
def repeating(action: Callable[[], None], every_s: float) -> Iterator[None]:
    """``action`` runs on a thread of its own while the block runs, and not after it."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every_s):
            action()

    thread = threading.Thread(target=repeat, name="headpond-timer", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S_MAX)
