"""One member of a classic group, and the ids that members are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from headpond.coordination.groups.deadline import Deadline
from headpond.ports import Random
from headpond.protocol.schema.join_group import JoinGroupResponse
from headpond.protocol.schema.sync_group import SyncGroupResponse

JoinReply: TypeAlias = Callable[[JoinGroupResponse], None]
SyncReply: TypeAlias = Callable[[SyncGroupResponse], None]
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""Name and metadata of each assignor that a member can work with, the one it likes best first."""


class Member:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_reply: JoinReply | None = None
        """Its JoinGroup waits; only the group sets it, which counts them."""
        self.sync_reply: SyncReply | None = None
        self.is_new = False
        """Its first JoinGroup has not been answered yet: it can't heartbeat."""
        self.session: Deadline | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def waits(self) -> bool:
        """A parked request counts as a heartbeat, except a member's first one: its sender may be gone."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise LookupError(f"member {self.member_id} does not support {protocol_name}")

    def vote(self, candidates: Iterable[str]) -> str:
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise LookupError(f"member {self.member_id} supports none of {sorted(candidates)}")

    def under_new_id(self, member_id: str) -> Member:
        """A static member that came back (KIP-345): everything but its id, its parked requests and its session."""
        return Member(
            member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )


PREFIX_BYTES_MAX = 32_730
"""A string of the protocol has 32,767 bytes, and what makes the id unique 37."""


def new_member_id(random: Random, prefix: str) -> str:
    """``prefix`` is the instance id of a static member, else the client id; see ``PREFIX_BYTES_MAX``."""
    raw = bytearray(random.random_bytes(16))
    raw[6] = (raw[6] & 0x0F) | 0x40  # version 4
    raw[8] = (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
