"""A member of a consumer group: what ``ClassicMember`` and ``ConsumerMember`` have in common.

    async with ClassicMember(client, "billing", ["orders"], on_revoked=commit_them) as member:
        member.assignment                               # what it owns now
        await member.commit({tp: GroupOffset(7)})
                                                        # leaves the group

Promises    Entering starts to join, in the background; the member then stays in the group: it follows the coordinator
            when that moves, takes part in rebalances, and joins again when it was removed. A fatal error is kept in
            ``failure`` and raised by ``commit`` and ``committed``.
Ownership   ``assignment`` is empty as soon as the coordinator may have given the partitions to others (session.py), or
            says that it did. Each partition that is assigned is later either revoked or lost, once:
              on_assigned   the partition is owned
              on_revoked    still owned; the coordinator is told after the callback has returned: time to commit
              on_lost       may be another member's already: too late to commit
            Callbacks may be async. They are called one at a time, and heartbeats continue meanwhile. A callback that
            raises ends the member. Callbacks must not call ``leave`` or ``abandon``, which wait for them.
Commits     The coordinator refuses a commit of an old generation or epoch. A commit is sent once: without an answer its
            outcome is unknown (``ClientError.is_outcome_unknown``).
Not done    Caching the coordinator: each request asks FindCoordinator first.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from headpond.client.client import Client
from headpond.client.coordinators import Coordinated, ask_coordinator
from headpond.client.errors import ClientError, refusal
from headpond.client.group.offsets import Identity, commit_offsets, fetch_offsets
from headpond.client.group.session import Session
from headpond.client.group_admin import GroupOffset
from headpond.client.waiting import TIMER_S_MIN, JitteredBackoff, within
from headpond.model import ErrorCode, TopicPartition, invariant
from headpond.protocol.types import Message

Callback = Callable[[tuple[TopicPartition, ...]], Awaitable[None] | None]
ATTEMPTS_PER_SESSION = 3
"""A heartbeat waits for its answer for at most this part of a session, so that another can be tried."""


@dataclass(frozen=True, slots=True)
class MemberSettings:
    session_timeout_ms: int = 45_000
    """KIP-848: the coordinator's own setting counts there; this one must not be greater."""
    rebalance_timeout_ms: int = 300_000
    """How long a rebalance waits for this member to give up partitions."""
    heartbeat_interval_ms: int = 3_000
    """Classic only; KIP-848: the coordinator says."""
    metadata_max_age_ms: int = 300_000
    """Classic only: how often the leader of the group looks for new partitions."""
    server_assignor: str | None = None
    """KIP-848 only; None: the coordinator's choice."""


DEFAULTS = MemberSettings()


