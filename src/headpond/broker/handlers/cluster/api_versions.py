"""ApiVersions: v0-v4.

Behaviour   Lists what this broker serves. A version that we do not know is answered all the same, in v0: error 35 and
            the range of ApiVersions itself, so that the client can step down. A client software name or version that is
            not made of letters, digits, '.' and '-' (or starts or ends with one of the latter two) is refused with 42.
            Features are finalized when what they stand for works (``cluster/features.py``).
Versions    v1 throttle time · v3 client software, features (KIP-511, KIP-584) · v4 supported features from 0 on
"""

from __future__ import annotations

import re

from headpond.broker.requests.context import Context
from headpond.cluster.features import SUPPORTED
from headpond.model import ErrorCode
from headpond.protocol.apis import API_VERSIONS, advertised_versions
from headpond.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse

CLIENT_SOFTWARE_SINCE = 3
MINIMUM_ZERO_SINCE = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")

ApiVersion = ApiVersionsResponse.ApiVersion


async def handle(ctx: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if ctx.version >= CLIENT_SOFTWARE_SINCE and not (
        _SOFTWARE.match(request.client_software_name) and _SOFTWARE.match(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = ctx.broker.image
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in advertised_versions()
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
            if low > 0 or ctx.version >= MINIMUM_ZERO_SINCE
        ],
        # Level 0 means "not finalized", and the field's place is for those that are.
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(image.features.items())
            if level > 0
        ],
        finalized_features_epoch=image.revision,
    )


def unsupported_version_response() -> ApiVersionsResponse:
    """To be sent as v0, whatever version was asked for."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(
                api_key=API_VERSIONS.key, min_version=API_VERSIONS.min_version, max_version=API_VERSIONS.max_version
            )
        ],
    )
