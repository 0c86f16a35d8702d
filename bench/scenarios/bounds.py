"""What the largest request that is accepted of each API costs everybody else: the latency of others, and memory.

One connection sends it, another sends small requests all the while, one after the other. The requests are made from the
table of what is served, so a new API is measured as well.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..harness import Bench
from ..measure import RSS, Bar, Metric, Sample, Samples, Scenario
from ..servers import START_MAX_S, Server
from ..wire import RequestFailed, Wire
from .groups import find_coordinator

REQUEST_BYTES_MAX = 8_388_608
ELEMENTS_MAX = 1_000_000
WATCHED_S = 15.0
"""A request that takes longer is left alone then; its broker is stopped."""
API_VERSIONS = 18
TOPIC = "t"

OTHERS_P99 = Metric("others_p99_ms", "ms p99 of others", "lower", 1)
OTHERS_MAX = Metric("others_max_ms", "ms at most for others", "lower", 1)
ANSWERED = Metric("answered_s", "s to the answer", "lower", 1)
BAR_MS = 100.0

FIELDS: dict[str, dict[str, Any]] = {
    "CreateAcls": {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3},
    "DeleteAcls": {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3, "permission_type": 3},
    "DescribeConfigs": {"resource_type": 4, "resource_name": "1", "configuration_keys": None},
    "AlterConfigs": {"resource_type": 2},
    "IncrementalAlterConfigs": {"resource_type": 2},
    "CreateTopics": {"num_partitions": 1, "replication_factor": 1, "validate_only": True},
    "JoinGroup": {"session_timeout_ms": 10_000, "protocol_type": "consumer"},
    "Metadata": {"allow_auto_topic_creation": False},
    "Fetch": {"replica_id": -1, "session_epoch": -1, "max_bytes": 1_000_000},
}
"""What makes a broker go on beyond its first check."""


def _largest_requests() -> dict[str, Callable[[], bytes]]:
    """By API and list: the whole frame, made when it is asked for. APIs whose requests have no list have no size."""
    from headpond.protocol.apis import APIS, SERVED
    from headpond.protocol.facts import struct_fields

    found: dict[str, Callable[[], bytes]] = {}
    for key in sorted(SERVED):
        info, version = APIS[key], APIS[key].versions[-1]
        if info.name != "Produce":
            for field in struct_fields(info.request, info.request):
                if field.is_list and version in field.versions:
                    found[f"{info.name} {field.name}"] = lambda key=key, field=field: _frame(key, field)  # type: ignore[misc]
    return found


def _frame(key: int, field: Any) -> bytes:
    from headpond.protocol.apis import APIS, request_encoder
    from headpond.protocol.facts import struct_fields
    from headpond.protocol.header import encode_request_header

    info, version = APIS[key], APIS[key].versions[-1]
    encode, make = request_encoder(key, version), _element_maker(info, version, field)
    known = {each.name for each in struct_fields(info.request, info.request) if version in each.versions}
    given = {"timeout_ms": 60_000, "group_id": "g", **FIELDS.get(info.name, {})}
    fields = {name: value for name, value in given.items() if name in known}

    def request(count: int) -> bytes:
        whole = encode(info.request(**fields, **{field.name: [make(number) for number in range(count)]}))
        return encode_request_header(key, version, 1, "bench") + whole

    lists = 0 if field.struct is None else sum(each.is_list for each in struct_fields(field.struct, info.request))
    element_bytes = (len(request(2_000)) - len(request(1_000))) / 1_000
    count = min(ELEMENTS_MAX // (1 + lists), int((REQUEST_BYTES_MAX - 1_000) / element_bytes))  # of all lists together
    while len(whole := request(count)) > REQUEST_BYTES_MAX:  # later names are longer
        count = int(count * REQUEST_BYTES_MAX / len(whole)) - 1_000
    return struct.pack(">i", len(whole)) + whole


def _element_maker(info: Any, version: int, field: Any) -> Callable[[int], Any]:
    from headpond.protocol.facts import struct_fields

    if field.struct is None:
        return lambda number: _value(field.wire, field.name, number)
    kind, given = field.struct, FIELDS.get(info.name, {})
    values: dict[str, Any] = {}
    texts = []
    for each in struct_fields(kind, info.request):
        if version not in each.versions or each.tag is not None:
            continue
        if each.name in given:
            values[each.name] = given[each.name]
        elif each.is_list:
            values[each.name] = [] if each.struct is not None else [_value(each.wire, each.name, 0)]
        elif each.struct is None and each.wire == "string":
            texts.append(each.name)
        elif each.wire == "uuid":
            values[each.name] = bytes(16)
    return lambda number: kind(**values, **dict.fromkeys(texts, f"{number:x}"))


def _value(wire: str, name: str, number: int) -> Any:
    if wire == "string":
        return f"{number:x}"
    if wire == "uuid":
        return bytes(16)
    if wire in ("bytes", "records"):
        return b""
    return 2 if name == "resource_types" else number % 100


def _one_run(bench: Bench, make_frame: Callable[[], bytes]) -> Sample:
    frame = make_frame()
    with bench.fresh("headpond") as server:
        server.start()
        server.create_topic(TOPIC, 1)
        with Wire.connect(server.port, time.monotonic() + START_MAX_S) as others:
            find_coordinator(others, "g", time.monotonic() + START_MAX_S)
            for _ in range(20):
                _ask_small(others)
            return _beside(server, frame, others)


def _ask_small(wire: Wire) -> None:
    wire.ask(API_VERSIONS, 0, b"")
    if code := wire.produce_one(TOPIC, 0, acks=1):
        raise RequestFailed(f"produce: error {code}")


def _beside(server: Server, frame: bytes, others: Wire) -> Sample:
    sending = socket.create_connection(("127.0.0.1", server.port), timeout=600)
    answered_s: list[float] = []
    started = time.monotonic()

    def send_and_read() -> None:
        try:
            sending.sendall(frame)
            left = struct.unpack(">i", _exactly(sending, 4))[0]
            while left > 0:
                left -= len(sending.recv(min(left, 1 << 20))) or left
        except OSError:
            pass  # refused, or left alone
        answered_s.append(time.monotonic() - started)

    reading = threading.Thread(target=send_and_read, daemon=True)
    reading.start()
    latencies: list[float] = []
    rss_mb = 0.0
    while time.monotonic() - started < WATCHED_S and (not answered_s or len(latencies) < 100):
        asked = time.monotonic()
        _ask_small(others)
        latencies.append((time.monotonic() - asked) / 2 * 1_000)  # two requests
        rss_mb = max(rss_mb, server.rss_mb())
    sending.close()
    latencies.sort()
    sample = {"others_p99_ms": latencies[int(len(latencies) * 0.99)], "others_max_ms": latencies[-1], "rss_mb": rss_mb}
    if answered_s:
        sample["answered_s"] = answered_s[0]
    return sample


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = sock.recv(size - len(parts))
        if not part:
            raise ConnectionError("the broker closed the connection")
        parts += part
    return parts


def _bounds(bench: Bench) -> Samples:
    if not bench.alone("headpond"):
        return {}
    requests = _largest_requests()
    return bench.some_runs(list(requests), 1 if bench.plan.quick else 2, lambda name: _one_run(bench, requests[name]))


def _bars() -> Iterator[Bar]:
    for name in _largest_requests():
        yield Bar(f"{name}: others at most {BAR_MS:.0f} ms at p99", OTHERS_P99, absolute=BAR_MS, subject=name)


SCENARIOS = (
    Scenario(
        "bounds",
        "the largest request of each API, and everybody else",
        "raw sockets; one connection sends the largest request that is accepted (8 MiB or a million elements), another "
        "small ApiVersions and Produce requests one after the other until it is answered, or for 15 s; a broker of its "
        "own for each",
        (OTHERS_P99, OTHERS_MAX, ANSWERED, RSS),
        tuple(_bars()),
        _bounds,
    ),
)
