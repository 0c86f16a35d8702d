"""The client: any request to any broker of a cluster, and what is known of the cluster.

    async with Client([("127.0.0.1", 9092)], network=..., clock=..., tasks=..., random=...) as client:
        view = await client.metadata(["orders"])
        response = await client.request(DescribeClusterRequest())              # any broker
        response = await client.request(FetchRequest(...), node_id=3)          # that one

Promises    Connects when it is first asked, once per broker and lane, and again after a loss. Where no broker can be
            reached, ``BrokerUnreachable`` comes as soon as each was tried once, and within the time-out. A request is
            sent at most once, unless it is certain that it never left: what may be repeated is for callers to know
            (``Admin``, ``Producer`` and ``Reader`` do).
Security    Where TLS or SASL does not come about, ``SecurityFailed`` comes at once, and no other broker is tried.
Lanes       A broker answers a connection's requests in order, so a long poll holds up what comes behind it. Requests
            that may wait long go in a lane of their own: a second connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from headpond.client.connection import FRAME_BYTES_MAX, Address, Connection, NotSent, World, open_connection
from headpond.client.errors import BrokerUnreachable, ClientClosed, ClientError, SecurityFailed, raise_for
from headpond.client.metadata import BrokerView, Cluster, ClusterView
from headpond.client.security import PLAINTEXT, Security
from headpond.client.waiting import JitteredBackoff, within
from headpond.model import ErrorCode
from headpond.ports import Clock, Network, Random, Tasks
from headpond.protocol.frame_memory import FrameMemory, ReceiveBuffer
from headpond.protocol.schema.metadata import MetadataRequest, MetadataResponse
from headpond.protocol.types import Message

MAIN_LANE = "main"
CONNECT_TIMEOUT_S_MAX = 10.0
"""One broker that swallows our packets must not use up the time in which another would have answered."""
ATTEMPT_TIMEOUT_S_MAX = 10.0
"""One attempt at what may be repeated: a lost answer must not use up the time in which another would come."""
RECEIVE_BUFFER_BYTES = 262_144
RECEIVE_POOL_BYTES = 1 << 62
"""Answers in progress are bounded by what we asked for and by the frame limit, not by a budget of their own."""


class Client:
    def __init__(
        self,
        bootstrap: Iterable[tuple[str, int]],
        *,
        network: Network,
        clock: Clock,
        tasks: Tasks,
        random: Random,
        client_id: str = "headpond",
        timeout_s: float = 30.0,
        security: Security = PLAINTEXT,
    ) -> None:
        self.bootstrap = [Address(*address) for address in bootstrap]
        if not self.bootstrap:
            raise ValueError("a client needs the address of at least one broker")
        self.timeout_s = timeout_s
        self.clock = clock
        self.tasks = tasks
        self.random = random
        self.cluster = Cluster()
        memory = FrameMemory(
            RECEIVE_POOL_BYTES,
            FRAME_BYTES_MAX,
            now_s=clock.monotonic,
            allocate=network.buffer,
            shared=ReceiveBuffer(RECEIVE_BUFFER_BYTES),
        )
        self._world = World(network, clock, tasks, random, client_id, memory, security)
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._opening: dict[tuple[Address, str], _Opening] = {}
        self._lanes = 0
        self._is_closed = False

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection; requests in flight get ``ConnectionLost``."""
        self._is_closed = True
        for opening in list(self._opening.values()):
            opening.task.cancel()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    # ---- requests

    async def request(
        self,
        message: Message,
        node_id: int | None = None,
        timeout_s: float | None = None,
        *,
        version_max: int | None = None,
        lane: str = MAIN_LANE,
        is_answered: bool = True,
    ) -> Any:
        """The response to ``message`` in the newest version that both sides speak (at most ``version_max``), from that
        node, or from any. Error codes inside the response are the caller's to read.

        Raises ``BrokerUnreachable`` (not sent), ``RequestTimedOut`` or ``ConnectionLost`` (outcome unknown), or
        ``UNSUPPORTED_VERSION``.
        """
        until_s = self.clock.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        for is_last in (False, True):
            connection = await self.connection(node_id, timeout_s=until_s - self.clock.monotonic(), lane=lane)
            left_s = until_s - self.clock.monotonic()
            try:
                return await connection.send(
                    message, timeout_s=left_s, version_max=version_max, is_answered=is_answered
                )
            except NotSent:  # the connection ended under our hands, the request never left: once more is safe
                if is_last:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def metadata(
        self, topics: Sequence[str] | None = None, timeout_s: float | None = None, *, auto_create: bool = False
    ) -> ClusterView:
        """Ask a broker about these topics, or about all (None). A topic that does not exist is in the view, with its
        error."""
        wanted = None
        if topics is not None:
            wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in dict.fromkeys(topics)]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)
        response: MetadataResponse = await self.ask(request, timeout_s)
        raise_for(response.error_code, "the cluster's metadata")
        return self.cluster.learn(response, is_whole=topics is None)

    async def ask(self, message: Message, timeout_s: float | None = None, *, node_id: int | None = None) -> Any:
        """``request`` for what changes nothing: repeated when no answer comes, until time is up."""
        until_s = self.clock.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        backoff = JitteredBackoff(self.random)
        while True:
            try:
                left_s = until_s - self.clock.monotonic()
                return await self.request(message, node_id, min(left_s, ATTEMPT_TIMEOUT_S_MAX))
            except ClientError as error:
                if error.code not in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
                    raise
                pause_s = backoff.next_s()
                if self.clock.monotonic() + pause_s >= until_s:
                    raise
                await self.clock.sleep(pause_s)

    async def controller_id(self) -> int | None:
        """The node that changes of the cluster go to; None: any will do."""
        if self.cluster.controller_id < 0:
            await self.metadata([])
        known = self.cluster.controller_id
        return known if known in self.cluster.brokers else None

    # ---- connections

    def new_lane(self, name: str) -> str:
        self._lanes += 1
        return f"{name}-{self._lanes}"

    def close_lane(self, lane: str) -> None:
        """End the connections of a lane that is not needed any more."""
        for key in [key for key in self._connections if key[1] == lane]:
            self._connections.pop(key).close()
        for key in [key for key in self._opening if key[1] == lane]:
            self._opening[key].task.cancel()

    async def connection(
        self, node_id: int | None = None, *, timeout_s: float | None = None, lane: str = MAIN_LANE
    ) -> Connection:
        """An open connection to that node, or to any."""
        until_s = self.clock.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        if node_id is not None:
            return await self._connect(await self._address(node_id, until_s), lane, until_s)
        failures: list[ClientError] = []
        for address in self._candidates(lane):
            try:
                return await self._connect(address, lane, until_s)
            except SecurityFailed:
                raise  # the others would refuse us, too, and might count how often we tried
            except ClientError as error:
                failures.append(error)
        raise failures[0] if len(failures) == 1 else BrokerUnreachable("; ".join(str(one) for one in failures))

    async def _address(self, node_id: int, until_s: float) -> Address:
        broker = self.cluster.brokers.get(node_id)
        if broker is None:
            await self.metadata([], until_s - self.clock.monotonic())
            broker = self.cluster.brokers.get(node_id)
        if broker is None:
            raise BrokerUnreachable(f"the cluster has no broker with id {node_id}")
        return Address(broker.host, broker.port)

    def _candidates(self, lane: str) -> list[Address]:
        """Who can be asked: whom we are connected with, else the brokers that we know of, in any order, and where we
        came from, in the order given."""
        for (address, its_lane), connection in self._connections.items():
            if its_lane == lane and connection.is_open:
                return [address]
        known = [Address(broker.host, broker.port) for broker in self._shuffled_brokers()]
        return list(dict.fromkeys([*known, *self.bootstrap]))

    def _shuffled_brokers(self) -> list[BrokerView]:
        brokers = [self.cluster.brokers[node_id] for node_id in sorted(self.cluster.brokers)]
        return [brokers.pop(self.random.random_int(len(brokers))) for _ in range(len(brokers))]

    async def _connect(self, address: Address, lane: str, until_s: float) -> Connection:
        """The open connection of that lane; opened by the first who needs it, for all who need it meanwhile."""
        if self._is_closed:
            raise ClientClosed
        key = (address, lane)
        connection = self._connections.get(key)
        if connection is not None and connection.is_open:
            return connection
        left_s = min(CONNECT_TIMEOUT_S_MAX, until_s - self.clock.monotonic())
        if left_s <= 0:
            raise BrokerUnreachable(f"could not reach a broker at {address} in time")
        opening = self._opening.get(key)
        if opening is None:
            done: asyncio.Future[Connection | ClientError] = asyncio.get_running_loop().create_future()
            task = self.tasks.spawn(f"client-open-{address}", self._open(key, left_s, done))
            opening = self._opening[key] = _Opening(task, done)
        try:
            outcome = await within(self.clock, left_s, opening.done)
        except TimeoutError:
            raise BrokerUnreachable(f"could not reach a broker at {address} in time") from None
        if isinstance(outcome, SecurityFailed):
            raise SecurityFailed(outcome.message, outcome.code)
        if isinstance(outcome, ClientError):
            raise BrokerUnreachable(str(outcome))
        return outcome

    async def _open(
        self, key: tuple[Address, str], timeout_s: float, done: asyncio.Future[Connection | ClientError]
    ) -> None:
        outcome: Connection | ClientError = BrokerUnreachable(f"could not reach a broker at {key[0]}: given up")
        try:
            outcome = await open_connection(key[0], self._world, timeout_s=timeout_s)
            self._connections[key] = outcome
        except ClientError as error:
            outcome = error
        finally:
            self._opening.pop(key, None)
            done.set_result(outcome)


class _Opening(NamedTuple):
    task: asyncio.Task[None]
    done: asyncio.Future[Connection | ClientError]
