"""Which partition a record goes to: by its key's hash, the same as Java's default and librdkafka's ``murmur2_random``.

Records without a key stick to one partition, chosen by chance among those with a leader, until a batch's worth of bytes
went there (KIP-794): fewer, larger batches than one record here and one there.
"""

from __future__ import annotations

from headpond.client.metadata import TopicView
from headpond.ports import Random

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of Kafka's clients, unsigned."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if length & 3:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count


class StickyPartitions:
    """Where the records without a key go at the moment, by topic."""

    def __init__(self, random: Random, bytes_until_switch: int) -> None:
        self._random = random
        self._bytes_until_switch = bytes_until_switch
        self._current: dict[str, tuple[int, int]] = {}  # topic -> (partition, bytes that may still go there)

    def choose(self, topic: TopicView, size_bytes: int) -> int:
        partition, left_bytes = self._current.get(topic.name, (-1, 0))
        if left_bytes <= 0 or partition >= len(topic.partitions):
            available = [one.index for one in topic.partitions if one.leader >= 0]
            candidates = available or [one.index for one in topic.partitions]
            # Another one than before, where there is another one.
            candidates = [index for index in candidates if index != partition] or candidates
            partition = candidates[self._random.random_int(len(candidates))]
            left_bytes = self._bytes_until_switch
        self._current[topic.name] = (partition, left_bytes - size_bytes)
        return partition

    def leave(self, topic: str) -> None:
        """Choose anew for the next record: the current one does not take any."""
        self._current.pop(topic, None)
