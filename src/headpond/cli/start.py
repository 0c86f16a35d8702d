"""Where the process begins. Nothing is imported before it stands ready for Ctrl-C: the modules of a command take long
enough to load for somebody to think better of it."""

from __future__ import annotations


def main() -> int:
    try:
        from headpond.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130  # failures.INTERRUPTED, which may not be there yet
