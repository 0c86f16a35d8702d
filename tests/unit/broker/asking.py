"""Calls a handler as the dispatcher does: a request object in, through the codec both ways, a response object out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from headpond.broker.coordinators.coordinator import Surroundings
from headpond.broker.coordinators.group_coordinator import GroupCoordinator
from headpond.broker.coordinators.transaction_coordinator import TransactionCoordinator
from headpond.broker.requests.context import Context, ListenerInfo
from headpond.broker.requests.dispatch import handled
from headpond.broker.requests.pacing import Pacing
from headpond.broker.security.authorizer import AllowAll, Authorizer
from headpond.broker.services import Broker
from headpond.config.effective import Effective
from headpond.config.groups import GroupSettings
from headpond.config.transactions import TransactionSettings
from headpond.coordination.slices import Slices
from headpond.coordination.transactions.markers import Marker
from headpond.model import ErrorCode, TopicPartition
from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder, encoder
from simulation.harness.workers import SimulatedWorkers
from unit.cluster.small_cluster import SmallCluster

LISTENER = ListenerInfo("PLAINTEXT", "PLAINTEXT", "broker1.example", 9092)


class NoReplicas:
    """A broker without logs leads nothing."""

    def tell_leadership(self, topic: str, listener: object) -> None:
        pass

    def get(self, tp: TopicPartition) -> None:
        return None


class TakesMarkers:
    """Partitions that take every marker."""

    def send(
        self,
        marker: Marker,
        partitions: Collection[TopicPartition],
        answer: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        answer(dict.fromkeys(partitions, ErrorCode.NONE))


class Asker:
    def __init__(
        self, cluster: SmallCluster, *, static: dict[str, str] | None = None, authorizer: Authorizer | None = None
    ) -> None:
        self.cluster = cluster
        self.listener = LISTENER
        slices = Slices(cluster.clock, SimulatedWorkers(cluster.clock))
        around = Surroundings(
            image=cluster.image,
            metadata_writer=cluster.metadata_writer,
            replicas=NoReplicas(),  # type: ignore[arg-type]
            clock=cluster.clock,
            random=cluster.random,
            tasks=cluster.tasks,
            slices=slices,
        )
        self.broker = Broker(
            settings=Effective(static={"node.id": "1", **(static or {})}).settings,
            clock=cluster.clock,
            random=cluster.random,
            image=cluster.image,
            metadata_writer=cluster.metadata_writer,
            replicas=None,  # type: ignore[arg-type]
            logs=None,  # type: ignore[arg-type]
            authorizer=authorizer or AllowAll(),
            groups=GroupCoordinator(around, GroupSettings),
            transactions=TransactionCoordinator(around, TransactionSettings, TakesMarkers()),
            markers=None,  # type: ignore[arg-type]
            pacing=Pacing(slices),
        )

    async def ask(self, handler: Any, version: int, request: Any) -> Any:
        """The answer of a handler: of its module, or of the function itself."""
        api = APIS[request.KEY]
        sent, _ = decoder(api.request, version)(encoder(api.request, version)(request), 0)
        response = await handled(
            getattr(handler, "handle", handler), api.key, Context(self.broker, self.listener, version), sent
        )
        received, _ = decoder(api.response, version)(encoder(api.response, version)(response), 0)
        return received
