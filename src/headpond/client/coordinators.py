"""Requests that only one broker can answer: the coordinator of a group or of a transactional id.

A coordinator that is still loading, is not there yet or has moved is looked for again until time is up. What may be
repeated is also sent again when no answer came; anything else is sent once, unless the broker said that it did nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from headpond.client.client import ATTEMPT_TIMEOUT_S_MAX, MAIN_LANE, Client
from headpond.client.errors import ClientError, refusal
from headpond.client.waiting import JitteredBackoff
from headpond.model import ErrorCode
from headpond.protocol.schema.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headpond.protocol.types import Message

Kind = Literal["group", "transaction"]
KEY_TYPES: dict[Kind, int] = {"group": 0, "transaction": 1}
ELSEWHERE = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Nothing was done: the coordinator is another, or not ready."""
NO_ANSWER = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE})

CodesOf = Callable[[Any], list[int]]
"""The error codes of a response that speak for all of it."""


class Coordinated(NamedTuple):
    """What a coordinator is asked about."""

    kind: Kind
    key: str
    lane: str = MAIN_LANE
    """The connection that it is asked over; of its own for requests that may wait long."""

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


async def find_coordinator(client: Client, kind: Kind, key: str, timeout_s: float) -> int:
    """Its node id. Raises what the cluster says of that key; one that is not available is the caller's to retry."""
    request = FindCoordinatorRequest(key_type=KEY_TYPES[kind], coordinator_keys=[key])
    response: FindCoordinatorResponse = await client.request(request, None, timeout_s)
    (found,) = response.coordinators
    if found.error_code:
        raise refusal(found.error_code, f"the coordinator of {kind} {key}", found.error_message or None)
    return found.node_id


async def ask_coordinator(
    client: Client,
    what: Coordinated,
    request: Message,
    codes_of: CodesOf,
    timeout_s: float,
    *,
    may_repeat: bool,
    version_max: int | None = None,
    also_retried: frozenset[ErrorCode] = frozenset(),
) -> Any:
    """The response of its coordinator; error codes in it that a wait does not better are the caller's to read."""
    until_s = client.clock.monotonic() + timeout_s
    backoff = JitteredBackoff(client.random)
    while True:
        left_s = max(0.0, until_s - client.clock.monotonic())
        is_sent = False
        try:
            node_id = await find_coordinator(client, what.kind, what.key, min(left_s, ATTEMPT_TIMEOUT_S_MAX))
            is_sent = True
            left_s = max(0.0, until_s - client.clock.monotonic())
            attempt_s = min(left_s, ATTEMPT_TIMEOUT_S_MAX) if may_repeat else left_s
            response = await client.request(request, node_id, attempt_s, version_max=version_max, lane=what.lane)
            failed = [code for code in codes_of(response) if code in ELSEWHERE or code in also_retried]
            outcome: ClientError | None = refusal(failed[0], str(what)) if failed else None
        except ClientError as error:
            is_safe = may_repeat or not is_sent or error.code is ErrorCode.BROKER_NOT_AVAILABLE
            if error.code not in ELSEWHERE and not (is_safe and error.code in NO_ANSWER):
                raise
            response, outcome = None, error
        pause_s = backoff.next_s()
        if outcome is None:
            return response
        if client.clock.monotonic() + pause_s >= until_s:
            raise outcome
        await client.clock.sleep(pause_s)


async def ask_all_brokers(client: Client, request: Message, what: str, timeout_s: float) -> dict[int, Any]:
    """Each broker's answer for what it coordinates, by node id; one that is still loading is asked again, for half a
    list would be taken for a whole one."""
    until_s = client.clock.monotonic() + timeout_s

    async def ask_one(node_id: int) -> Any:
        backoff = JitteredBackoff(client.random)
        while True:
            response = await client.ask(request, until_s - client.clock.monotonic(), node_id=node_id)
            pause_s = backoff.next_s()
            if response.error_code == 0:
                return response
            if response.error_code not in ELSEWHERE or client.clock.monotonic() + pause_s >= until_s:
                raise refusal(response.error_code, f"{what} of broker {node_id}")
            await client.clock.sleep(pause_s)

    brokers = sorted((await client.metadata([], timeout_s)).brokers)
    return dict(zip(brokers, await asyncio.gather(*map(ask_one, brokers)), strict=True))
