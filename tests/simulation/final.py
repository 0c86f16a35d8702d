"""The last look: what the broker holds when everything has healed.

Each partition is read by a client, in both isolation levels; groups and open transactions are asked for; the broker is
killed, started again and asked for the groups once more; then it is stopped, and its files are walked byte by byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal

from headpond.client import Client
from headpond.client.admin import Admin, ConfigResource
from headpond.client.consumer import EARLIEST, Reader
from headpond.client.fetched import FetchedBatch
from headpond.client.group_admin import Groups
from headpond.client.offsets import LATEST
from headpond.client.transaction_admin import Transactions
from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.protocol.records.control import read_end_txn_marker
from headpond.protocol.records.header import BatchHeader, crc_of, read_header
from headpond.protocol.records.reader import read_records
from simulation.harness.hosts import BrokerHost, ClientHost
from simulation.history import Batch, BatchPosition, FinalLog, GroupState, History, IndexEntry, Place, Seen
from simulation.plan import Options

DATA_DIR = "/data"
REST_S = 20.0
UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort")
OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class LastLook:
    def __init__(self, broker: BrokerHost, observer: ClientHost, history: History, options: Options) -> None:
        self._broker = broker
        self._observer = observer
        self._history = history
        self._options = options

    async def run(self) -> None:
        await self._come_to_rest()
        async with self._observer.client(["b1"], timeout_s=10) as client:
            self._history.transactions_open_at_end = await _open_transactions(client)
            self._history.groups_before_restart = await _groups(client)
        self._broker.kill()
        await self._serving()
        async with self._observer.client(["b1"], timeout_s=10) as client:
            self._history.groups_after_restart = await _groups(client)
            await self._read_logs(client)
        self._broker.stop()
        while self._broker.is_up:
            await self._observer.clock.sleep(0.05)
        self._read_disk()

    async def _come_to_rest(self) -> None:
        """Transactions that nobody ends run out of time; then everything that was appended is visible and stable."""
        clock = self._observer.clock
        until_s = clock.monotonic() + REST_S
        async with self._observer.client(["b1"], timeout_s=10) as client:
            while True:
                names = sorted((await client.metadata(None)).topics)
                partitions = await self._partitions(client, names)
                open_ones = await _open_transactions(client)
                ends = await Admin(client).list_offsets(dict.fromkeys(partitions, LATEST), isolation="read_uncommitted")
                stable = await Admin(client).list_offsets(dict.fromkeys(partitions, LATEST), isolation="read_committed")
                behind = [str(tp) for tp in partitions if ends[tp].offset != stable[tp].offset]
                if not behind and not open_ones:
                    return
                if clock.monotonic() > until_s:
                    self._history.unconverged.append(f"open transactions {open_ones}, unstable partitions {behind}")
                    return
                await clock.sleep(0.2)

    async def _serving(self) -> None:
        until_s = self._observer.clock.monotonic() + REST_S
        while not self._broker.is_serving:
            if self._observer.clock.monotonic() > until_s:
                raise TimeoutError("the broker does not serve after its last restart")
            await self._observer.clock.sleep(0.05)

    # --- by a client

    async def _partitions(self, client: Client, names: list[str]) -> dict[TopicPartition, Place]:
        topics = (await client.metadata(names)).topics
        return {
            TopicPartition(name, index): Place(name, id_text(view.topic_id), index)
            for name, view in sorted(topics.items())
            if not view.error
            for index in range(len(view.partitions))
        }

    async def _read_logs(self, client: Client) -> None:
        names = sorted((await client.metadata(None)).topics)
        places = await self._partitions(client, [name for name in names if not name.startswith("__")])
        admin = Admin(client)
        configs = {name: await _configs(admin, name) for name in sorted({tp.topic for tp in places})}
        while places:
            starts = await admin.list_offsets(dict.fromkeys(places, EARLIEST), isolation="read_uncommitted")
            ends = await admin.list_offsets(dict.fromkeys(places, LATEST), isolation="read_uncommitted")
            stable = await admin.list_offsets(dict.fromkeys(places, LATEST), isolation="read_committed")
            for tp, place in places.items():
                self._history.final_logs[place] = FinalLog(
                    place=place,
                    log_start_offset=starts[tp].offset,
                    high_watermark=ends[tp].offset,
                    last_stable_offset=stable[tp].offset,
                    fetched=tuple(_batch(each.header, each.data) for each in await _read(client, tp, is_raw=True)),
                    committed=tuple(
                        Seen(each.offset, each.timestamp_ms, each.key, each.value)
                        for batch in await _read(client, tp, is_raw=False)
                        for each in batch.records
                    ),
                    on_disk=(),
                    log_end_offset=ends[tp].offset,
                    configs=configs[tp.topic],
                )
            # Retention goes on: what it has changed meanwhile is read once more.
            now = await admin.list_offsets(dict.fromkeys(places, EARLIEST), isolation="read_uncommitted")
            places = {tp: place for tp, place in places.items() if now[tp].offset != starts[tp].offset}

    # --- by nobody's leave

    def _read_disk(self) -> None:
        places = {f"{place.topic}-{place.partition}": place for place in self._history.final_logs}
        on_disk: dict[Place, list[Batch]] = {place: [] for place in self._history.final_logs}
        disk = self._broker.disk
        for path in disk.paths():
            folder, _, name = path.removeprefix(DATA_DIR + "/").partition("/")
            place = places.get(folder)
            base, _, kind = name.partition(".")
            if place is None or not base.isdigit():
                continue
            content = disk.contents(path)
            if kind == "log":
                for position, header, data in _walk(content):
                    on_disk[place].append(_batch(header, data))
                    self._history.batch_positions.append(
                        BatchPosition(
                            place,
                            int(base),
                            position,
                            header.base_offset,
                            header.last_offset,
                            header.max_timestamp,
                        )
                    )
            elif kind in ("index", "timeindex"):
                rotten = {entry for where, entry in self._history.rotten_entries if where == path}
                self._history.index_entries += _index_entries(place, kind, int(base), content, rotten)
        for place, batches in on_disk.items():
            self._history.final_logs[place].on_disk = tuple(batches)


async def _configs(admin: Admin, topic: str) -> dict[str, str]:
    """The topic's own, after whatever an administrator changed."""
    entries = await admin.describe_configs(ConfigResource("topic", topic))
    return {each.name: each.value or "" for each in entries if each.source == "dynamic topic"}


