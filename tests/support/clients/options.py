"""One name for an option that each library spells its own way."""

from __future__ import annotations

import importlib.util
from typing import Any

_DOTTED = {
    "idempotent": "enable.idempotence",
    "isolation": "isolation.level",
    "fetch_wait_ms": "fetch.wait.max.ms",
    "fetch_min_bytes": "fetch.min.bytes",
    "partition_bytes_max": "max.partition.fetch.bytes",
    "request_timeout_ms": "socket.timeout.ms",
    "record_bytes_max": "message.max.bytes",
    "on_out_of_range": "auto.offset.reset",
    "batch_bytes_max": "batch.size",
}
_UNDERSCORED = {
    "idempotent": "enable_idempotence",
    "isolation": "isolation_level",
    "fetch_wait_ms": "fetch_max_wait_ms",
    "fetch_min_bytes": "fetch_min_bytes",
    "partition_bytes_max": "max_partition_fetch_bytes",
    "request_timeout_ms": "request_timeout_ms",
    "record_bytes_max": "max_request_size",
    "on_out_of_range": "auto_offset_reset",
    "batch_bytes_max": "batch_size",
}
_NAMES = {
    "confluent": _DOTTED,
    "kcat": _DOTTED,
    "kafka-python": _UNDERSCORED,
    "aiokafka": {**_UNDERSCORED, "batch_bytes_max": "max_batch_size"},
}


def options_for(client: str, **wanted: Any) -> dict[str, Any]:
    out = {_NAMES[client][name]: value for name, value in wanted.items()}
    if client == "kcat":
        return {name: str(value).lower() for name, value in out.items()}
    return out


_CODEC_PACKAGES = {"kafka-python": {"snappy": "snappy", "lz4": "lz4", "zstd": "zstandard"}}


def missing_codec_package(client: str, codec: str) -> str | None:
    """The package that this client would need for the codec, if it is not installed."""
    package = _CODEC_PACKAGES.get(client, {}).get(codec)
    return package if package and importlib.util.find_spec(package) is None else None
