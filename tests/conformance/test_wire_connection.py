"""One connection: order, pipelining, version negotiation, and the requests after which Kafka hangs up."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from headpond.protocol.apis import APIS
from headpond.protocol.codec import decoder
from headpond.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headpond.protocol.schema.metadata import MetadataRequest
from headpond.protocol.schema.sasl_handshake import SaslHandshakeRequest
from support.batches import build
from support.served import SERVED
from support.verbs import Topic, append, end_offset, fetch_partition, fetch_request, produce_request, stored
from support.waiting import eventually
from support.wire import API_KEYS, Wire, request_header

UNSUPPORTED_VERSION, INVALID_REQUEST, ILLEGAL_SASL_STATE = 35, 42, 34
CLIENT = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")


def test_a_hundred_pipelined_produces_are_answered_and_stored_in_order(wire: Wire, topic: Topic) -> None:
    frames = [wire.frame(produce_request(topic, build([b"%d" % n]), version=9), 9) for n in range(100)]
    wire.send_raw(b"".join(data for _, data in frames))
    for position, (correlation_id, _) in enumerate(frames):
        answered, response = wire.receive()
        part = response.responses[0].partition_responses[0]
        assert (answered, part.error_code, part.base_offset) == (correlation_id, 0, position)
    assert [b.base_offset for b in stored(wire, topic)] == list(range(100))


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_requests_of_different_kinds_are_answered_in_the_order_they_were_sent(
    wire: Wire, topic: Topic, acks: int
) -> None:
    expected = []
    for _ in range(10):
        sent = wire.send(produce_request(topic, build([b"x"] * 10), version=9, acks=acks), 9)
        expected += [sent] if acks else []
        expected.append(wire.send(MetadataRequest(topics=[]), 12))
        expected.append(wire.send(fetch_request({topic: [fetch_partition()]}, version=12), 12))
        expected.append(wire.send(CLIENT, 3))
    assert [wire.receive()[0] for _ in expected] == expected
    eventually(lambda: end_offset(wire, topic) == 100)


def test_a_parked_fetch_holds_back_the_answers_behind_it(
    connect: Callable[..., Wire], wire: Wire, topic: Topic
) -> None:
    parked = wire.send(fetch_request({topic: [fetch_partition()]}, version=12, max_wait_ms=60_000), 12)
    behind = wire.send(MetadataRequest(topics=[]), 12)
    wire.assert_silent()
    append(connect(), topic, build([b"wake"]))
    assert [wire.receive()[0], wire.receive()[0]] == [parked, behind]


def test_a_frame_that_arrives_byte_by_byte_is_answered(wire: Wire) -> None:
    correlation_id, frame = wire.frame(MetadataRequest(topics=[]), 12)
    for position in range(len(frame)):
        wire.send_raw(frame[position : position + 1])
    assert wire.receive()[0] == correlation_id


def test_every_served_api_is_advertised_with_kafka_s_versions(wire: Wire) -> None:
    response = wire.call(CLIENT, 4)
    advertised = {APIS[k.api_key].name: (k.min_version, k.max_version) for k in response.api_keys if k.api_key in APIS}
    assert {name: advertised.get(name) for name in SERVED} == SERVED
    assert response.finalized_features_epoch >= 0


@pytest.mark.parametrize("version", [5, 99, -1, 32_767])
def test_an_unknown_version_of_apiversions_gets_a_v0_answer_that_names_the_right_ones(wire: Wire, version: int) -> None:
    header = request_header(18, version, 7, "wire", flexible=True)
    wire.send_raw(struct.pack(">i", len(header)) + header)
    frame = wire.receive_frame()
    assert struct.unpack_from(">i", frame) == (7,)
    response, end = decoder(ApiVersionsResponse, 0)(frame, 4)
    assert end == len(frame)
    assert response.error_code == UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]
    assert wire.call(CLIENT, 3).error_code == 0, "the connection goes on, the client asks again"


@pytest.mark.parametrize("software", ["", "bad name!", "-starts-with-dash"])
def test_a_bad_client_software_name_is_an_invalid_request(wire: Wire, software: str) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1.0")
    assert wire.call(request, 3).error_code == INVALID_REQUEST


def test_v3_leaves_out_supported_features_whose_minimum_is_zero_and_v4_does_not(wire: Wire) -> None:
    v3, v4 = (wire.call(CLIENT, version) for version in (3, 4))
    assert all(f.min_version > 0 for f in v3.supported_features)
    assert {f.name for f in v3.supported_features} <= {f.name for f in v4.supported_features}
    supported = {f.name: f.max_version for f in v4.supported_features}
    assert all(f.max_version_level <= supported[f.name] for f in v4.finalized_features)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(0, 0), (0, 1), (0, 2), (0, 14), (1, 3), (1, 99), (3, 14), (19, 1), (999, 0), (-5, 0), (4, 0), (22, -1)],
)
def test_an_unknown_api_or_version_closes_the_connection(
    connect: Callable[..., Wire], api_key: int, version: int
) -> None:
    wire = connect()
    header = request_header(api_key, version, 1, "wire", flexible=False) + bytes(64)
    wire.send_raw(struct.pack(">i", len(header)) + header)
    wire.assert_closed()
    assert connect().call(CLIENT, 3).error_code == 0, "others are served"


def test_what_was_asked_before_a_bad_request_is_answered_before_the_connection_closes(wire: Wire, topic: Topic) -> None:
    _, good = wire.frame(produce_request(topic, build([b"x"]), version=9), 9)
    bad = request_header(999, 0, 1, "wire", flexible=False)
    wire.send_raw(good)
    wire.receive()
    wire.send_raw(struct.pack(">i", len(bad)) + bad)
    wire.assert_closed()


def test_a_body_that_can_t_be_read_closes_the_connection(connect: Callable[..., Wire]) -> None:
    for api in ("Metadata", "Fetch", "CreateTopics", "DescribeConfigs"):
        key = API_KEYS[api]
        wire = connect()
        version = APIS[key].max_version
        body = request_header(key, version, 1, "wire", flexible=True) + b"\xff" * 20
        wire.send_raw(struct.pack(">i", len(body)) + body)
        wire.assert_closed()


@pytest.mark.parametrize("version", [0, 1])
def test_sasl_on_a_plain_listener_is_an_illegal_state(wire: Wire, version: int) -> None:
    assert wire.call(SaslHandshakeRequest(mechanism="PLAIN"), version).error_code == ILLEGAL_SASL_STATE


@pytest.mark.parametrize("client_id", [None, "", "ünïcode", "x" * 1_000])
def test_any_client_id_is_fine(connect: Callable[..., Wire], client_id: str | None) -> None:
    wire = connect(client_id=client_id)
    assert wire.call(CLIENT, 0).error_code == 0
    assert wire.call(CLIENT, 3).error_code == 0
    assert wire.call(MetadataRequest(topics=[]), 1).brokers
