"""Who we are, told to one broker by SASL: SaslHandshake v1, then SaslAuthenticate, when a connection is opened.

A broker may let a session end (KIP-368, ``connections.max.reauth.ms``) and closes a connection that goes on after
that. So the same is told again on the same connection, somewhat earlier, while requests wait; if that fails, the
connection ends, and whoever opens the next one is told why.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from headpond.client.errors import ClientError, SecurityFailed, error_code
from headpond.client.sasl import Distrusted, begin
from headpond.client.security import Sasl
from headpond.model import ErrorCode
from headpond.ports import Clock, Random, Tasks, TimerHandle
from headpond.protocol.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headpond.protocol.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headpond.protocol.types import Message

HANDSHAKE_VERSION_MIN = 1
"""With version 0 the exchange would follow without headers: brokers of before 2017."""
MESSAGES_MAX = 10
"""In one exchange; SCRAM has two."""
AGAIN_S_MAX = 30.0


class _Connection(Protocol):
    when_ended: Any

    @property
    def address(self) -> object: ...
    @property
    def versions(self) -> Any: ...
    @property
    def is_open(self) -> bool: ...
    async def become_quiet(self) -> None: ...
    def send_in_quiet(self, message: Message, *, timeout_s: float) -> asyncio.Future[Any]: ...
    def end_quiet(self) -> None: ...
    def give_up(self, why: str) -> None: ...


class Login:
    """Of one connection, as long as it lives."""

    def __init__(self, connection: _Connection, sasl: Sasl, clock: Clock, tasks: Tasks, random: Random) -> None:
        self._connection = connection
        self._sasl = sasl
        self._clock = clock
        self._tasks = tasks
        self._random = random
        self._timer: TimerHandle | None = None

    async def begin(self, timeout_s: float) -> None:
        """Raises ``SecurityFailed``; or what ``Connection.send`` does, where there is no answer."""
        self._connection.when_ended = self._forget
        lifetime_ms = await self._authenticate(timeout_s)
        if lifetime_ms > 0 and self._connection.is_open:
            # As Kafka's clients do: not at the last moment, and not all at the same one.
            share = 0.85 + 0.10 * self._random.random_int(1_024) / 1_024
            self._timer = self._clock.call_later(lifetime_ms / 1_000 * share, self._due)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        if self._connection.is_open:
            self._tasks.spawn(f"client-authenticate-{self._connection.address}", self._again())

    async def _again(self) -> None:
        try:
            await self.begin(AGAIN_S_MAX)
        except ClientError as error:
            self._connection.give_up(f"{self._connection.address} could not be told again who we are: {error}")

    async def _authenticate(self, timeout_s: float) -> int:
        """How long the broker lets the session last, in milliseconds; 0: no limit."""
        connection = self._connection
        await connection.become_quiet()
        try:
            await self._agree_on_mechanism(timeout_s)
            return await self._exchange(timeout_s)
        finally:
            connection.end_quiet()

    async def _agree_on_mechanism(self, timeout_s: float) -> None:
        connection, mechanism = self._connection, self._sasl.mechanism
        version = connection.versions.of(SaslHandshakeRequest.KEY)
        if version is not None and version < HANDSHAKE_VERSION_MIN:
            raise SecurityFailed(f"{connection.address} is too old for SASL with this client")
        request = SaslHandshakeRequest(mechanism=mechanism)
        response: SaslHandshakeResponse = await connection.send_in_quiet(request, timeout_s=timeout_s)
        code = response.error_code
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(sorted(response.mechanisms)) or "none"
            raise SecurityFailed(
                f"{connection.address} does not take the SASL mechanism {mechanism}, only {offered}",
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            )
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise SecurityFailed(
                f"{connection.address} does not speak SASL: is security.protocol right?", ErrorCode.ILLEGAL_SASL_STATE
            )
        if code:
            raise self._refused(code, None)

    async def _exchange(self, timeout_s: float) -> int:
        exchange = begin(self._sasl, self._random)
        message: bytes | None = exchange.first()
        for _ in range(MESSAGES_MAX):
            assert message is not None
            request = SaslAuthenticateRequest(auth_bytes=message)
            response: SaslAuthenticateResponse = await self._connection.send_in_quiet(request, timeout_s=timeout_s)
            if response.error_code:
                raise self._refused(response.error_code, response.error_message)
            try:
                message = exchange.answer(bytes(response.auth_bytes))
            except Distrusted as error:
                raise SecurityFailed(
                    f"{self._connection.address} is not to be trusted in {self._sasl.mechanism}: {error}"
                ) from None
            if message is None:
                return response.session_lifetime_ms
        raise SecurityFailed(f"{self._connection.address} does not come to an end with {self._sasl.mechanism}")

    def _refused(self, code: int, words: str | None) -> SecurityFailed:
        who = f"user {self._sasl.username}" if self._sasl.username else "our token"
        why = (words or error_code(code).name).strip().rstrip(".")
        return SecurityFailed(
            f"{self._connection.address} does not let {who} in by {self._sasl.mechanism}: {why}",
            ErrorCode.SASL_AUTHENTICATION_FAILED,
        )
