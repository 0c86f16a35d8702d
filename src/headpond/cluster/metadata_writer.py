"""Changes the cluster's metadata on behalf of requests.

Every change goes the same way: plan from the image (pure) -> one store transaction whose compares say what the plan
relied on -> on a conflict wait until the image has what was in the way and plan again -> wait until the image has the
change -> answer. So an answered change is in the store durably, and in every later answer of this broker.

What does not fit into one transaction (more than about 120 partitions):

* creation    topic-id key and partition keys first, the topic key last: it is the commit point. Every part compares the
              topic-id key, so a sweep that takes the half-made topic for rubbish fences its maker.
* enlargement partition keys first, the topic key with the new count last; every part compares the topic key.
* deletion    topic key first, in one transaction with as many partition keys as fit; the rest is swept.

A crash between the parts leaves partition keys without a topic; the next start removes them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeVar

from headpond.cluster import keys, writes
from headpond.cluster.features import FeatureChange, changed
from headpond.cluster.follower import ImageFollower
from headpond.cluster.ids import new_topic_id
from headpond.cluster.image import MetadataImage, TopicImage
from headpond.cluster.producer_ids import ProducerIds
from headpond.cluster.rows import FeatureRow, encode
from headpond.cluster.store_transaction import Outcome, chunks_of, transact_surely
from headpond.cluster.topics import (
    MorePartitions,
    NewTopic,
    PlannedPartitions,
    PlannedTopic,
    ValidateTopicConfigs,
    check_adoption,
    existing_topic,
    plan_partitions,
    plan_topic,
)
from headpond.config.broker import TopicDefaults
from headpond.model import BrokerError, ErrorCode, TopicId, invariant
from headpond.ports import STORE_OPERATIONS_MAX, Clock, Committed, Compare, Delete, MetadataStore, Put, Random, Tasks

log = logging.getLogger(__name__)

P = TypeVar("P")
ConfigKind = Literal["topic", "broker", "group", "client-metrics"]

PLANS_MAX = 32
"""How often a change is planned anew before we say that the time is up: each time somebody else was faster."""
TIMEOUT_MS = 30_000
"""For changes that no request gives a time to: Kafka's ``request.timeout.ms``."""
CATCH_UP_S = 1.0
"""How long a change that was made may take to reach the image after its time is up."""
AUTO_CREATIONS_MAX = 1_000
"""Automatic creations under way at once; who asks for more asks again."""
CONFIG_BYTES_MAX = 524_288
"""Half of what one store transaction may hold; a resource's overrides live in one value."""


