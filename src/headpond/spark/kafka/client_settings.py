"""What a connection to the brokers needs, whoever opens it: source, sink, pipeline or lake."""

from __future__ import annotations

from dataclasses import dataclass

from headpond.client.bootstrap import parse_bootstrap
from headpond.client.connection import Address
from headpond.client.offsets import Isolation
from headpond.client.security import PLAINTEXT, Security
from headpond.spark.kafka import option_names as names
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.given_options import Given

PARTITION_FETCH_BYTES = 4 * 1024 * 1024
FETCH_BYTES = 8 * 1024 * 1024
"""Larger than Kafka's consumer asks for: a task reads one partition, and whole megabytes decode fastest."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What a connection to the brokers needs."""

    bootstrap: tuple[Address, ...]
    client_id: str = "headpond-spark"
    isolation: Isolation = "read_committed"
    api_timeout_s: float = 60.0
    """How long the driver tries to get an answer: brokers restart."""
    poll_timeout_s: float = 120.0
    """How long a task goes on without getting anything."""
    retries: int = 3
    retry_interval_s: float = 0.01
    partition_fetch_bytes: int = PARTITION_FETCH_BYTES
    fetch_bytes: int = FETCH_BYTES
    fetch_wait_ms: int = 500
    fetch_min_bytes: int = 1
    check_crcs: bool = True
    security: Security = PLAINTEXT


def read_bootstrap(options: Given) -> tuple[Address, ...]:
    text = options.setting(names.BOOTSTRAP_SERVERS)
    if text is None:
        raise WrongOption("kafka.bootstrap.servers is missing: HOST:PORT of one or more brokers")
    try:
        return tuple(parse_bootstrap(text))
    except ValueError as error:
        raise WrongOption(f"kafka.bootstrap.servers: {error}") from None
