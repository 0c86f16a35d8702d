"""Names and small files of a data folder, byte for byte Kafka's."""

from __future__ import annotations

import pytest

from headpond.model import TopicId, TopicPartition
from headpond.storage.folder import names as folder
from headpond.storage.folder.checkpoint_files import CorruptCheckpoint, decode_offsets, encode_offsets, read_offsets
from headpond.storage.folder.names import BadFile, FolderIdentity
from simulation.harness.disk import SimulatedDisk


def test_names_of_segment_files() -> None:
    assert folder.file_name(42, folder.LOG) == "00000000000000000042.log"
    assert folder.parse_file_name("00000000000000000042.timeindex") == (42, ".timeindex")
    for name in ("42.log", "00000000000000000042.log.deleted", "leader-epoch-checkpoint", "0000000000000000004x.log"):
        assert folder.parse_file_name(name) is None


def test_names_of_partition_folders() -> None:
    assert folder.parse_folder_name("my-topic.v1-12") == TopicPartition("my-topic.v1", 12)
    assert folder.parse_folder_name("topic-2147483647") == TopicPartition("topic", 2_147_483_647)
    others = ("topic", "-1", "topic-", "topic-x", "topic-1.0123-delete", "topic-²", "topic-00", "topic-2147483648")
    for name in (*others, "topic-" + "1" * 200, "topic-1\n"):
        assert folder.parse_folder_name(name) is None
    renamed = folder.renamed_folder(TopicPartition("t" * 249, 7), bytes(16), folder.DELETE_FOLDER)
    assert len(renamed) == 255
    assert renamed.endswith("-7." + "0" * 32 + "-delete")


def test_partition_metadata() -> None:
    topic_id = TopicId(bytes(range(16)))
    data = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert folder.encode_partition_metadata(topic_id) == data
    assert folder.decode_partition_metadata(data) == topic_id
    for bad in (b"", data[:-4], b"version: x\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"\xff\xff"):
        with pytest.raises(BadFile):
            folder.decode_partition_metadata(bad)


def test_meta_properties() -> None:
    written_by_kafka = (
        b"#\n#Sun Nov 15 21:06:41 UTC 2026\nnode.id=1\ndirectory.id=Nvu0WDRiF_mqoXz4So8iHA\nversion=1\n"
        b"cluster.id=some-cluster\n"
    )
    identity = FolderIdentity("some-cluster", 1, "Nvu0WDRiF_mqoXz4So8iHA")
    assert folder.decode_meta_properties(written_by_kafka) == identity
    assert folder.decode_meta_properties(folder.encode_meta_properties(identity)) == identity
    for bad in (b"", b"version=2\nnode.id=1\ncluster.id=x\n", b"version=1\nnode.id=one\ncluster.id=x\n"):
        with pytest.raises(BadFile):
            folder.decode_meta_properties(bad)


def test_the_clean_shutdown_marker() -> None:
    assert folder.encode_clean_shutdown(7) == b'{"version":0,"brokerEpoch":7}'
    assert folder.decode_clean_shutdown(b'{"version":0,"brokerEpoch":-1}') == -1
    for bad in (b"", b"{", b"[]", b"{}"):
        assert folder.decode_clean_shutdown(bad) is None


def test_offset_checkpoints() -> None:
    offsets = {TopicPartition("orders", 0): 1500, TopicPartition("orders", 1): 0}
    assert encode_offsets(offsets) == b"0\n2\norders 0 1500\norders 1 0\n"
    assert decode_offsets(encode_offsets(offsets)) == offsets
    assert decode_offsets(b"") == {}
    for bad in (b"7\n0\n", b"0\n2\norders 0 1500\n", b"0\n1\norders 0\n", b"0\n1\norders zero 1\n"):
        with pytest.raises(CorruptCheckpoint):
            decode_offsets(bad)


def test_a_damaged_checkpoint_counts_as_none() -> None:
    disk = SimulatedDisk()
    assert read_offsets(disk, "/missing") == {}
    disk.write_file_atomically("/damaged", b"0\n9\n")
    assert read_offsets(disk, "/damaged") == {}
