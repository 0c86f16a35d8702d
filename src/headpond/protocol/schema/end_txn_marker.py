"""The value of the control record that ends a transaction."""

from __future__ import annotations

from headpond.protocol.types import Message, i32, versions


class EndTxnMarker(Message):
    VERSIONS = versions(0, 0)

    coordinator_epoch: i32 = 0