class Member(ABC):
    NO_EPOCH: int

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Iterable[str],
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        instance_id: str | None = None,
        settings: MemberSettings = DEFAULTS,
    ) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.epoch = self.NO_EPOCH
        """The generation of a classic member."""
        self.failure: Exception | None = None
        """Why it has left the group and does not join again."""
        self._client = client
        self._topics = sorted(set(topics))
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost
        self._settings = settings
        # A lane of its own: a JoinGroup waits for the other members, who may be asking over the same client.
        self._group = Coordinated("group", group_id, client.new_lane(f"member-{group_id}"))
        self._session = Session(client.clock, settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self._owned: dict[TopicPartition, bytes] = {}  # with the ids of the topics, where they are known
        self._revoking: tuple[TopicPartition, ...] = ()  # still owned, and in on_revoked
        self._backoff = JitteredBackoff(client.random)
        self._beat_at_s = 0.0  # when the next heartbeat is due
        self._task: asyncio.Task[None] | None = None
        self._callback: asyncio.Task[None] | None = None
        self._called: asyncio.Future[None] | None = None  # the callback that runs

    async def __aenter__(self) -> Self:
        invariant(self._task is None, "a member joins once", self.group_id)
        self._task = self._client.tasks.spawn(self._group.lane, self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """What it owns now, sorted."""
        return tuple(sorted(self._owned)) if self._session.is_alive else ()

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> dict[TopicPartition, ErrorCode]:
        """The outcome of each partition. UNKNOWN_MEMBER_ID without asking when it is not in the group at the moment.
        Raises ``ClientError`` when there is no answer (see Commits), or ``failure``."""
        if self.failure is not None:
            raise self.failure
        if not self._session.is_alive:
            return dict.fromkeys(sorted(offsets), ErrorCode.UNKNOWN_MEMBER_ID)
        who = Identity(self.member_id, self.epoch, self.instance_id)
        return await commit_offsets(self._client, self._group, who, offsets)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, GroupOffset | None]:
        """Where the group stands, None where nothing was committed. Raises ``ClientError``, or ``failure``."""
        wanted = list(partitions)
        while True:
            if self.failure is not None:
                raise self.failure
            if not self._session.is_alive:
                raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"{self._group}: not a member at the moment")
            epoch = self.epoch
            try:
                return await fetch_offsets(self._client, self._group, self._fetch_identity(), wanted)
            except ClientError as error:
                if error.code is not ErrorCode.STALE_MEMBER_EPOCH or self.epoch == epoch:
                    raise  # else a heartbeat's answer has brought the new epoch meanwhile

    async def leave(self) -> None:
        """Give up all partitions, with ``on_revoked``, and tell the coordinator, if it can be reached. Raises what
        the callback raised. Leaving twice does nothing."""
        if not await self._stop():
            return
        try:
            if self._called is not None:
                await self._keep_beating(self._called)
            self._forget_revoked()
            if self._session.is_alive:
                await self._revoke(self.assignment)
            await self._lose()
        finally:
            self._session.end()
            await self._say_goodbye()
            self._client.close_lane(self._group.lane)

    async def abandon(self) -> None:
        """End as if it had crashed: no callback is called, and the coordinator finds out when the session ends."""
        if not await self._stop():
            return
        self._owned.clear()
        self._session.end()
        if self._callback is not None:
            self._callback.cancel()
            await asyncio.wait([self._callback])
        self._client.close_lane(self._group.lane)

    async def _stop(self) -> bool:
        """False: it was stopped before, or never entered."""
        invariant(asyncio.current_task() is not self._callback, "a member's callback must not leave", self.group_id)
        task, self._task = self._task, None
        if task is None:
            return False
        task.cancel()
        await asyncio.wait([task])
        return True

    # ---- for both kinds: what they do

    @abstractmethod
    async def _live(self) -> None:
        """Join, stay, and return when a rebalance or a loss has ended that, owning nothing. Called again unless
        ``failure`` is set."""

    @abstractmethod
    async def _beat(self) -> bool:
        """One heartbeat, and when the next is due. False: something has changed, or there was no answer. Ends the
        session when the coordinator does not know the member any more."""

    @abstractmethod
    def _fetch_identity(self) -> Identity | None: ...

    @abstractmethod
    def _farewell(self) -> Message | None:
        """The request by which it leaves; None: nothing has to be said."""

    # ---- for both kinds: what they use

    async def _run(self) -> None:
        try:
            while self.failure is None:
                await self._live()
        except Exception as error:  # of a callback, or a fault of ours: reported by the owner of tasks
            self.failure = error
            self._owned.clear()
            self._session.end()
            raise

    async def _ask(self, request: Message, timeout_s: float) -> Any:
        """The coordinator's answer, or None: there is none for now, or (``failure``) for good."""
        try:
            return await ask_coordinator(self._client, self._group, request, _code_of, timeout_s, may_repeat=False)
        except ClientError as error:
            if not error.is_retriable:
                self._fail(error)
            return None

    async def _ask_heartbeat(self, request: Message) -> Any:
        left_s = self._session.left_s if self._session.is_alive else self._patience_s
        response = await self._ask(request, min(left_s, self._patience_s))
        if response is None:
            self._beat_after(self._backoff.next_s())
        else:
            self._backoff.reset()
        return response

    @property
    def _patience_s(self) -> float:
        return self._settings.session_timeout_ms / 1_000 / ATTEMPTS_PER_SESSION

    def _beat_after(self, seconds: float) -> None:
        self._beat_at_s = self._client.clock.monotonic() + seconds

    def _refused(self, code: int, message: str | None = None) -> None:
        self._fail(refusal(code, str(self._group), message))

    def _fail(self, error: ClientError) -> None:
        """A fatal error: nothing is owned from now on; ``_live`` calls ``on_lost``."""
        self.failure = error
        self._session.end()

    async def _rest(self) -> None:
        """Until the next heartbeat, or the end of the session."""
        await self._client.clock.sleep(self._due_s)

    @property
    def _due_s(self) -> float:
        due_s = self._beat_at_s - self._client.clock.monotonic()
        return max(TIMER_S_MIN, min(due_s, self._session.left_s) if self._session.is_alive else due_s)

    async def _own(self, added: Mapping[TopicPartition, bytes]) -> None:
        self._owned.update(added)
        await self._call(self._on_assigned, tuple(sorted(added)))

    async def _revoke(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._revoking = partitions
        await self._call(self._on_revoked, partitions)
        self._forget_revoked()

    def _forget_revoked(self) -> None:
        """The callback has returned; also when ``_revoke`` was cancelled meanwhile."""
        for tp in self._revoking:
            self._owned.pop(tp, None)
        self._revoking = ()

    async def _lose(self) -> None:
        """All that it owned may be other members' now."""
        self._session.end()
        lost = tuple(sorted(self._owned))
        self._owned.clear()
        await self._call(self._on_lost, lost)

    async def _call(self, callback: Callback | None, partitions: tuple[TopicPartition, ...]) -> None:
        if callback is None or not partitions:
            return
        result = callback(partitions)
        if result is None:
            return
        self._called = asyncio.get_running_loop().create_future()
        self._callback = self._client.tasks.spawn(f"{self._group.lane}-callback", self._work(result, self._called))
        await self._keep_beating(self._called)

    async def _work(self, result: Awaitable[None], called: asyncio.Future[None]) -> None:
        try:
            await result
        except Exception as error:
            called.set_exception(error)
            called.exception()  # whoever waits raises it
        finally:
            self._called = self._callback = None
            if not called.done():
                called.set_result(None)

    async def _keep_beating(self, called: asyncio.Future[None]) -> None:
        """Until the callback has returned; raises what it raised."""
        while self._session.is_alive and not called.done():
            try:
                await within(self._client.clock, self._due_s, called)
            except TimeoutError:
                if not called.done() and self._session.is_alive:
                    await self._beat()
        await asyncio.wait([called])
        called.result()

    async def _say_goodbye(self) -> None:
        if (request := self._farewell()) is None:
            return
        timeout_s = min(self._client.timeout_s, self._settings.session_timeout_ms / 1_000)
        try:
            await ask_coordinator(self._client, self._group, request, _code_of, timeout_s, may_repeat=True)
        except ClientError:
            pass  # the coordinator finds out when the session ends


def _code_of(response: Any) -> list[int]:
    return [response.error_code]
