"""Names and small text files of a data folder, all Kafka's.

    <data>/meta.properties  .lock  .kafka_cleanshutdown  *-checkpoint
    <data>/<topic>-<partition>/<base offset, 20 digits>.log .index .timeindex .txnindex .snapshot
    <data>/<topic>-<partition>/partition.metadata  leader-epoch-checkpoint
    <data>/<topic>-<partition>.<32 hex digits>-delete   going away · -stray   set aside, never deleted by us

Pure: text in, values out. A file that can't be read as what it should be raises ``BadFile``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from headpond.model import TopicId, TopicPartition
from headpond.model.ids import id_text, parse_id

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
SYNC_FAILED = ".sync_failed"
META_PROPERTIES = "meta.properties"
METADATA_STORE = "metadata.sqlite"
JOURNALS = (".journal_a", ".journal_b")  # no topic's folder is named so
JOURNAL_MAGIC = b"JRN1"
"""The first bytes of a journal, and of each of its frames. Another format has another digit."""
OURS = (SYNC_FAILED, METADATA_STORE, *JOURNALS)
OURS_IN_OTHER_VERSIONS = tuple(name.removeprefix(".") for name in OURS)
"""How the names of such files end, whatever another version of this program may put before."""

SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
NAME_BYTES_MAX = 255
PARTITION_MAX = 0x7FFF_FFFF
# Written as a broker writes it: "orders-00" is somebody's copy, and not the folder of a partition 0.
_PARTITION_FOLDER = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.DOTALL)
_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")


class BadFile(Exception):
    """A text file of the data folder does not hold what its name says."""


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of a segment's file or a snapshot; None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def parse_folder_name(name: str) -> TopicPartition | None:
    """The partition that a folder of this name belongs to; None for folders with another purpose."""
    match = _PARTITION_FOLDER.fullmatch(name)
    if match is None or int(match[2]) > PARTITION_MAX:
        return None
    return TopicPartition(match[1], int(match[2]))


def renamed_folder(tp: TopicPartition, unique: bytes, suffix: str) -> str:
    """``topic-partition.<hex><suffix>``, the topic cut so that the name stays a legal one."""
    tail = f"-{tp.partition}.{unique.hex()}{suffix}"
    return tp.topic[: NAME_BYTES_MAX - len(tail)] + tail


# --- partition.metadata -----------------------------------------------------------------------------------------------


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {id_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> TopicId:
    fields = _colon_fields(data)
    try:
        if int(fields["version"]) < 0:
            raise ValueError("negative version")
        return parse_id(fields["topic_id"].rstrip("="))
    except (KeyError, ValueError) as error:
        raise BadFile(f"{PARTITION_METADATA}: {error!r} in {data[:100]!r}") from None


def _colon_fields(data: bytes) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in data.decode("utf-8", "replace").splitlines())
    return {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}


# --- meta.properties --------------------------------------------------------------------------------------------------


class FolderIdentity(NamedTuple):
    """Whose folder this is: version 1 of ``meta.properties``."""

    cluster_id: str
    node_id: int
    directory_id: str


def encode_meta_properties(identity: FolderIdentity) -> bytes:
    return (
        f"#\nnode.id={identity.node_id}\ndirectory.id={identity.directory_id}\nversion=1\n"
        f"cluster.id={identity.cluster_id}\n"
    ).encode()


def decode_meta_properties(data: bytes) -> FolderIdentity:
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", "!")):
            fields[name.strip()] = value.strip()
    try:
        if fields["version"] != "1":
            raise BadFile(f"{META_PROPERTIES} has version {fields['version']}, only 1 is known")
        return FolderIdentity(fields["cluster.id"], int(fields["node.id"]), fields.get("directory.id", ""))
    except KeyError as error:
        raise BadFile(f"{META_PROPERTIES} has no {error.args[0]}") from None
    except ValueError:
        raise BadFile(f"{META_PROPERTIES}: node.id is '{fields['node.id'][:20]}', which is not a number") from None


# --- .kafka_cleanshutdown ---------------------------------------------------------------------------------------------


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return msgspec.json.encode({"version": 0, "brokerEpoch": broker_epoch})


def decode_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch; None when the marker can't be read (then nothing is known to be clean)."""
    try:
        content = msgspec.json.decode(data, type=dict[str, int])
    except msgspec.DecodeError:
        return None
    return content.get("brokerEpoch")
