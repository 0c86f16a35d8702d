"""SaslHandshake: v0-v1. On a listener without SASL it is advertised and refused (34), as Kafka does."""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.model import ErrorCode
from headpond.protocol.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API = Api(key=17, versions=range(0, 2), name="SaslHandshake")


async def handle(ctx: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
