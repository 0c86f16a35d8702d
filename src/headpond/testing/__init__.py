"""A real broker for tests: ``with Broker() as broker: ...``, or the pytest fixtures of ``headpond.testing.plugin``.

pytest imports this package at its start in every project that has Headpond installed: nothing is imported here before
somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headpond.testing.broker import Broker
    from headpond.testing.errors import BrokerFailed, StartFailed, TopicNotCreated
    from headpond.testing.records import Record

__all__ = ["Broker", "BrokerFailed", "Record", "StartFailed", "TopicNotCreated"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = {"Broker": "broker", "Record": "records"}.get(name, "errors")
    return getattr(import_module(f"headpond.testing.{module}"), name)
