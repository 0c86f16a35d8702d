"""Which API is served by which file, and all that serving one version of it takes.

A handler (and its messages) is imported when it is first called, or soon after the start (``later.py``): the start pays
for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from importlib import import_module
from struct import Struct
from typing import Any

from headpond.broker.requests.context import Context
from headpond.protocol.apis import (
    APIS,
    request_decoder,
    request_decoder_in_slices,
    response_appender_in_slices,
    response_encoder,
)
from headpond.protocol.header import has_tagged_response_header
from headpond.telemetry.requests import RequestMeter

HANDLERS: dict[int, str] = {
    0: "produce.produce",
    1: "fetch.fetch",
    2: "fetch.list_offsets",
    3: "topics.metadata",
    8: "groups.offset_commit",
    9: "groups.offset_fetch",
    10: "groups.find_coordinator",
    11: "groups.join_group",
    12: "groups.heartbeat",
    13: "groups.leave_group",
    14: "groups.sync_group",
    15: "groups.describe_groups",
    16: "groups.list_groups",
    17: "unconfigured.sasl_handshake",
    18: "cluster.api_versions",
    19: "topics.create_topics",
    20: "topics.delete_topics",
    21: "topics.delete_records",
    22: "transactions.init_producer_id",
    23: "fetch.offset_for_leader_epoch",
    24: "transactions.add_partitions_to_txn",
    25: "transactions.add_offsets_to_txn",
    26: "transactions.end_txn",
    27: "transactions.write_txn_markers",
    28: "transactions.txn_offset_commit",
    29: "unconfigured.describe_acls",
    30: "unconfigured.create_acls",
    31: "unconfigured.delete_acls",
    32: "configs.describe_configs",
    33: "configs.alter_configs",
    35: "cluster.describe_log_dirs",
    36: "unconfigured.sasl_authenticate",
    37: "topics.create_partitions",
    38: "unconfigured.create_delegation_token",
    39: "unconfigured.renew_delegation_token",
    40: "unconfigured.expire_delegation_token",
    41: "unconfigured.describe_delegation_token",
    42: "groups.delete_groups",
    43: "cluster.elect_leaders",
    44: "configs.incremental_alter_configs",
    46: "cluster.list_partition_reassignments",
    47: "groups.offset_delete",
    48: "unconfigured.describe_client_quotas",
    50: "unconfigured.describe_user_scram_credentials",
    57: "cluster.update_features",
    60: "cluster.describe_cluster",
    61: "transactions.describe_producers",
    65: "transactions.describe_transactions",
    66: "transactions.list_transactions",
    68: "groups.consumer_group_heartbeat",
    69: "groups.consumer_group_describe",
    74: "configs.list_config_resources",
    75: "topics.describe_topic_partitions",
}

Handle = Callable[[Context, Any], Awaitable[Any]]
"""Leaves the lists of a request as they are: a long one is let go in slices, when the request is answered."""
HandleNow = Callable[[Context, Any, Callable[[Any], None]], bool]
"""For frequent requests, beside ``handle``: without a task. True: the last argument is called with the answer, now or
later, once. False: this one can't be served so, and nothing has happened. Only asked for requests that are small."""

_pack_head = Struct(">ii").pack
_pack_tagged_head = Struct(">iiB").pack


def handler_module(key: int) -> Any:
    return import_module(f"headpond.broker.handlers.{HANDLERS[key]}")


def advertised_versions() -> list[tuple[int, int, int]]:
    """(key, lowest, highest) of everything served, as ApiVersions lists it."""
    return [(key, APIS[key].advertised[0], APIS[key].advertised[-1]) for key in sorted(HANDLERS)]


class Route:
    """The way of the requests of one API in one version: looked up once, followed often."""

    __slots__ = (
        "_encode",
        "_is_tagged",
        "decode",
        "handle",
        "handle_now",
        "is_flexible",
        "key",
        "looks_into_records",
        "meter",
        "name",
        "parks",
        "version",
    )

    def __init__(self, key: int, version: int, meter: RequestMeter) -> None:
        self.key = key
        self.version = version
        self.name = APIS[key].name
        self.meter = meter
        self.is_flexible = APIS[key].is_flexible(version)
        self.decode = request_decoder(key, version)
        module = handler_module(key)
        self.handle: Handle = module.handle
        self.handle_now: HandleNow | None = getattr(module, "handle_now", None)
        self.parks: bool = getattr(module, "PARKS", False)
        self.looks_into_records: bool = getattr(module, "LOOKS_INTO_RECORDS", False)
        self._encode = response_encoder(key, version)
        self._is_tagged = has_tagged_response_header(key, version)

    def frame(self, correlation_id: int, response: Any) -> bytes:
        """The answer as it leaves."""
        body = self._encode(response)
        return self.head(correlation_id, len(body)) + body

    def head(self, correlation_id: int, body_bytes: int) -> bytes:
        """What stands before the body of an answer."""
        if self._is_tagged:
            return _pack_tagged_head(body_bytes + 5, correlation_id, 0)
        return _pack_head(body_bytes + 4, correlation_id)

    def decode_in_slices(self, frame: bytes, position: int) -> Generator[None, None, tuple[Any, int, int]]:
        return request_decoder_in_slices(self.key, self.version)(frame, position)

    def append_in_slices(self, out: bytearray, response: Any) -> Generator[None, None, None]:
        return response_appender_in_slices(self.key, self.version)(out, response)
