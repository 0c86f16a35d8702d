"""A real broker for tests: ``with Broker() as broker: ...``, or the pytest fixtures of ``headpond.testing.plugin``.

pytest imports this package at its start in every project that has Headpond installed: nothing is imported here before
it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headpond.testing.broker import Broker
    from headpond.testing.errors import BrokerFailed, StartFailed, TopicNotCreated
    from headpond.testing.sendable import Record, Sendable, StoredRecord

__all__ = ["Broker", "BrokerFailed", "Record", "Sendable", "StartFailed", "StoredRecord", "TopicNotCreated"]


if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        records = ("Record", "Sendable", "StoredRecord")
        module = "sendable" if name in records else "broker" if name == "Broker" else "errors"
        return getattr(import_module(f"headpond.testing.{module}"), name)
