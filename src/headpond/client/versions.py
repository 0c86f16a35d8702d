"""Which version of each API a broker and we both speak.

Asked once per connection, with our newest ApiVersions. A broker that does not know that version answers in version 0
with UNSUPPORTED_VERSION and says which it knows (KIP-511); then we ask again in the newest that both know.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from headpond import __version__
from headpond.client.errors import ClientError, raise_for
from headpond.model import ErrorCode
from headpond.protocol.apis import API_VERSIONS_KEY, APIS
from headpond.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from headpond.protocol.types import Message

SOFTWARE_NAME = "headpond"


class _Sends(Protocol):
    def send(self, message: Message, *, timeout_s: float, version: int) -> asyncio.Future[Any]: ...


class Versions:
    """What one broker speaks."""

    def __init__(
        self, broker: str, theirs: dict[int, range] | None = None, features: dict[str, int] | None = None
    ) -> None:
        self._broker = broker
        self._theirs = theirs or {}
        self.features = features or {}
        """Finalized features and their levels."""

    def of(self, key: int, version_max: int | None = None) -> int | None:
        """The newest version of that API that both sides speak."""
        ours, theirs = APIS[key].versions, self._theirs.get(key, range(0))
        newest = min(ours.stop, theirs.stop) - 1
        if version_max is not None:
            newest = min(newest, version_max)
        return newest if newest in ours and newest in theirs else None

    def choose(self, message: Message, version_max: int | None = None) -> int:
        """The same for a message; raises ``UNSUPPORTED_VERSION``, which says who speaks what."""
        version = self.of(message.KEY, version_max)
        if version is None:
            api, theirs = APIS[message.KEY], self._theirs.get(message.KEY)
            what = f"only v{theirs.start}-{theirs.stop - 1} of it" if theirs else "nothing of it"
            raise ClientError(ErrorCode.UNSUPPORTED_VERSION, f"{self._broker} can't do {api.name}: it speaks {what}")
        return version


async def ask_versions(connection: _Sends, timeout_s: float, broker: str = "the broker") -> Versions:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    version = APIS[API_VERSIONS_KEY].max_version
    response: ApiVersionsResponse = await connection.send(request, timeout_s=timeout_s, version=version)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        theirs = _ranges(response).get(API_VERSIONS_KEY, range(1))
        version = min(version, theirs.stop - 1)
        response = await connection.send(request, timeout_s=timeout_s, version=max(0, version))
    raise_for(response.error_code, "ApiVersions")
    features = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return Versions(broker, _ranges(response), features)


def _ranges(response: ApiVersionsResponse) -> dict[int, range]:
    return {api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys}
