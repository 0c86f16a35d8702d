"""SaslAuthenticate: v0-v2. On a listener without SASL it is advertised and refused (34), in Kafka's words."""

from __future__ import annotations

from headpond.broker.requests.api import Api
from headpond.broker.requests.context import Context
from headpond.model import ErrorCode
from headpond.protocol.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

API = Api(key=36, versions=range(3), name="SaslAuthenticate")


async def handle(ctx: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
