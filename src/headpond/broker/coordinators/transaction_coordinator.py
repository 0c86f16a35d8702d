"""The transactions that this broker coordinates: a machine for each partition of ``__transaction_state`` that it leads.

What a crash does: everything that was answered comes back from the log; what was decided and not ended goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.coordinators.coordinator import Coordinator
from headpond.broker.coordinators.internal_topic import CoordinatorTopic
from headpond.broker.replicas.replicas import Replicas
from headpond.cluster.image import MetadataImage
from headpond.cluster.metadata_writer import MetadataWriter
from headpond.cluster.names import TRANSACTIONS_TOPIC
from headpond.config.transactions import TransactionSettings
from headpond.coordination.slices import Slices
from headpond.coordination.transactions.machine import TransactionMachine
from headpond.coordination.transactions.markers import MarkerSender
from headpond.coordination.transactions.records import transaction_codec
from headpond.coordination.transactions.verifier import LocalTxnVerifier
from headpond.model import BrokerError, TopicPartition
from headpond.ports import Clock, Tasks

FEATURE = "transaction.version"


class TransactionCoordinator(Coordinator[TransactionMachine]):
    def __init__(
        self,
        *,
        image: MetadataImage,
        metadata_writer: MetadataWriter,
        replicas: Replicas,
        clock: Clock,
        tasks: Tasks,
        slices: Slices,
        settings: Callable[[], TransactionSettings],
        markers: MarkerSender,
    ) -> None:
        self.settings = settings
        self._image = image
        self._replicas = replicas
        self._producer_ids = metadata_writer.producer_ids
        self._markers = markers
        self._is_taking_ids = False
        topic = CoordinatorTopic(
            TRANSACTIONS_TOPIC,
            image=image,
            metadata_writer=metadata_writer,
            clock=clock,
            partitions=lambda: settings().topic_partitions,
            replication_factor=lambda: settings().topic_replication_factor,
            configs=lambda: {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings().topic_min_in_sync),
                "segment.bytes": str(settings().topic_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
        super().__init__(
            topic,
            replicas=replicas,
            clock=clock,
            tasks=tasks,
            slices=slices,
            codec=transaction_codec(self.transaction_version),
            make_machine=self._make_machine,
        )
        self.verifier = LocalTxnVerifier(self.runtime)

    def transaction_version(self) -> int:
        """The finalized level of the feature."""
        return self._image.features.get(FEATURE, 0)

    def take_nowait(self) -> int | None:
        """A producer id for the machines. When there is none, there soon will be: clients try again."""
        producer_id = self._producer_ids.take_nowait()
        if producer_id is None and not self._is_taking_ids:
            self._is_taking_ids = True
            self._tasks.spawn("take producer ids", self._take_ids())
        return producer_id

    # --- inside

    def _make_machine(self, partition: int) -> TransactionMachine:
        tp = TopicPartition(TRANSACTIONS_TOPIC, partition)

        def leader_epoch() -> int:
            replica = self._replicas.get(tp)
            return -1 if replica is None else replica.partition.leader_epoch

        return TransactionMachine(
            settings=self.settings,
            clock=self._clock,
            write_soon=lambda what, decide: self.runtime.write_soon(partition, what, decide),
            producer_ids=self,
            markers=self._markers,
            coordinator_epoch=leader_epoch,
            transaction_version=self.transaction_version,
            exists=lambda each: self._image.partition(each.topic, each.partition) is not None,
            in_slices=self.in_slices,
        )

    async def _take_ids(self) -> None:
        try:
            await self._producer_ids.have_some()
        except BrokerError:
            pass  # whoever needs one asks again
        finally:
            self._is_taking_ids = False
