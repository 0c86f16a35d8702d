"""A real broker for tests: ``with Broker() as broker: ...``, or the pytest fixtures of ``penstock.testing.plugin``.

pytest imports this package at its start in every project that has Penstock installed: nothing is imported here before
somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.broker import Broker
    from penstock.testing.errors import BrokerFailed, StartFailed, TopicNotCreated
    from penstock.testing.records import Record

__all__ = ["Broker", "BrokerFailed", "Record", "StartFailed", "TopicNotCreated"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = {"Broker": "broker", "Record": "records"}.get(name, "errors")
    return getattr(import_module(f"penstock.testing.{module}"), name)
