"""Heartbeats as they come from the wire: the bytes that a member sends again and again are understood once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headpond.broker.handlers.groups.heartbeat import HeartbeatHandler
from headpond.broker.requests.context import ANONYMOUS
from headpond.broker.security.authorizer import AllowAll
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.apis import HEARTBEAT, request_encoder, response_decoder
from headpond.protocol.errors import MalformedMessage
from headpond.protocol.header import decode_response_header, encode_request_header
from headpond.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headpond.telemetry.requests import RequestMeters
from simulation.harness.clock import ManualClock


class Groups:
    """Answers with the code it was given, and remembers who asked."""

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.refused: BrokerError | None = None
        self.beats: list[HeartbeatRequest] = []

    def read(self, group_id: str, look: Any) -> HeartbeatResponse:
        if self.refused is not None:
            raise self.refused
        answer: HeartbeatResponse = look(self)
        return answer

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        self.beats.append(request)
        return HeartbeatResponse(error_code=self.code)


class World:
    def __init__(self) -> None:
        self.groups = Groups()
        self.meters = RequestMeters()
        broker: Any = SimpleNamespace(groups=self.groups, authorizer=AllowAll(), clock=ManualClock())
        self.handler = HeartbeatHandler(broker, self.meters.of("Heartbeat"))
        self.connection: Any = SimpleNamespace(
            last_heartbeat=None, newest_slot=None, listener=None, principal=ANONYMOUS, peer_host="10.0.0.1"
        )
        self.correlation_id = 0

    def beat(self, version: int = 4, **fields: Any) -> ErrorCode:
        request = HeartbeatRequest(**{"group_id": "readers", "member_id": "m", "generation_id": 3, **fields})
        return self.send(version, request_encoder(HEARTBEAT.key, version)(request))

    def send(self, version: int, body: bytes) -> ErrorCode:
        self.correlation_id += 1
        frame = bytearray(b"size" + encode_request_header(HEARTBEAT.key, version, self.correlation_id, "client") + body)
        answer = self.handler.receive(
            self.connection, frame, memoryview(frame), 4, len(frame), version, self.correlation_id
        )
        assert answer is not None
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        correlation_id, position = decode_response_header(answer[4:], HEARTBEAT.key, version)
        assert correlation_id == self.correlation_id
        response, end = response_decoder(HEARTBEAT.key, version)(answer[4:], position)
        assert end == len(answer) - 4
        assert response.throttle_time_ms == 0
        return ErrorCode(response.error_code)


@pytest.mark.parametrize("version", HEARTBEAT.versions)
def test_every_version_is_answered_in_its_own_form(version: int) -> None:
    world = World()
    assert world.beat(version) is ErrorCode.NONE
    world.groups.code = ErrorCode.REBALANCE_IN_PROGRESS
    assert world.beat(version) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_same_bytes_ask_the_group_again_every_time() -> None:
    world = World()
    for code in (ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID):
        world.groups.code = code
        assert world.beat() is code
    assert len(world.groups.beats) == 4
    assert world.groups.beats[0] is world.groups.beats[3], "decoded once"


@pytest.mark.parametrize(
    "change",
    [{"generation_id": 4}, {"member_id": "n"}, {"group_id": "writers"}, {"group_instance_id": "i"}, {"version": 3}],
    ids=lambda change: next(iter(change)),
)
def test_a_member_that_says_something_else_is_heard(change: dict[str, Any]) -> None:
    world = World()
    world.beat()
    world.beat(**change)
    before, after = world.groups.beats
    assert before is not after
    for name, value in change.items():
        assert name == "version" or getattr(after, name) == value


def test_a_request_that_is_cut_short_is_malformed_even_after_a_good_one() -> None:
    world = World()
    body = request_encoder(HEARTBEAT.key, 4)(HeartbeatRequest(group_id="readers", member_id="m"))
    world.send(4, body)
    with pytest.raises(MalformedMessage):
        world.send(4, body[:-1])


def test_a_group_that_is_being_loaded_is_content_and_one_that_is_coordinated_elsewhere_says_so() -> None:
    world = World()
    world.groups.refused = BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert world.beat() is ErrorCode.NONE
    world.groups.refused = BrokerError(ErrorCode.NOT_COORDINATOR)
    assert world.beat() is ErrorCode.NOT_COORDINATOR
    assert world.beat(group_id="") is ErrorCode.INVALID_GROUP_ID


def test_each_is_counted_and_so_are_its_errors() -> None:
    world = World()
    for _ in range(9):
        world.beat()
    world.groups.code = ErrorCode.ILLEGAL_GENERATION
    world.beat()
    meter = world.meters.of("Heartbeat")
    assert meter.total == 10
    assert world.meters.errors.at("Heartbeat", "ILLEGAL_GENERATION").value == 1
