"""Reading a partition's folder from end to end, to find out what it holds and whether all of it is sound.

Every batch of every segment is checked: size, CRC, offsets that grow. Nothing is changed. Used before a folder that
somebody else wrote (a Kafka, a backup) becomes a partition of this broker. Blocking.
"""

from __future__ import annotations

from typing import NamedTuple

from headpond.model import TopicId, TopicPartition
from headpond.ports import FileSystem
from headpond.storage.folder import names
from headpond.storage.folder.checkpoint_files import CorruptCheckpoint
from headpond.storage.folder.names import BadFile
from headpond.storage.log.epochs import LeaderEpochs
from headpond.storage.producers.producers import ProducerStates
from headpond.storage.producers.snapshot import CorruptSnapshot, decode_snapshot
from headpond.storage.producers.txn_index import AbortedTxn
from headpond.storage.recovery.scan import Collected, ScannedSegment, scan

_NO_INDEX = 1 << 31


class Inspected(NamedTuple):
    """A folder's content; nothing, for a partition that was never written to. ``problem``: why it can't be taken over;
    the rest is what was read before that was met."""

    tp: TopicPartition
    path: str
    topic_id: TopicId | None
    start_offset: int = 0
    end_offset: int = 0
    size_bytes: int = 0
    segments: int = 0
    leader_epoch: int = -1
    last_producer_id: int = -1
    torn_bytes: int = 0  # behind the last whole batch of the last segment, as a crash leaves them
    aborted: tuple[tuple[int, AbortedTxn], ...] = ()  # (base offset of the segment that holds the marker, entry)
    problem: str | None = None


def inspect(fs: FileSystem, path: str, tp: TopicPartition) -> Inspected:
    found = Inspected(tp, path, read_topic_id(fs, path))
    bases = segment_bases(fs, path)
    if not bases:
        has_index = any(name.endswith((names.INDEX, names.TIME_INDEX, names.TXN_INDEX)) for name in fs.list_dir(path))
        return found._replace(problem="it has indexes and no .log: copy those too") if has_index else found
    producers = ProducerStates(tp)
    producers.clear(bases[0])
    collected = Collected(LeaderEpochs(), producers)
    last_producer_id = _last_snapshot_producer(fs, path)
    size_bytes, end_offset, torn_bytes = 0, bases[0], 0
    problem: str | None = None
    aborted: list[tuple[int, AbortedTxn]] = []
    for base in bases:
        if base < end_offset:
            problem = f"segment {base} begins before the one before it ends, at {end_offset}"
            break
        segment = ScannedSegment.empty(base)
        file = fs.open(f"{path}/{names.file_name(base, names.LOG)}", writable=False)
        try:
            file_bytes = file.size()
            scan(file, file_bytes, segment, collected, interval_bytes=_NO_INDEX, verify_from_offset=0)
        finally:
            file.close()
        size_bytes += segment.position
        end_offset = segment.next_offset
        aborted += [(base, entry) for entry in collected.aborted]
        collected.aborted.clear()
        last_producer_id = max(last_producer_id, *(state.producer_id for state in producers.states()), -1)
        if segment.fault is not None:
            if base != bases[-1]:
                problem = f"segment {base} is damaged at byte {segment.position}: {segment.fault}"
                break
            torn_bytes = file_bytes - segment.position
    open_from = producers.first_undecided_offset
    if problem is None and torn_bytes and end_offset == bases[0]:
        problem = f"its only segment holds no readable batch: {segment.fault}"
    if problem is None and open_from is not None:
        problem = f"a transaction is open since offset {open_from}: end it before you copy"
    return found._replace(
        start_offset=bases[0],
        end_offset=end_offset,
        size_bytes=size_bytes,
        segments=len(bases),
        leader_epoch=max(collected.epochs.latest_epoch, _checkpointed_epoch(fs, path)),
        last_producer_id=last_producer_id,
        torn_bytes=torn_bytes,
        aborted=tuple(aborted),
        problem=problem,
    )


def segment_bases(fs: FileSystem, path: str) -> list[int]:
    parsed = [names.parse_file_name(name) for name in fs.list_dir(path)]
    return sorted(each[0] for each in parsed if each is not None and each[1] == names.LOG)


def read_topic_id(fs: FileSystem, path: str) -> TopicId | None:
    try:
        return names.decode_partition_metadata(fs.read_file(f"{path}/{names.PARTITION_METADATA}"))
    except (FileNotFoundError, BadFile):
        return None


def _checkpointed_epoch(fs: FileSystem, path: str) -> int:
    """An epoch that began and has no batch yet is in the file alone."""
    try:
        return LeaderEpochs.decode(fs.read_file(f"{path}/{names.LEADER_EPOCHS}")).latest_epoch
    except (FileNotFoundError, CorruptCheckpoint):
        return -1


def _last_snapshot_producer(fs: FileSystem, path: str) -> int:
    """Producers whose batches are deleted are in the snapshots alone."""
    last = -1
    for name in fs.list_dir(path):
        parsed = names.parse_file_name(name)
        if parsed is not None and parsed[1] == names.SNAPSHOT:
            try:
                entries = decode_snapshot(fs.read_file(f"{path}/{name}"))
            except CorruptSnapshot:
                continue
            last = max(last, *(entry.producer_id for entry in entries), -1)
    return last