class MetadataWriter:
    def __init__(
        self,
        *,
        broker_id: int,
        store: MetadataStore,
        follower: ImageFollower,
        clock: Clock,
        random: Random,
        tasks: Tasks,
        defaults: TopicDefaults,
        validate_topic_configs: ValidateTopicConfigs,
    ) -> None:
        self.broker_id = broker_id
        self.store = store
        self.follower = follower
        self.clock = clock
        self.random = random
        self.producer_ids = ProducerIds(store, clock)
        self._tasks = tasks
        self._defaults = defaults
        self._validate_topic_configs = validate_topic_configs
        self._being_auto_created: set[str] = set()

    @property
    def image(self) -> MetadataImage:
        return self.follower.image

    # --- topics

    async def create_topic(
        self, topic: NewTopic, *, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS
    ) -> PlannedTopic:
        """Create one topic, or with ``validate_only`` say what would be created. Raises ``BrokerError``."""
        topic_id = new_topic_id(self.random)

        def plan() -> PlannedTopic:
            planned = plan_topic(
                self.image,
                topic,
                topic_id,
                defaults=self._defaults,
                validate_configs=self._validate_topic_configs,
                random=self.random,
            )
            _check_config_size(planned.configs)
            return planned

        if validate_only:
            return plan()
        planned = await self._carry_out(plan, self._commit_topic, self._deadline(timeout_ms))
        log.info("created topic %s with %d partition(s)", topic.name, len(planned.partitions))
        return planned

    async def adopt_topic(self, topic: PlannedTopic, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """Create a topic whose id and partition states are given: its logs are there already. Raises ``BrokerError``
        when its name or its id is taken."""

        def plan() -> PlannedTopic:
            check_adoption(self.image, topic, self._validate_topic_configs)
            return topic

        await self._carry_out(plan, self._commit_topic, self._deadline(timeout_ms))
        log.info("adopted topic %s with %d partition(s)", topic.name, len(topic.partitions))

    async def delete_topic(self, topic_id: TopicId, *, timeout_ms: int = TIMEOUT_MS) -> None:
        """UNKNOWN_TOPIC_ID when there is no such topic (any more)."""

        def plan() -> TopicImage:
            name = self.image.topic_names.get(topic_id)
            if name is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
            return self.image.topics[name]

        topic = await self._carry_out(plan, self._commit_deletion, self._deadline(timeout_ms))
        log.info("deleted topic %s", topic.name)

    async def create_partitions(
        self, wanted: MorePartitions, *, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        def plan() -> PlannedPartitions:
            return plan_partitions(self.image, wanted, random=self.random)

        if validate_only:
            plan()
            return
        await self._carry_out(plan, self._commit_partitions, self._deadline(timeout_ms))
        log.info("enlarged topic %s to %d partitions", wanted.name, wanted.total)

    def create_in_background(self, topic: NewTopic) -> None:
        """Start to create ``topic``, unless that is under way: automatic creation, on behalf of nobody who waits."""
        if topic.name not in self._being_auto_created and len(self._being_auto_created) < AUTO_CREATIONS_MAX:
            self._being_auto_created.add(topic.name)
            self._tasks.spawn(f"create topic {topic.name}", self._auto_create(topic))

    async def _auto_create(self, topic: NewTopic) -> None:
        try:
            await self.create_topic(topic)
        except BrokerError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                log.warning("automatic creation of topic %s failed: %s", topic.name, error)
        finally:
            self._being_auto_created.discard(topic.name)

    # --- settings

    async def alter_configs(
        self,
        kind: ConfigKind,
        name: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """Replace the overrides by ``change(overrides)``. When somebody else changes them meanwhile, ``change`` is
        asked again with what they are then, so no alteration gets lost. What ``change`` raises comes out."""
        key = keys.config(kind, name)

        def plan() -> tuple[list[Compare], list[Put | Delete]]:
            compares = [Compare(key, self.image.key_revision(key))]
            if kind == "topic":
                topic = existing_topic(self.image, name)
                compares.append(Compare(keys.topic(name), topic.revision))
            before = self.image.configs(kind, name)
            after = dict(sorted(change(before).items()))
            _check_config_size(after)
            if after == before:
                return [], []
            return compares, [Put(key, encode(after)) if after else Delete(key)]

        await self._carry_out(plan, self._commit_plainly, self._deadline(timeout_ms))

    # --- features

    async def update_features(
        self, changes: Sequence[FeatureChange], *, validate_only: bool = False, timeout_ms: int = TIMEOUT_MS
    ) -> None:
        """Finalize other levels, all of them or none. Raises ``BrokerError``. Level 0 stays in the store: it says that
        somebody turned the feature off, and the next start leaves it so."""

        def plan() -> tuple[list[Compare], list[Put | Delete]]:
            levels = {
                keys.feature(name): level
                for name, level in changed(self.image.features, changes, self.broker_id).items()
            }
            compares = [Compare(key, self.image.key_revision(key)) for key in levels]
            return compares, [Put(key, encode(FeatureRow(level))) for key, level in levels.items()]

        if validate_only:
            plan()
        else:
            await self._carry_out(plan, self._commit_plainly, self._deadline(timeout_ms))

    # --- carrying out

    def _deadline(self, timeout_ms: int) -> float:
        return self.clock.monotonic() + timeout_ms / 1000

    def _left_s(self, deadline: float) -> float:
        return max(0.0, deadline - self.clock.monotonic())

    async def _carry_out(
        self, plan: Callable[[], P], commit: Callable[[P, float], Awaitable[Outcome]], deadline: float
    ) -> P:
        for _ in range(PLANS_MAX):
            planned = plan()
            outcome = await commit(planned, deadline)
            if isinstance(outcome, Committed):
                # As in Kafka the time-out is for getting it done. It is done: a late answer is better than none.
                await self._catch_up(outcome, deadline, at_least_s=CATCH_UP_S)
                return planned
            await self._catch_up(outcome, deadline)
        raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, "Too many others are changing the same thing.")

    async def _catch_up(self, outcome: Outcome, deadline: float, *, at_least_s: float = 0.0) -> None:
        await self.follower.wait_for(outcome.revision, timeout_s=max(at_least_s, self._left_s(deadline)))

    async def transact(
        self, compares: Sequence[Compare], operations: Sequence[Put | Delete], deadline: float
    ) -> Outcome:
        invariant(len(compares) + len(operations) <= STORE_OPERATIONS_MAX, "transaction too large", len(operations))
        return await transact_surely(self.store, self.clock, compares, operations, timeout_s=self._left_s(deadline))

    async def _commit_plainly(
        self, planned: tuple[Sequence[Compare], Sequence[Put | Delete]], deadline: float
    ) -> Outcome:
        compares, operations = planned
        if not operations:
            return Committed(self.image.revision)
        return await self.transact(compares, operations, deadline)

    async def _commit_topic(self, topic: PlannedTopic, deadline: float) -> Outcome:
        id_put = writes.topic_id_put(topic)
        commit_point = writes.topic_puts(topic)
        is_new = [*writes.topic_is_new(topic.name), Compare(id_put.key, 0)]
        if len(is_new) + len(commit_point) + 1 + len(topic.partitions) <= STORE_OPERATIONS_MAX:
            puts = writes.partition_puts(topic.topic_id, topic.partitions)
            return await self.transact(is_new, [*commit_point, id_put, *puts], deadline)

        first, *rest = chunks_of(topic.partitions, fixed_operations=len(is_new) + 1)
        puts = writes.partition_puts(topic.topic_id, first)
        outcome = await self.transact(is_new, [id_put, *puts], deadline)
        if not isinstance(outcome, Committed):
            return outcome
        still_ours = Compare(id_put.key, outcome.revision)
        written = len(first)
        for part in rest:
            puts = writes.partition_puts(topic.topic_id, part, first=written)
            written += len(part)
            outcome = await self.transact([still_ours], puts, deadline)
            if not isinstance(outcome, Committed):
                break
        else:
            outcome = await self.transact([*writes.topic_is_new(topic.name), still_ours], commit_point, deadline)
        if not isinstance(outcome, Committed):
            await self._catch_up(outcome, deadline)
            await self.sweep(topic.topic_id, deadline)
        return outcome

    async def _commit_partitions(self, planned: PlannedPartitions, deadline: float) -> Outcome:
        topic, have = planned.topic, len(planned.topic.partitions)
        unchanged = [Compare(keys.topic(topic.name), topic.revision)]
        commit_point = writes.topic_put(topic.name, topic.topic_id, have + len(planned.added))
        *parts, last = chunks_of(planned.added, fixed_operations=2)
        written = have
        for part in parts:
            puts = writes.partition_puts(topic.topic_id, part, first=written)
            written += len(part)
            outcome = await self.transact(unchanged, puts, deadline)
            if not isinstance(outcome, Committed):
                return outcome
        puts = writes.partition_puts(topic.topic_id, last, first=written)
        return await self.transact(unchanged, [commit_point, *puts], deadline)

    async def _commit_deletion(self, topic: TopicImage, deadline: float) -> Outcome:
        unchanged = [Compare(keys.topic(topic.name), topic.revision)]
        deletes = writes.topic_deletes(topic)
        room = STORE_OPERATIONS_MAX - len(unchanged) - len(deletes)
        partitions = writes.partition_deletes(topic.topic_id, range(min(room, len(topic.partitions))))
        outcome = await self.transact(unchanged, [*deletes, *partitions], deadline)
        if isinstance(outcome, Committed):  # there may be more loose ones than we know of: of an enlargement under way
            await self._catch_up(outcome, deadline, at_least_s=CATCH_UP_S)
            await self.sweep(topic.topic_id, deadline)
        return outcome

    async def sweep(self, topic_id: TopicId, deadline: float | None = None) -> None:
        """Remove the loose partition keys of a topic. Gives up quietly when it meets somebody else's change, or an
        unsure store: what is loose harms nobody and the next start sweeps again."""
        deadline = self._deadline(TIMEOUT_MS) if deadline is None else deadline
        while loose := self.image.loose.get(topic_id):
            indexes = list(islice(loose, STORE_OPERATIONS_MAX - 2))
            compares, operations = writes.loose_transaction(self.image, topic_id, indexes)
            try:
                outcome = await self.transact(compares, operations, deadline)
                await self._catch_up(outcome, deadline)
            except BrokerError as error:
                log.info("left %d loose partition key(s) for the next start: %s", len(loose), error)
                return
            if not isinstance(outcome, Committed):
                return


def _check_config_size(configs: Mapping[str, str]) -> None:
    size_bytes = sum(len(name) + len(value) for name, value in configs.items())
    if size_bytes > CONFIG_BYTES_MAX:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"The overrides of one resource are limited to {CONFIG_BYTES_MAX} bytes."
        )
