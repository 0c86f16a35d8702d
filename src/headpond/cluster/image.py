"""The cluster's metadata in memory, as of one revision of the store.

Changed only by ``ImageFollower``, on the loop, one revision at a time, so whoever reads it between two awaits sees one
state of the store's history and never a half-applied transaction. Nothing in it survives a crash: it is listed anew at
the start.

A topic is visible when its key is there and so are all the partitions that the key counts. Partition keys without a
topic (a creation under way, or the rest of a deletion) and beyond the count (an enlargement under way) stay ``loose``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from headpond.cluster import keys
from headpond.cluster.delta import Delta, PartitionChange
from headpond.cluster.names import clash_name, may_clash
from headpond.cluster.rows import (
    BadEntry,
    BrokerRow,
    ClusterRow,
    Endpoint,
    FeatureRow,
    PartitionState,
    ProducerIdBlockRow,
    TopicRow,
    decode,
)
from headpond.model import TopicId, invariant
from headpond.model.ids import parse_id
from headpond.ports import Changes, Entry, Listing

_NOTHING: Mapping[str, str] = MappingProxyType({})


class TopicImage(msgspec.Struct, frozen=True):
    """``revision`` is that of the topic's key: a change of the topic is a compare on it."""

    name: str
    topic_id: TopicId
    partitions: tuple[PartitionState, ...]
    revision: int


class BrokerImage(NamedTuple):
    """``epoch`` is the revision at which this registration was made: each start of a broker has a larger one."""

    id: int
    epoch: int
    incarnation: str
    listeners: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool
    revision: int


class _TopicKey(NamedTuple):
    topic_id: TopicId
    partitions: int
    revision: int


class MetadataImage:
    def __init__(self) -> None:
        self.revision = 0
        self.cluster_id = ""
        self.topics: dict[str, TopicImage] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.features: dict[str, int] = {}
        self.loose: dict[TopicId, dict[int, PartitionState]] = {}
        self._clashing: dict[str, str] = {}
        self._topic_keys: dict[str, _TopicKey] = {}
        self._key_names: dict[TopicId, str] = {}
        self._partitions: dict[TopicId, dict[int, PartitionState]] = {}
        self._configs: dict[tuple[str, str], Mapping[str, str]] = {}
        self._revisions: dict[str, int] = {}

    # --- reading

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self._configs.get(("topic", name), _NOTHING)

    def broker_configs(self, broker_id: int | None) -> Mapping[str, str]:
        """The dynamic settings of one broker; None: the default of all brokers."""
        return self._configs.get(("broker", keys.DEFAULT_BROKER if broker_id is None else str(broker_id)), _NOTHING)

    def configs(self, kind: str, name: str) -> Mapping[str, str]:
        """The overrides of a resource of any kind; broker "" is the default of all brokers."""
        return self._configs.get((kind, name or keys.DEFAULT_BROKER), _NOTHING)

    def configured(self, kind: str) -> list[str]:
        """The names that have overrides of that kind, sorted; "" is the default of all brokers."""
        names = [name for each, name in self._configs if each == kind]
        return sorted("" if kind == "broker" and name == keys.DEFAULT_BROKER else name for name in names)

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def clashing_topic(self, name: str) -> str | None:
        """The topic, perhaps ``name`` itself, whose name becomes the same metric name."""
        return self._clashing.get(clash_name(name)) if may_clash(name) else None

    def key_revision(self, key: str) -> int:
        """When ``key`` last changed; 0: it does not exist. What a compare in a transaction asks for."""
        return self._revisions.get(key, 0)

    def check_whole(self) -> None:
        """Raises ``BadEntry`` where a topic lacks a partition that it counts. Its partitions are always written before
        or with the topic's key, so a missing one was lost; the topic itself is not visible."""
        for name in sorted(self._topic_keys.keys() - self.topics.keys()):
            key = self._topic_keys[name]
            held = self._partitions.get(key.topic_id, {})
            missing = next(index for index in range(key.partitions) if index not in held)
            why = f"it is missing, and the topic {name} has {key.partitions} partitions"
            raise BadEntry(keys.partition(key.topic_id, missing), why)

    # --- changing: the follower only

    def apply(self, changes: Changes) -> Delta:
        """Take the changes of the next revision. The caller drops revisions that the image has already."""
        invariant(changes.revision > self.revision, "the image went back", changes.revision, self.revision)
        puts = [
            Entry(c.key, c.value, 0, c.revision) for c in changes.changes if c.value is not None
        ]  # create_revision 0: what it is follows from whether we knew the key
        return self._step(changes.revision, puts, [c.key for c in changes.changes if c.value is None])

    def load(self, listing: Listing) -> Delta:
        """Become what the store listed, whatever was before: the delta leads from here to there."""
        invariant(listing.revision >= self.revision, "the store went back", listing.revision, self.revision)
        listed = {entry.key for entry in listing.entries}
        puts = [entry for entry in listing.entries if self._revisions.get(entry.key) != entry.mod_revision]
        return self._step(listing.revision, puts, [key for key in self._revisions if key not in listed])

    def _step(self, revision: int, puts: Iterable[Entry], deletes: Iterable[str]) -> Delta:
        step = _Step(self)
        for key in deletes:
            step.delete(key)
        for entry in puts:
            step.put(entry)
        self.revision = revision
        return step.finish(revision)

    def _rebuild(self, name: str, touched: Iterable[int] | None) -> tuple[TopicImage | None, TopicImage | None]:
        """Derive the visible topic from what the store holds; ``touched``: the only partitions that can have
        changed."""
        before = self.topics.get(name)
        key = self._topic_keys.get(name)
        after: TopicImage | None = None
        if key is not None:
            held = self._partitions.get(key.topic_id, {})
            if before is not None and touched is not None and all(index in held for index in touched):
                states = list(before.partitions)
                for index in touched:
                    if index < key.partitions:
                        states[index] = held[index]
                after = TopicImage(name, key.topic_id, tuple(states), key.revision)
            elif all(index in held for index in range(key.partitions)):
                after = TopicImage(name, key.topic_id, tuple(held[i] for i in range(key.partitions)), key.revision)
        if before is not None and (after is None or after.topic_id != before.topic_id):
            del self.topic_names[before.topic_id]
        if after is None:
            self.topics.pop(name, None)
        else:
            self.topics[name] = after
            self.topic_names[after.topic_id] = name
        self._note_clash(name, exists=after is not None)
        return before, after

    def _note_clash(self, name: str, *, exists: bool) -> None:
        if not may_clash(name):
            return
        if exists:
            self._clashing[clash_name(name)] = name
        elif self._clashing.get(clash_name(name)) == name:
            del self._clashing[clash_name(name)]

    def _find_loose(self, topic_id: TopicId, touched: Iterable[int] | None) -> None:
        """``touched``: the only partitions that can have become loose, or ceased to be."""
        name = self._key_names.get(topic_id)
        count = self._topic_keys[name].partitions if name is not None else 0
        held = self._partitions.get(topic_id, {})
        if touched is None:
            beyond = {index: state for index, state in sorted(held.items()) if index >= count}
        else:
            beyond = self.loose.get(topic_id, {})
            for index in touched:
                if index >= count and index in held:
                    beyond[index] = held[index]
                else:
                    beyond.pop(index, None)
        if beyond:
            self.loose[topic_id] = beyond
        else:
            self.loose.pop(topic_id, None)


