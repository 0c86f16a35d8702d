"""Features: what this version of the program can do, and what a new cluster turns on.

A feature is finalized, that is promised to clients, when its level stands in the metadata store. Clients choose
protocols by it (transactions v2 only where ``transaction.version`` is 2), so nothing stands here before it works.

In Kafka a level only rises when somebody asks for it (UpdateFeatures), because brokers of an older version may be
around. Here a start finalizes what has no level yet, as long as no other broker is registered: whoever runs one broker
need not know what features are. A level that is there, 0 included, is left alone.
"""

from __future__ import annotations

SUPPORTED: dict[str, tuple[int, int]] = {
    "group.version": (0, 1),  # 1: the consumer protocol of KIP-848
    "metadata.version": (7, 30),  # what Kafka 4.3 says of itself; tools show it, no client decides anything by it
    "transaction.version": (0, 2),  # 1: flexible records; 2: an epoch for every transaction (KIP-890)
}
"""Lowest and highest level that this program understands."""

OF_A_NEW_CLUSTER: dict[str, int] = {"group.version": 1, "metadata.version": 30, "transaction.version": 2}