async def _read(client: Client, tp: TopicPartition, *, is_raw: bool) -> list[FetchedBatch]:
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted" if is_raw else "read_committed"
    # Retention goes on meanwhile.
    async with Reader(client, {tp: EARLIEST}, isolation=isolation, is_raw=is_raw, offset_reset="earliest") as reader:
        return [batch async for batch in reader]


def _batch(header: BatchHeader, data: memoryview) -> Batch:
    control: Literal["", "commit", "abort"] = ""
    if header.is_control:
        marker = read_end_txn_marker(data)
        if marker is not None:  # compaction leaves a header, for the producer's sake
            control = "abort" if marker.is_abort else "commit"
    records = tuple(Seen(*record[:4]) for record in read_records(data))
    return Batch(
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.is_transactional,
        control,
        records,
    )


def _walk(content: bytes) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    view, position = memoryview(content), 0
    while position < len(content):
        size = struct.unpack_from(">i", content, position + 8)[0] + 12
        data = view[position : position + size]
        header = read_header(data)
        assert crc_of(data) == header.crc, f"a damaged batch at {position}"
        yield position, header, data
        position += size


def entry_at(path: str, content: bytes, position: int) -> bytes:
    """The entry of an index file that has the byte at ``position``."""
    size = _entry_format(path.rpartition(".")[2]).size
    start = position - position % size
    return content[start : start + size]


def _index_entries(place: Place, kind: str, base: int, content: bytes, rotten: set[bytes]) -> Iterator[IndexEntry]:
    entry = _entry_format(kind)
    for start in range(0, len(content) - entry.size + 1, entry.size):
        if content[start : start + entry.size] in rotten:
            continue
        first, second = entry.unpack_from(content, start)
        if kind == "index":
            yield IndexEntry(place, "index", base, base + first, second)
        else:
            yield IndexEntry(place, "timeindex", base, first, base + second)


def _entry_format(kind: str) -> struct.Struct:
    return OFFSET_ENTRY if kind == "index" else TIME_ENTRY


async def _open_transactions(client: Client) -> tuple[str, ...]:
    """Those that are ongoing or ending."""
    return tuple(each.transactional_id for each in await Transactions(client).all() if each.state in UNFINISHED)


async def _groups(client: Client) -> dict[str, GroupState]:
    admin = Groups(client)
    states: dict[str, GroupState] = {}
    for listed in sorted(await admin.all()):
        described = await admin.describe(listed.group_id)
        offsets = await admin.offsets(listed.group_id)
        states[listed.group_id] = GroupState(
            listed.group_id,
            "" if described is None else described.state,
            () if described is None else tuple(sorted(member.member_id for member in described.members)),
            tuple(sorted((tp.topic, tp.partition, found.offset) for tp, found in offsets.items())),
        )
    return states
