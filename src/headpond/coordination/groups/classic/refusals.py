"""What is refused before anybody asks whether this broker coordinates the group."""

from __future__ import annotations

from headpond.config.groups import GroupSettings
from headpond.model import ErrorCode
from headpond.protocol.schema.join_group import JoinGroupRequest
from headpond.protocol.schema.sync_group import SyncGroupRequest


def join_refusal(request: JoinGroupRequest, settings: GroupSettings) -> ErrorCode | None:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not settings.session_timeout_ms_min <= request.session_timeout_ms <= settings.session_timeout_ms_max:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def sync_refusal(request: SyncGroupRequest, version: int) -> ErrorCode | None:
    if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None if request.group_id else ErrorCode.INVALID_GROUP_ID