class _Step:
    """One revision's way into the image: takes the keys one by one, then derives topics and says what changed."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._names: set[str] = set()  # topics whose key changed
        self._touched: dict[TopicId, set[int]] = {}
        self._gone_ids: dict[str, TopicId] = {}
        self._configs: set[tuple[str, str]] = set()
        self._brokers: set[int] = set()
        self._features: set[str] = set()

    def put(self, entry: Entry) -> None:
        image, key = self._image, entry.key
        if key.startswith(keys.PARTITIONS):
            topic_id, index = _partition_of(key)
            state = msgspec.structs.replace(decode(key, entry.value, PartitionState), revision=entry.mod_revision)
            image._partitions.setdefault(topic_id, {})[index] = state
            self._touched.setdefault(topic_id, set()).add(index)
        elif key.startswith(keys.TOPICS):
            self._put_topic(key[len(keys.TOPICS) :], decode(key, entry.value, TopicRow), entry.mod_revision)
        elif key.startswith(keys.CONFIGS):
            kind, _, name = key[len(keys.CONFIGS) :].partition("/")
            image._configs[kind, name] = MappingProxyType(decode(key, entry.value, dict[str, str]))
            self._configs.add((kind, name))
        elif key.startswith(keys.BROKERS):
            self._put_broker(entry)
        elif key.startswith(keys.FEATURES):
            image.features[key[len(keys.FEATURES) :]] = decode(key, entry.value, FeatureRow).level
            self._features.add(key[len(keys.FEATURES) :])
        elif key == keys.CLUSTER:
            image.cluster_id = decode(key, entry.value, ClusterRow).id
        elif key == keys.PRODUCER_ID_BLOCK:
            decode(key, entry.value, ProducerIdBlockRow)  # read when a block is taken; a bad one shows at the start
        image._revisions[key] = entry.mod_revision

    def delete(self, key: str) -> None:
        image = self._image
        if image._revisions.pop(key, None) is None:
            return
        if key.startswith(keys.PARTITIONS):
            topic_id, index = _partition_of(key)
            held = image._partitions[topic_id]
            del held[index]
            if not held:
                del image._partitions[topic_id]
            self._touched.setdefault(topic_id, set()).add(index)
        elif key.startswith(keys.TOPICS):
            self._drop_topic(key[len(keys.TOPICS) :])
        elif key.startswith(keys.CONFIGS):
            kind, _, name = key[len(keys.CONFIGS) :].partition("/")
            del image._configs[kind, name]
            self._configs.add((kind, name))
        elif key.startswith(keys.BROKERS):
            broker_id = int(key[len(keys.BROKERS) :])
            del image.brokers[broker_id]
            self._brokers.add(broker_id)
        elif key.startswith(keys.FEATURES):
            del image.features[key[len(keys.FEATURES) :]]
            self._features.add(key[len(keys.FEATURES) :])
        elif key == keys.CLUSTER:
            image.cluster_id = ""

    def finish(self, revision: int) -> Delta:
        image = self._image
        names = self._names | {image._key_names[topic_id] for topic_id in self._touched if topic_id in image._key_names}
        gone: list[PartitionChange] = []
        here: list[PartitionChange] = []
        created: list[str] = []
        deleted: list[tuple[str, TopicId]] = []
        for name in sorted(names):
            key = image._topic_keys.get(name)
            touched = None
            if key is not None and name not in self._names:  # the topic itself is as it was
                touched = sorted(self._touched[key.topic_id])
            before, after = image._rebuild(name, touched)
            if before is not None and (after is None or after.topic_id != before.topic_id):
                deleted.append((name, before.topic_id))
                gone += [PartitionChange(name, before.topic_id, i, s, None) for i, s in enumerate(before.partitions)]
                before = None
            if after is not None:
                if before is None:
                    created.append(name)
                here += _differences(before, after)
        changed_ids = {*self._gone_ids.values(), *self._ids_of(self._names)}  # those of topics whose key changed
        for topic_id in sorted({*self._touched, *changed_ids}):
            image._find_loose(topic_id, None if topic_id in changed_ids else sorted(self._touched[topic_id]))
        return Delta(
            revision=revision,
            partitions=(*gone, *here),
            topics_created=tuple(created),
            topics_deleted=tuple(deleted),
            topic_configs=tuple(sorted(name for kind, name in self._configs if kind == "topic")),
            broker_configs=tuple(
                None if name == keys.DEFAULT_BROKER else int(name)
                for kind, name in sorted(self._configs)
                if kind == "broker" and (name == keys.DEFAULT_BROKER or name.isdecimal())
            ),
            brokers=tuple(sorted(self._brokers)),
            features=tuple(sorted(self._features)),
        )

    def _ids_of(self, names: Iterable[str]) -> set[TopicId]:
        return {self._image._topic_keys[name].topic_id for name in names if name in self._image._topic_keys}

    def _put_topic(self, name: str, row: TopicRow, revision: int) -> None:
        image, topic_id = self._image, _id_of(row.id, keys.TOPICS + name)
        self._drop_topic(name)
        image._topic_keys[name] = _TopicKey(topic_id, row.partitions, revision)
        image._key_names[topic_id] = name

    def _drop_topic(self, name: str) -> None:
        image = self._image
        old = image._topic_keys.pop(name, None)
        if old is not None:
            image._key_names.pop(old.topic_id, None)
            self._gone_ids[name] = old.topic_id
        self._names.add(name)

    def _put_broker(self, entry: Entry) -> None:
        image, broker_id = self._image, _number_in(entry.key[len(keys.BROKERS) :], entry.key)
        row = decode(entry.key, entry.value, BrokerRow)
        known = image.brokers.get(broker_id)
        # A watch does not tell the revision of the creation; a listing does.
        epoch = entry.create_revision or (known.epoch if known is not None else entry.mod_revision)
        listeners = MappingProxyType({endpoint.name: endpoint for endpoint in row.listeners})
        image.brokers[broker_id] = BrokerImage(
            broker_id, epoch, row.incarnation, listeners, row.rack, row.fenced, entry.mod_revision
        )
        self._brokers.add(broker_id)


def _differences(before: TopicImage | None, after: TopicImage) -> list[PartitionChange]:
    old = before.partitions if before is not None else ()
    changes = []
    for index, state in enumerate(after.partitions):
        was = old[index] if index < len(old) else None
        if was is not state and was != state:
            changes.append(PartitionChange(after.name, after.topic_id, index, was, state))
    for index in range(len(after.partitions), len(old)):  # nobody takes partitions away; whoever edits the store might
        changes.append(PartitionChange(after.name, after.topic_id, index, old[index], None))
    return changes


def _partition_of(key: str) -> tuple[TopicId, int]:
    text, _, index = key[len(keys.PARTITIONS) :].partition("/")
    return _id_of(text, key), _number_in(index, key)


def _number_in(text: str, key: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise BadEntry(key, f"'{text}' is not a number")
    return int(text)


def _id_of(text: str, key: str) -> TopicId:
    try:
        return parse_id(text)
    except ValueError as error:
        raise BadEntry(key, error) from error
