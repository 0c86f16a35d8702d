"""A session that reads what has changed answers as one that reads all its partitions each time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headpond.model import TopicPartition
from unit.broker.fetch_twins import TOPICS, Twins, run

PARTITIONS = 2
PLACES = [TopicPartition(topic, n) for topic in TOPICS for n in range(PARTITIONS)]
READ_ON, FROM_THE_START, TOO_FAR = "read on", "from the start", "too far"
WAIT_MS = 500
AT_ONCE: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0}

place = st.sampled_from([PLACES[0]] * 5 + PLACES[1:])  # most of it happens at one of them
topic = st.sampled_from(sorted(TOPICS))
producer = st.sampled_from([1, 1, 1, 2])
named = st.just({}) | st.dictionaries(
    place,
    st.tuples(st.sampled_from([READ_ON, READ_ON, READ_ON, FROM_THE_START, TOO_FAR]), st.sampled_from([1, 200, 5_000])),
    max_size=len(PLACES),
)
fetch = st.tuples(
    st.just("fetch"),
    named,
    st.fixed_dictionaries(
        {
            "max_wait_ms": st.sampled_from([0, WAIT_MS, WAIT_MS]),
            "min_bytes": st.sampled_from([0, 1, 1, 1, 300]),
            "max_bytes": st.sampled_from([100, 400, 1 << 20]),
            "isolation_level": st.sampled_from([0, 0, 1, 1, 1]),
        }
    ),
    st.lists(place, max_size=2),
    st.sampled_from([False, True, True]),  # naming those that it has read on in
    st.booleans(),  # with the leader epoch that it knows
)
step = st.one_of(
    fetch,
    fetch,
    st.tuples(st.just("append"), place, st.sampled_from([1, 50, 400]), st.booleans()),
    st.tuples(st.just("append"), place, st.sampled_from([1, 50, 400]), st.booleans()),
    st.tuples(st.just("transactional"), place, producer, st.booleans()),
    st.tuples(st.just("end"), place, producer, st.booleans(), st.booleans()),
    st.tuples(st.just("flush"), place),
    st.tuples(st.just("catch up"), st.sampled_from([0, 1])),
    st.tuples(st.just("catch up"), st.sampled_from([0, 1])),
    st.tuples(st.just("delete records"), place),
    st.tuples(st.just("lead"), place, st.sampled_from([1, 1, 2])),
    st.tuples(st.just("delete"), topic),
    st.tuples(st.just("create"), topic),
    st.tuples(st.just("rules"), topic),
    st.tuples(st.just("time"), st.sampled_from([0.01, 0.3, 1.0])),
    st.tuples(st.just("reconnect")),
    st.tuples(st.just("new session")),
    st.tuples(st.just("another reader")),
)


async def take(world: Twins, what: str, *arguments: Any) -> None:
    if what in ("rules", "lead", "delete records") and world.counts_bytes:
        await rest(world)  # this wakes nobody, and when a fetch that counts bytes looks, is its own business
    await do(world, what, *arguments)
    if what in ("append", "transactional", "end") and arguments[-1]:
        await look(world)
        await world.flush(arguments[0])


async def do(world: Twins, what: str, *arguments: Any) -> None:
    if what == "fetch":
        await ask(world, *arguments)
    elif what == "catch up":
        for _ in range(4):
            await ask(world, {}, {**AT_ONCE, "isolation_level": arguments[0]}, [], True, False)
            await rest(world)
    elif what == "append":
        await world.append(arguments[0], bytes_each=arguments[1])
    elif what == "transactional":
        await world.append(arguments[0], producer=arguments[1])
    elif what == "end":
        await world.end(arguments[0], arguments[1], is_abort=arguments[2])
    elif what == "flush":
        await world.flush(arguments[0])
    elif what == "delete records":
        await world.delete_records(arguments[0])
    elif what == "lead":
        world.lead(*arguments)
    elif what == "delete":
        world.delete(arguments[0])
    elif what == "create":
        world.create(arguments[0])
    elif what == "rules":
        world.rules.turn(arguments[0])
    elif what == "time":
        world.clock.advance(arguments[0])
    elif what == "reconnect":
        world.reconnect()
    elif what == "another reader":
        for twin in world.twins:
            twin.connection.peer_host += "x"
    elif what == "new session":
        await rest(world)
        world.session_id = world.session_epoch = 0


async def ask(
    world: Twins,
    wanted: dict[TopicPartition, tuple[str, int]],
    fields: dict[str, Any],
    forgotten: list[TopicPartition],
    reads_on: bool,
    with_epochs: bool,
) -> None:
    await rest(world)
    if reads_on and world.session_id:
        moved = [tp for tp in PLACES if world.offsets[tp] != world.asked.get(tp) and tp not in forgotten]
        wanted = {**dict.fromkeys(moved, (READ_ON, 5_000)), **wanted}
    offsets = {
        tp: {READ_ON: world.offsets[tp], FROM_THE_START: 0, TOO_FAR: 99}[where] for tp, (where, _) in wanted.items()
    }
    if not world.session_id:
        wanted = wanted or dict.fromkeys(PLACES, (READ_ON, 5000))
        offsets = {tp: offsets.get(tp, world.offsets[tp]) for tp in wanted}
    world.asked |= offsets
    world.counts_bytes = fields["min_bytes"] > 1
    world.fetch(
        {tp: (offsets[tp], size, world._epochs[tp] if with_epochs else -1) for tp, (_, size) in wanted.items()},
        forgotten=[tp for tp in forgotten if tp not in wanted] if world.session_id else (),
        **fields,
    )


async def rest(world: Twins) -> None:
    """Until the fetch that waits is answered."""
    await look(world)
    while world.waits:
        world.clock.advance(1.0)
        await look(world)


async def look(world: Twins) -> None:
    for answer in await world.compare():
        for each in answer.responses:
            for row in each.partitions:
                name = each.topic or next(name for name, id in TOPICS.items() if id == each.topic_id)
                if row.records:
                    offset = int.from_bytes(bytes(row.records[:8]), "big")
                    world.offsets[TopicPartition(name, row.partition_index)] = offset + 1


async def play(world: Twins, steps: list[Any]) -> None:
    await ask(world, dict.fromkeys(PLACES, (READ_ON, 5000)), AT_ONCE, [], False, False)
    await look(world)
    for each in steps:
        what, *arguments = each if isinstance(each, tuple) else (each,)
        await take(world, what, *arguments)
        await look(world)
    await rest(world)
    for _ in range(3):
        await ask(world, {}, AT_ONCE, [], False, False)
        await rest(world)
        await look(world)
    for twin in world.twins:
        for session_id in list(twin.sessions._sessions):
            twin.sessions.drop(session_id)
    assert not any(replica.watchers or replica.fetch_waiters for replica in world.replicas), "nobody is left behind"


@pytest.mark.parametrize("version", [11, 17])
@pytest.mark.parametrize("follows_flush", [True, False], ids=["flush=ack", "flush=os"])
def test_answers_are_those_of_a_full_walk_whatever_happens(version: int, follows_flush: bool) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(step, min_size=8, max_size=40))
    def model(steps: list[Any]) -> None:
        run(lambda world: play(world, steps), version=version, follows_flush=follows_flush, partitions=PARTITIONS)

    model()
