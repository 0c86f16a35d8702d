"""Leader epochs: where each began, and what a follower or a consumer is told about where one ends."""

from __future__ import annotations

import pytest

from headpond.storage.folder.checkpoint_files import CorruptCheckpoint
from headpond.storage.log.epochs import EpochEntry, LeaderEpochs


@pytest.fixture
def epochs() -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(3, 0), EpochEntry(5, 40), EpochEntry(6, 97)])


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (6, (6, 120)),  # the latest ends where the log ends
        (5, (5, 97)),
        (4, (3, 40)),  # KIP-279: the largest epoch that is not larger
        (3, (3, 40)),
        (2, (2, 0)),  # older than all: where the oldest known begins
        (7, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch(epochs: LeaderEpochs, asked: int, answer: tuple[int, int]) -> None:
    assert epochs.end_offset_for(asked, 120) == answer


def test_the_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_for(offset) for offset in (0, 39, 40, 96, 97, 1_000)] == [3, 3, 5, 5, 6, 6]
    epochs.truncate_from_start(50)
    assert epochs.epoch_for(49) == -1


def test_an_epoch_that_wrote_nothing_gives_way_to_the_next(epochs: LeaderEpochs) -> None:
    epochs.assign(8, 120)
    epochs.assign(9, 120)
    assert epochs.entries[-2:] == ((6, 97), (9, 120))


def test_assigning_the_latest_epoch_again_changes_nothing(epochs: LeaderEpochs) -> None:
    version = epochs.version
    epochs.assign(6, 110)
    assert (epochs.version, epochs.entries[-1]) == (version, (6, 97))


def test_truncation_from_both_ends(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(97)
    assert epochs.entries == ((3, 0), (5, 40))
    assert epochs.latest_epoch == 5
    epochs.truncate_from_start(41)
    assert epochs.entries == ((5, 41),)
    epochs.truncate_from_end(0)
    assert (epochs.entries, epochs.latest_epoch) == ((), -1)


def test_the_file_is_kafkas(epochs: LeaderEpochs) -> None:
    assert epochs.encode() == b"0\n3\n3 0\n5 40\n6 97\n"
    assert LeaderEpochs.decode(epochs.encode()).entries == epochs.entries
    assert LeaderEpochs.decode(b"").entries == ()


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n2\n3 0\n", b"0\n1\nthree 0\n", b"0\n1\n3 0 0\n", b"\xff\xfe", b"0\nx\n"]
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs.decode(data)
