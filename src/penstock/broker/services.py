"""The broker's parts, as the handlers see them. Put together in ``app.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.broker.pacing import Pacing

if TYPE_CHECKING:
    from penstock.broker.group_coordinator import GroupCoordinator
    from penstock.broker.local_markers import LocalMarkers
    from penstock.broker.replicas import Replicas
    from penstock.broker.security.authorizer import Authorizer
    from penstock.broker.transaction_coordinator import TransactionCoordinator
    from penstock.cluster.controller import Controller
    from penstock.cluster.image import MetadataImage
    from penstock.config.broker import BrokerSettings
    from penstock.ports import Clock, Random
    from penstock.storage.manager import LogManager


@dataclass(slots=True)
class Broker:
    settings: BrokerSettings
    clock: Clock
    random: Random
    image: MetadataImage
    controller: Controller
    replicas: Replicas
    logs: LogManager
    authorizer: Authorizer
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: LocalMarkers
    pacing: Pacing
