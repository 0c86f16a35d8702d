"""What serving produces takes, wide ones or not: put together once, at the start."""

from __future__ import annotations

from dataclasses import dataclass

from headpond.broker.handlers.produce.transactional import ProduceTransactions
from headpond.broker.handlers.produce.waiting import Waiting
from headpond.broker.replicas.replicas import Replicas
from headpond.broker.requests.turns import Turns
from headpond.broker.security.authorizer import Authorizer
from headpond.ports import Clock, Tasks, Workers
from headpond.storage.looks.looks import Looks
from headpond.telemetry.requests import RequestMeter


@dataclass(frozen=True, slots=True)
class ProduceParts:
    replicas: Replicas
    waiting: Waiting
    authorizer: Authorizer
    transactions: ProduceTransactions
    looks: Looks
    turns: Turns
    meter: RequestMeter
    clock: Clock
    tasks: Tasks
    workers: Workers
