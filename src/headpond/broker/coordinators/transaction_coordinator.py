"""The transactions that this broker coordinates: a machine for each partition of ``__transaction_state`` that it leads.

What a crash does: everything that was answered comes back from the log; what was decided and not ended goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from headpond.broker.coordinators.coordinator import Coordinator, Surroundings
from headpond.broker.coordinators.internal_topic import TopicShape
from headpond.cluster.names import TRANSACTIONS_TOPIC
from headpond.config.transactions import TransactionSettings
from headpond.coordination.transactions.machine import Facts, TransactionMachine
from headpond.coordination.transactions.markers import MarkerSender
from headpond.coordination.transactions.records import transaction_codec
from headpond.coordination.transactions.verifier import LocalTxnVerifier
from headpond.model import BrokerError, TopicPartition

FEATURE = "transaction.version"


class TransactionCoordinator(Coordinator[TransactionMachine]):
    def __init__(
        self, around: Surroundings, settings: Callable[[], TransactionSettings], markers: MarkerSender
    ) -> None:
        self.settings = settings
        self._image = around.image
        self._replicas = around.replicas
        self._producer_ids = around.metadata_writer.producer_ids
        self._markers = markers
        self._is_taking_ids = False
        super().__init__(
            around,
            TRANSACTIONS_TOPIC,
            lambda: _shape(settings()),
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
            facts=Facts(
                coordinator_epoch=leader_epoch,
                transaction_version=self.transaction_version,
                exists=lambda each: self._image.partition(each.topic, each.partition) is not None,
            ),
            in_slices=self.in_slices,
        )

    async def _take_ids(self) -> None:
        try:
            await self._producer_ids.have_some()
        except BrokerError:
            pass  # whoever needs one asks again
        finally:
            self._is_taking_ids = False


def _shape(settings: TransactionSettings) -> TopicShape:
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(settings.topic_min_in_sync),
        "segment.bytes": str(settings.topic_segment_bytes),
        "unclean.leader.election.enable": "false",
    }
    return TopicShape(settings.topic_partitions, settings.topic_replication_factor, configs)
