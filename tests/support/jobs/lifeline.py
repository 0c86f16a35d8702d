"""What every job does about its end: SIGTERM ends it politely, the end of its stdin at once."""

from __future__ import annotations

import os
import signal
import sys
import threading


class Lifeline:
    def __init__(self) -> None:
        self.is_asked_to_stop = False
        signal.signal(signal.SIGTERM, self._stop)

    def watch_stdin(self) -> None:
        """For jobs that read nothing from it."""
        threading.Thread(target=self._wait_for_the_end, daemon=True).start()

    def _stop(self, *_: object) -> None:
        self.is_asked_to_stop = True

    def _wait_for_the_end(self) -> None:
        sys.stdin.buffer.read()
        os._exit(1)
