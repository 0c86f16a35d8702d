"""Headpond: a durable, partitioned log broker that every Kafka client speaks to.

``headpond.log`` is its log as a library, ``headpond.EmbeddedBroker`` the broker on a thread of the caller's process.
Either is imported when it is first asked for: every command of the command line imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headpond import log
    from headpond.embedded import EmbeddedBroker

__all__ = ["EmbeddedBroker", "__version__", "log"]

__version__ = "0.1.0"


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name):
        from importlib import import_module

        if name == "log":
            return import_module("headpond.log")
        if name == "EmbeddedBroker":
            return import_module("headpond.embedded").EmbeddedBroker
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
