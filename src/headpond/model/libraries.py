"""Libraries that are large and seldom needed: loaded at their first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headpond.model.errors import StorageFailed


def library(name: str) -> Any:
    """Raises ``StorageFailed`` when its file can't be opened now, for want of descriptors or memory: ask again."""
    try:
        return import_module(name)
    except (ImportError, OSError) as error:
        raise StorageFailed(message=f"{name} can't be loaded: {error}") from error
