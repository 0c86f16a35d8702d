"""Looks into the running broker from outside: no product code knows of it.

Every ``LOOK_EVERY_S`` the offsets of each partition are noted together, and the metadata image is compared with what
the store's own history says at the image's revision.
"""

from __future__ import annotations

from headpond.model.ids import id_text
from simulation.harness.hosts import BrokerHost
from simulation.history import History, OffsetsSeen, Place

LOOK_EVERY_S = 0.25


def watch_broker(broker: BrokerHost, history: History) -> None:
    """From now on, through all lives of the broker's process."""
    loop, nemesis = broker.world.loop, broker.world.nemesis

    def look() -> None:
        if broker.is_serving and broker.app is not None:
            _note_offsets(broker, history)
        loop.call_on(nemesis, loop.time() + LOOK_EVERY_S, look)

    loop.call_on(nemesis, loop.time(), look)


def _note_offsets(broker: BrokerHost, history: History) -> None:
    assert broker.app is not None
    for replica in broker.app._replicas:
        partition = replica.partition
        if partition.is_leader:
            log = partition.log
            history.offsets_seen.append(
                OffsetsSeen(
                    broker.world.loop.time(),
                    Place(log.tp.topic, id_text(log.topic_id), log.tp.partition),
                    log.log_start_offset,
                    partition.last_stable_offset,
                    partition.high_watermark,
                    log.log_end_offset,
                )
            )
