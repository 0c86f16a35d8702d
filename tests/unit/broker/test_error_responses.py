"""A request that failed as a whole is answered in its own API, and its connection goes on: whatever the API."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from headpond.broker.requests.context import Context, ListenerInfo
from headpond.broker.requests.dispatch import Dispatch, handled
from headpond.broker.requests.error_responses import ELEMENTS_AT_ONCE, error_response
from headpond.broker.requests.response_errors import error_codes
from headpond.broker.requests.routes import handle_of, handler_module
from headpond.coordination.slices import PAUSE_S
from headpond.model import BrokerError, ErrorCode
from headpond.model.errors import MESSAGE_CHARACTERS_MAX
from headpond.protocol.apis import APIS, SERVED, request_decoder, request_encoder, response_decoder, response_encoder
from headpond.protocol.facts import FieldFacts, struct_fields
from headpond.protocol.header import decode_response_header, encode_request_header
from headpond.protocol.schema.create_topics import CreateTopicsRequest
from headpond.protocol.schema.end_txn import EndTxnRequest
from headpond.protocol.schema.fetch import FetchRequest
from headpond.protocol.schema.list_offsets import ListOffsetsRequest
from headpond.protocol.schema.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from headpond.telemetry.requests import RequestMeters
from simulation.harness.clock import ManualClock
from unit.broker.asking import LISTENER
from unit.broker.coordinator_cases import Coordinators, with_coordinators

FAILED = BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")
EVERY_VERSION = [(key, version) for key in sorted(SERVED) for version in APIS[key].versions]
SERVED_WITHOUT_THE_DISPATCHER = {0, 1}
"""Produce and Fetch answer for each partition, whatever happens to it."""
WITHOUT_A_PLACE = {(35, 1), (35, 2)}
"""DescribeLogDirs: as in Kafka, an empty list."""


def with_two_of_everything(key: int, version: int) -> Any:
    """A request in which every list has two elements, told apart by their values."""
    message = APIS[key].request
    numbers = iter(range(1, 1_000))

    def struct(kind: type[msgspec.Struct]) -> Any:
        fields = [field for field in struct_fields(kind, message) if version in field.versions]
        return kind(**{field.name: value(field) for field in fields if field.is_list or field.name.endswith(NAMES)})

    def value(field: FieldFacts) -> Any:
        return [one(field), one(field)] if field.is_list else one(field)

    def one(field: FieldFacts) -> Any:
        if field.struct is not None:
            return struct(field.struct)
        number = next(numbers)
        return {"string": f"name-{number}", "uuid": number.to_bytes(16, "big")}.get(field.wire, number % 100)

    return struct(message)


NAMES = ("name", "topic", "topic_id", "index", "partition", "group_id", "resource_type", "producer_id")


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION, ids=lambda value: str(value))
def test_every_api_has_an_answer_with_the_code_and_nothing_but_it(key: int, version: int) -> None:
    encoded = request_encoder(key, version)(with_two_of_everything(key, version))
    request, _ = request_decoder(key, version)(encoded, 0)
    response = error_response(key, version, request, FAILED)
    sent = response_encoder(key, version)(response)
    received, end = response_decoder(key, version)(sent, 0)
    assert end == len(sent)
    codes = set(error_codes(received))
    assert codes == (set() if (key, version) in WITHOUT_A_PLACE else {ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


def answer(key: int, version: int, request: Any) -> Any:
    sent = response_encoder(key, version)(error_response(key, version, request, FAILED))
    return response_decoder(key, version)(sent, 0)[0]


def test_each_element_is_answered_for_by_its_name() -> None:
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
    request = ListOffsetsRequest(
        topics=[topic(name="a", partitions=[partition(partition_index=3, timestamp=5)]), topic(name="b")]
    )
    found = answer(2, 11, request).topics
    assert [(each.name, [row.partition_index for row in each.partitions]) for each in found] == [("a", [3]), ("b", [])]
    assert (found[0].partitions[0].error_code, found[0].partitions[0].timestamp) == (31, -1)
    old = FetchRequest(
        topics=[FetchRequest.FetchTopic(topic="a", partitions=[FetchRequest.FetchPartition(partition=7)])]
    )
    (row,) = answer(1, 4, old).responses[0].partitions
    assert (row.partition_index, row.error_code) == (7, 31)


def test_a_message_goes_where_there_is_a_field_for_it() -> None:
    request = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")])
    assert [(each.name, each.error_message) for each in answer(19, 7, request).topics] == [("t", "not you")]


def test_a_list_that_is_null_is_answered_with_an_empty_one() -> None:
    assert answer(3, 12, APIS[3].request(topics=None)).topics == []


def test_what_the_request_says_of_itself_is_not_repeated() -> None:
    assert answer(26, 5, EndTxnRequest(transactional_id="x", producer_id=4, producer_epoch=1)).producer_id == -1


def test_a_message_always_fits_into_a_response() -> None:
    request = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")])
    for text in ("x" * 40_000, "漢" * 20_000, "\U0001f600" * 10_000):
        failed = BrokerError(ErrorCode.INVALID_REQUEST, text)
        assert len(failed.message) == MESSAGE_CHARACTERS_MAX
        response_encoder(19, 7)(error_response(19, 7, request, failed))


@pytest.mark.parametrize(("topics", "partitions"), [(1, 20_000), (20_000, 1), (20_000, 0), (200, 100)])
def test_a_request_with_very_many_elements_is_answered_in_slices(topics: int, partitions: int) -> None:
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
    rows = [partition(partition_index=number) for number in range(partitions)]
    request = ListOffsetsRequest(topics=[topic(name=f"t{number}", partitions=rows) for number in range(topics)])

    async def scenario(broker: Coordinators) -> None:
        async def handle(ctx: Context, request: Any) -> Any:
            raise FAILED

        before_s = broker.cluster.clock.monotonic()
        response = await handled(handle, 2, Context(broker.broker, LISTENER, 11), request)
        assert response == error_response(2, 11, request, FAILED)
        assert len(response.topics) == topics and len(response.topics[-1].partitions) == partitions
        pauses = (broker.cluster.clock.monotonic() - before_s) / PAUSE_S
        assert pauses >= (topics + topics * partitions) // ELEMENTS_AT_ONCE - 1

    with_coordinators(scenario)


# --- at the edge


class Tasks:
    def __init__(self) -> None:
        self.running: list[asyncio.Future[None]] = []

    def spawn(self, name: str, coroutine: Any) -> Any:
        self.running.append(asyncio.ensure_future(coroutine))
        return self.running[-1]


async def there_is_room(slot: Any) -> bool:
    return True


class FakeConnection:
    listener: ListenerInfo = LISTENER
    principal = "User:ANONYMOUS"
    peer_host = "client"

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.is_closed = False
        self.held = 0
        self.server = SimpleNamespace(room_for_an_answer=there_is_room)

    def park(self) -> FakeConnection:
        return self

    def complete(self, parts: tuple[bytes, ...]) -> None:
        self.frames += parts

    def respond(self, frame: bytes) -> None:
        self.frames.append(frame)

    def hold(self) -> None:
        self.held += 1

    def unhold(self) -> None:
        self.held -= 1

    def close(self) -> None:
        self.is_closed = True


def dispatched(key: int, version: int, request: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, FakeConnection]:
    """The answer to ``request`` where every handler raises, by the real dispatcher."""
    module = handler_module(key)

    async def handle(ctx: Context, request: Any) -> Any:
        raise FAILED

    def handle_now(ctx: Context, request: Any, answer: Any) -> bool:
        raise FAILED

    monkeypatch.setattr(module, handle_of(key).__name__, handle)
    if hasattr(module, "handle_now"):
        monkeypatch.setattr(module, "handle_now", handle_now)
    connection, tasks = FakeConnection(), Tasks()
    frame = encode_request_header(key, version, 77, "c") + request_encoder(key, version)(request)

    async def run() -> None:
        broker: Any = SimpleNamespace(clock=ManualClock())
        dispatch = Dispatch(broker, tasks, RequestMeters())  # type: ignore[arg-type]
        dispatch.serve(connection, bytearray(frame), 0, len(frame), key << 16 | version, 77)  # type: ignore[arg-type]
        await asyncio.gather(*tasks.running)

    asyncio.run(run())
    (sent,) = connection.frames
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4
    correlation_id, start = decode_response_header(sent, key, version, 4)
    assert correlation_id == 77
    return response_decoder(key, version)(sent, start)[0], connection


@pytest.mark.parametrize("key", sorted(SERVED.keys() - SERVED_WITHOUT_THE_DISPATCHER))
def test_a_broker_error_that_a_handler_lets_through_is_the_answer(key: int, monkeypatch: pytest.MonkeyPatch) -> None:
    version = APIS[key].versions[-1]
    response, connection = dispatched(key, version, with_two_of_everything(key, version), monkeypatch)
    assert set(error_codes(response)) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert not connection.is_closed
    assert connection.held == 0


def test_markers_of_somebody_who_may_not_write_them_are_refused_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    marker, topic = WriteTxnMarkersRequest.WritableTxnMarker, WriteTxnMarkersRequest.WritableTxnMarkerTopic
    request = WriteTxnMarkersRequest(markers=[marker(producer_id=9, topics=[topic(name="t", partition_indexes=[4])])])
    response, _ = dispatched(27, 2, request, monkeypatch)
    assert isinstance(response, WriteTxnMarkersResponse)
    assert response == error_response(27, 2, request, FAILED)
    (row,) = response.markers[0].topics[0].partitions
    assert (response.markers[0].producer_id, row.partition_index, row.error_code) == (9, 4, 31)
