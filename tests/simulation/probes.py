"""Looks into the running broker from outside: no product code knows of it.

Every ``LOOK_EVERY_S`` the offsets of each partition are noted together, and the metadata image is compared with one
that is made anew from what the store held at the image's revision. Alarms in the broker's log are troubles: a traceback
of anything but a failing disk or store means a bug, however well the broker goes on. So are answers out of order.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headpond.client import ClientError
from headpond.client.connection import Connection
from headpond.cluster.image import MetadataImage
from headpond.model import BrokerError
from headpond.model.ids import id_text
from headpond.ports import Listing
from simulation.harness.hosts import BrokerHost
from simulation.harness.loop import current_life
from simulation.harness.metastore import StoreServer
from simulation.history import History, ImageSeen, OffsetsSeen, Place

LOOK_EVERY_S = 0.25
EXPECTED_ALARMS = (OSError, BrokerError, ClientError)


class Probes:
    """From now on, through all lives of the broker's process."""

    def __init__(self, broker: BrokerHost, history: History) -> None:
        self._broker = broker
        self._history = history
        self._store_states = _StoreStates(broker.world.store)
        self._image_seen: tuple[int, int] = (0, 0)
        self._look()

    def _look(self) -> None:
        loop = self._broker.world.loop
        if self._broker.is_serving:
            self._note_offsets(loop.time())
            self._note_image(loop.time())
        loop.call_on(self._broker.world.nemesis, loop.time() + LOOK_EVERY_S, self._look)

    def _note_offsets(self, now_s: float) -> None:
        assert self._broker.app is not None
        for replica in self._broker.app._replicas:
            partition, log = replica.partition, replica.partition.log
            if partition.is_leader and not log.tp.topic.startswith("__"):
                self._history.offsets_seen.append(
                    OffsetsSeen(
                        now_s,
                        Place(log.tp.topic, id_text(log.topic_id), log.tp.partition),
                        log.log_start_offset,
                        partition.last_stable_offset,
                        partition.high_watermark,
                        log.log_end_offset,
                        self._broker.lives,
                        self._broker.clock.now_ms(),
                    )
                )

    def _note_image(self, now_s: float) -> None:
        assert self._broker.app is not None
        image = self._broker.app._image
        if self._image_seen != (self._broker.lives, image.revision):
            self._image_seen = (self._broker.lives, image.revision)
            expected = self._store_states.digest_at(image.revision)
            self._history.images_seen.append(
                ImageSeen(now_s, self._broker.name, self._broker.lives, image.revision, _digest(image), expected)
            )


class _StoreStates:
    """What the store held at each of its revisions."""

    def __init__(self, store: StoreServer) -> None:
        self._store = store
        self._listings: dict[int, Listing] = {}
        self._digests: dict[int, str] = {}
        store.on_change.append(self._changed)
        self._changed()

    def digest_at(self, revision: int) -> str:
        if revision not in self._digests:
            image = MetadataImage()
            image.load(self._listings[revision])
            self._digests[revision] = _digest(image)
        return self._digests[revision]

    def _changed(self) -> None:
        self._listings[self._store.revision] = self._store.list("")


def _digest(image: MetadataImage) -> str:
    parts = [image.cluster_id, *(sorted(each.items()) for each in (image.topics, image.brokers, image.features))]
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@contextmanager
def answers_in_order(trouble: Callable[[str, str], None]) -> Iterator[None]:
    """Inside, an answer that overtakes one to an earlier request of its connection is a trouble: our client puts up
    with it, others do not."""
    answered = Connection._answered

    def checked(connection: Connection, frame: memoryview) -> None:
        answer_to, oldest = int.from_bytes(frame[:4]), next(iter(connection._in_flight), None)
        if answer_to in connection._in_flight and answer_to != oldest:
            trouble("client", f"the answer to request {answer_to} came before the one to {oldest}")
        answered(connection, frame)

    setattr(Connection, "_answered", checked)  # noqa: B010 (mypy)
    try:
        yield
    finally:
        setattr(Connection, "_answered", answered)  # noqa: B010


@contextmanager
def alarms(trouble: Callable[[str, str], None]) -> Iterator[None]:
    """Inside, what the product logs with a traceback that no fault explains is a trouble of the life that runs."""
    handler = _Alarms(trouble)
    logger = logging.getLogger("headpond")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Alarms(logging.Handler):
    def __init__(self, trouble: Callable[[str, str], None]) -> None:
        super().__init__(logging.ERROR)
        self._trouble = trouble

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        life = current_life()
        if error is not None and not isinstance(error, EXPECTED_ALARMS) and life is not None and not life.is_over:
            self._trouble(life.name, f"logged: {record.getMessage()}: {error!r}")
