"""The broker's parts, as the handlers see them. Put together in ``app.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headpond.broker.requests.pacing import Pacing

if TYPE_CHECKING:
    from headpond.broker.coordinators.group_coordinator import GroupCoordinator
    from headpond.broker.coordinators.local_markers import LocalMarkers
    from headpond.broker.coordinators.transaction_coordinator import TransactionCoordinator
    from headpond.broker.replicas.replicas import Replicas
    from headpond.broker.security.authorizer import Authorizer
    from headpond.cluster.image import MetadataImage
    from headpond.cluster.metadata_writer import MetadataWriter
    from headpond.config.broker import BrokerSettings
    from headpond.ports import Clock, Random
    from headpond.storage.manager import LogManager


@dataclass(slots=True)
class Broker:
    settings: BrokerSettings
    clock: Clock
    random: Random
    image: MetadataImage
    metadata_writer: MetadataWriter
    replicas: Replicas
    logs: LogManager
    authorizer: Authorizer
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: LocalMarkers
    pacing: Pacing
