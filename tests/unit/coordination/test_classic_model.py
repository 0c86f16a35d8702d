"""Members that join, sync, heartbeat, leave, crash, come back and wait, in any order; beside them a simple model.

What must hold after every step: a generation is accepted from the members of one rebalance only; all members of a
stable group have its generation and its leader; every request is answered once at most, and none waits longer than a
rebalance may take, whatever the others do meanwhile. And in the end, when time passes and nobody says anything more:
every request has been answered, and the group is empty.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from headpond.config.groups import GroupSettings
from headpond.coordination.groups.classic.member import Member
from headpond.model import ErrorCode
from unit.coordination.classic_world import DELAY_MS, GROUP, Joined, Synced, Waiting, World

SESSION_MS = 6_000
REBALANCE_MS = 9_000
INSTANCES = ("one", "two")
WAIT_MS_MAX = DELAY_MS + REBALANCE_MS
"""A join or sync phase ends with the rebalance time-out; the last piece of an initial delay may reach beyond it."""
LONG_MS = 400_000
"""Longer than every time-out, the five minutes of a first join included."""


class Client:
    """What one member knows of itself."""

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = -1
        self.leader = ""
        self.others: list[str] = []
        self.has_assignment = False
        self.joining: Joined | None = None
        self.syncing: Synced | None = None

    def listen(self) -> None:
        """Take the answers that have come."""
        if self.joining is not None and not self.joining.is_parked:
            answer, self.joining = self.joining.answer, None
            if answer.error_code == 0:
                self.member_id, self.generation, self.leader = answer.member_id, answer.generation_id, answer.leader
                self.others = [member.member_id for member in answer.members]
                self.has_assignment = answer.skip_assignment
            elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.generation = -1
        if self.syncing is not None and not self.syncing.is_parked:
            answer, self.syncing = self.syncing.answer, None
            self.has_assignment = answer.error_code == 0
            if answer.error_code == 0:
                generation, owner = answer.assignment.decode().split(":")
                assert int(generation) == self.generation
                # What an instance was assigned it keeps under its next id.
                assert owner == self.member_id or owner.split("-")[0] == self.instance_id


class Members(RuleBasedStateMachine):
    clients = Bundle("clients")

    @initialize(delay_ms=st.sampled_from([0, DELAY_MS]), size=st.sampled_from([3, 100]))
    def begin(self, delay_ms: int, size: int) -> None:
        self.world = World(GroupSettings(initial_rebalance_delay_ms=delay_ms, members_max=size))
        self.alive: list[Client] = []
        self.requests: list[Waiting] = []
        self.waits_since_s: dict[Waiting, float] = {}
        """Without the time in which nothing could be committed."""
        self.generations: dict[int, str] = {}
        """Generation -> its leader, as members heard it."""

    # --- members

    @rule(target=clients, version=st.sampled_from([3, 9]))
    def somebody_comes(self, version: int) -> Any:
        asked = self.remember(self.world.join(version=version, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS))
        client = Client("", None)
        if asked.is_parked:
            client.joining = asked
        elif asked.error == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = asked.answer.member_id
            self.join(client)
        else:
            if asked.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
                # Of those whom a new coordinator read from the log, it knows the elected protocol only.
                assert "range" not in self.world.group().elected_from()
            else:
                assert asked.error in (ErrorCode.GROUP_MAX_SIZE_REACHED, self.world.append_error)
            return multiple()
        self.alive.append(client)
        return client

    @rule(version=st.sampled_from([4, 9]))
    def somebody_asks_for_an_id_and_is_never_seen_again(self, version: int) -> None:
        self.remember(self.world.join(version=version, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS))

    @rule(target=clients, instance_id=st.sampled_from(INSTANCES), version=st.sampled_from([5, 9]))
    def an_instance_starts(self, instance_id: str, version: int) -> Client:
        client = Client("", instance_id)
        self.join(client, version=version)
        self.alive.append(client)
        return client

    @rule(client=clients, protocols=st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range")]))
    def joins_again(self, client: Client, protocols: tuple[str, ...]) -> None:
        if client in self.alive and client.joining is None:
            self.join(client, protocols=protocols)

    @rule(client=clients)
    def syncs(self, client: Client) -> None:
        if client not in self.alive or client.generation < 0 or client.syncing is not None:
            return
        leads = client.leader == client.member_id and client.others
        assignments = {other: f"{client.generation}:{other}".encode() for other in client.others} if leads else None
        client.syncing = self.remember(
            self.world.sync(
                client.member_id,
                client.generation,
                assignments,
                instance_id=client.instance_id,
                protocol_name=None,
                protocol_type=None,
                version=4,
            )
        )

    @rule(client=clients)
    def heartbeats(self, client: Client) -> None:
        if client not in self.alive or client.generation < 0:
            return
        error = self.world.heartbeat(client.member_id, client.generation, client.instance_id)
        is_member = client.member_id in self.members()
        if not is_member:
            assert error == ErrorCode.UNKNOWN_MEMBER_ID or (
                error == ErrorCode.FENCED_INSTANCE_ID and client.instance_id is not None
            )
            return
        group = self.world.group()
        if client.generation != group.generation:
            assert error == ErrorCode.ILLEGAL_GENERATION
        elif group.state == "PreparingRebalance":
            assert error == ErrorCode.REBALANCE_IN_PROGRESS
        else:
            assert error == ErrorCode.NONE and group.state in ("CompletingRebalance", "Stable")

    @rule(client=consumes(clients))
    def leaves(self, client: Client) -> None:
        if client in self.alive:
            self.alive.remove(client)
            error = self.world.leave((client.member_id, client.instance_id)).members[0].error_code
            assert client.member_id not in self.members() or error != 0

    @rule(client=consumes(clients))
    def crashes(self, client: Client) -> None:
        if client in self.alive:
            self.alive.remove(client)

    @rule()
    def more_and_more_come_while_the_others_stay_and_do_not_join_again(self) -> None:
        for _ in range(2 * WAIT_MS_MAX // SESSION_MS + 1):
            self.remember(self.world.join(version=3, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS))
            for client in self.alive:
                client.listen()
                self.heartbeats(client)
            self.world.advance_ms(SESSION_MS // 2)
            self.nobody_waits_longer_than_a_rebalance_takes()

    # --- the coordinator

    @rule(milliseconds=st.sampled_from([1, 500, DELAY_MS, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.advance_ms(milliseconds)

    @rule()
    def commits_take_time(self) -> None:
        self.world.holds_commits = True

    @rule()
    def commits_come(self) -> None:
        if self.world.holds_commits:
            self.waits_since_s = dict.fromkeys(self.requests, self.world.clock.monotonic())
        self.world.holds_commits = False
        self.world.commit()

    @rule(lasts=st.booleans())
    def the_log_cannot_be_written(self, lasts: bool) -> None:
        self.world.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE if lasts else None

    @rule()
    def the_coordinator_moves(self) -> None:
        self.world.restart()
        assert all(not request.is_parked for request in self.requests)
        self.generations.clear()  # one that was never written may be given again
        for client in self.alive:
            client.listen()
            client.generation, client.has_assignment = -1, False

    # --- helpers

    def members(self) -> dict[str, Member]:
        return self.world.group().members if GROUP in self.world.groups else {}

    def remember(self, request: Any) -> Any:
        self.requests.append(request)
        self.waits_since_s[request] = self.world.clock.monotonic()
        return request

    def join(self, client: Client, **how: Any) -> None:
        client.has_assignment = False
        if not client.member_id and client.instance_id is None:
            return  # its first join was never answered: it has no name
        client.joining = self.remember(
            self.world.join(
                client.member_id,
                instance_id=client.instance_id,
                session_ms=SESSION_MS,
                rebalance_ms=REBALANCE_MS,
                **how,
            )
        )

    # --- what must hold

    @invariant()
    def every_request_is_answered_once_at_most(self) -> None:
        for request in getattr(self, "requests", ()):
            assert len(request.answers) <= 1

    @invariant()
    def nobody_waits_longer_than_a_rebalance_takes(self) -> None:
        if not hasattr(self, "world") or self.world.holds_commits:
            return
        now_s = self.world.clock.monotonic()
        for request in self.requests:
            waited_ms = (now_s - self.waits_since_s[request]) * 1000
            assert not request.is_parked or waited_ms <= WAIT_MS_MAX, f"{request} has waited for {waited_ms:.0f} ms"

    @invariant()
    def a_generation_has_one_leader(self) -> None:
        for client in getattr(self, "alive", ()):
            client.listen()
            if client.generation > 0 and client.leader in self.members():
                leader = self.generations.setdefault(client.generation, client.leader)
                # An instance that came back leads under another id.
                assert leader == client.leader or leader.split("-")[0] in INSTANCES

    @invariant()
    def the_group_is_whole(self) -> None:
        group = getattr(self, "world", None) and self.world.groups.get(GROUP)
        if group is None:
            return
        group = self.world.group()
        assert (group.state == "Empty") <= (not group.members)
        assert (group.leader_id in group.members) if group.members else group.leader_id is None
        assert group.parked_joins == sum(member.join_reply is not None for member in group.members.values())
        assert {member.group_instance_id: id_ for id_, member in group.members.items() if member.is_static} == (
            group.static_ids
        )
        assert not set(group.pending) & set(group.members)
        if group.state in ("CompletingRebalance", "Stable"):
            assert group.protocol_name in group.elected_from()
        if group.state == "Stable":
            for client in self.alive:
                is_here = client.member_id in group.members and client.joining is None and client.generation > 0
                if is_here and client.instance_id is None:  # a static member may have slept through a rebalance
                    assert client.generation == group.generation
                    assert client.leader == group.leader_id or client.leader not in group.members
            assert all(member.sync_reply is None for member in group.members.values())
        if group.state == "PreparingRebalance":
            assert group.join_alarm.is_set

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        world.append_error, world.holds_commits = None, False
        world.commit()
        for _ in range(4):
            world.advance_ms(LONG_MS)
        assert all(len(request.answers) == 1 for request in self.requests), "somebody waits for ever"
        if GROUP in world.groups:
            assert world.group().state == "Empty" and not world.group().members and not world.group().pending
            before = (world.group().generation, world.group().state)
            world.restart()
            if GROUP in world.groups:
                assert (world.group().generation, world.group().state) <= before
        world.classic.close()
        assert world.clock.next_timer_s() is None


Members.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
test_members_of_a_classic_group = Members.TestCase
