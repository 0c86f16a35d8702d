"""Responses leave a connection in the order of its requests, whenever they become ready.

A slot is one response's place in that order. Work that is parked (a produce that waits for its flush, a long poll)
keeps its slot and completes it later; completing the slot of a connection that has gone away does nothing, so that one
dead client never disturbs a group commit that serves many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headpond.ports import Part

if TYPE_CHECKING:
    from headpond.broker.net.answering import Answering


class Slot:
    __slots__ = ("connection", "on_abandoned", "parts")

    def __init__(self, connection: Answering) -> None:
        self.connection = connection
        self.parts: Sequence[Part] | None = None
        self.on_abandoned: Callable[[], None] | None = None

    def complete(self, parts: Sequence[Part]) -> None:
        """The response is ready: send it, and whatever was waiting behind it."""
        self.parts = parts
        self.on_abandoned = None
        self.connection.slot_completed(self)

    def abandon(self) -> None:
        """The connection went away first: nothing stays parked for a client that has left."""
        if self.on_abandoned is not None:
            self.on_abandoned()
