"""Which task archives what, which files grow, and when a lake is not continued. Pure."""

from __future__ import annotations

import pytest

from headpond.model import TopicPartition
from headpond.model.ids import id_text
from headpond.spark.lake.archive_plan import TASK_RECORDS_MIN, growing_files, parts_of, reaches, refusals, starts_of
from headpond.spark.lake.restore_state import new_restore, with_chunk_done, with_next_chunk
from headpond.spark.lake.restore_state import starts_of as restore_starts
from headpond.spark.lake.state import Hole, LakeFile, Reach, Span, TopicState
from headpond.spark.reading.offsets import Offsets

ID = bytes(range(16))


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def state(**partitions: tuple[int, int]) -> TopicState:
    found = {int(name[1:]): Reach(*bounds) for name, bounds in partitions.items()}
    return TopicState("orders", "cluster", id_text(ID), 1, 0, found)


def covered(parts: list[list[object]]) -> set[tuple[int, int]]:
    found = []
    for part in [one for task in parts for one in task]:
        found += [(part.partition, offset) for offset in range(part.from_offset, part.end_offset)]  # type: ignore[attr-defined]
    assert len(found) == len(set(found)), "two tasks read the same"
    return set(found)


def test_a_small_backlog_is_one_task_and_a_large_one_as_many_as_run_side_by_side() -> None:
    small = parts_of("orders", {tp(0): 5, tp(1): 0}, {tp(0): 10, tp(1): 3}, 4)
    assert len(small) == 1
    assert covered(small) == {(0, 5), (0, 6), (0, 7), (0, 8), (0, 9), (1, 0), (1, 1), (1, 2)}
    many = TASK_RECORDS_MIN * 10
    large = parts_of("orders", {tp(0): 0}, {tp(0): many}, 4)
    assert len(large) == 4
    sizes = [sum(part.end_offset - part.from_offset for part in parts) for parts in large]
    assert sum(sizes) == many and max(sizes) - min(sizes) <= 4


def test_work_of_other_topics_and_of_none_is_left_out() -> None:
    assert parts_of("orders", {tp(0): 5, tp(0, "x"): 0}, {tp(0): 5, tp(0, "x"): 9}, 4) == []


def test_small_files_grow_each_by_one_task_and_large_ones_stay() -> None:
    def file(size_bytes: int) -> LakeFile:
        return LakeFile(size_bytes, 100, {0: Span(0, 100)})

    lake = TopicState(
        "orders",
        "c",
        "",
        3,
        files={
            "topic=orders/date=2026-01-01/a.parquet": file(10),
            "topic=orders/date=2026-01-01/b.parquet": file(5),
            "topic=orders/date=2026-01-01/c.parquet": file(1_000),
            "topic=orders/date=2026-01-02/d.parquet": file(999),
        },
    )
    assert growing_files(lake, 0, 10, 1_000) == {
        "2026-01-01": "topic=orders/date=2026-01-01/b.parquet",
        "2026-01-02": "topic=orders/date=2026-01-02/d.parquet",
    }
    assert growing_files(lake, 1, 10, 1_000) == {"2026-01-01": "topic=orders/date=2026-01-01/a.parquet"}
    assert growing_files(lake, 2, 10, 1_000) == {}
    assert growing_files(None, 0, 10, 1_000) == {}
    # So many records that they fill a quarter of a file of their own.
    assert "2026-01-02" not in growing_files(lake, 0, 30, 1_000)


def test_a_run_goes_on_where_the_lake_ends() -> None:
    lake = {"orders": state(p0=(0, 10), p1=(0, 10))}
    starts, holes = starts_of(lake, {tp(0): 3, tp(1): 12, tp(2): 4})
    assert starts == {tp(0): 10, tp(1): 12, tp(2): 4}
    assert holes == [Hole(1, 10, 12)]


def test_reaches_keep_their_beginning() -> None:
    found = reaches(state(p0=(2, 10)), "orders", {tp(0): 10, tp(1): 7}, {tp(0): 20, tp(1): 8, tp(0, "x"): 9})
    assert found == {0: Reach(2, 20), 1: Reach(7, 8)}


@pytest.mark.parametrize(
    ("cluster", "topic_id", "begin", "end", "says", "is_loss"),
    [
        ("cluster", ID, 0, 12, None, False),
        ("", ID, 10, 12, None, False),
        ("other", ID, 0, 12, "of another cluster", False),
        ("cluster", bytes(16 * [7]), 0, 12, "was deleted and created again", False),
        ("cluster", ID, 0, 9, "ends at offset 9 now, and was archived up to 10", False),
        ("cluster", ID, 11, 12, "offsets 10 to 10 of orders-0 were deleted before they were archived", True),
    ],
)
def test_what_speaks_against_going_on(
    cluster: str, topic_id: bytes, begin: int, end: int, says: str | None, is_loss: bool
) -> None:
    found = refusals(
        {"orders": state(p0=(0, 10))}, cluster, {tp(0): begin}, Offsets({tp(0): end}, {"orders": topic_id}), "lake"
    )
    if says is None:
        assert found == []
    else:
        (one,) = found
        assert says in one.sentence and one.is_loss == is_loss


# --- restore ----------------------------------------------------------------------------------------------------------


def test_chunks_of_a_restore_cover_the_lake_once_whatever_happens_in_between() -> None:
    lake = state(p0=(5, 25), p1=(0, 10))
    restore = new_restore("lake", "orders", "orders", "id")
    written: list[tuple[int, int]] = []
    while (ready := with_next_chunk(restore, lake, 7)) is not None:
        again = with_next_chunk(ready, state(p0=(5, 99), p1=(0, 99)), 7)
        assert again == ready, "a chunk that was written down stays, also in a lake that has grown"
        assert ready.chunk_ends is not None
        for partition, start in restore_starts(ready, lake).items():
            written += [(partition, offset) for offset in range(start, ready.chunk_ends[partition])]
        done = with_chunk_done(ready, 7)
        assert done.chunk == ready.chunk + 1 and done.app_id == ready.app_id
        restore = done
    assert sorted(written) == [(0, offset) for offset in range(5, 25)] + [(1, offset) for offset in range(10)]
    for partition in (0, 1):
        offsets = [offset for number, offset in written if number == partition]
        assert offsets == sorted(offsets), "a later chunk is behind an earlier one"
    grown = state(p0=(5, 26), p1=(0, 10), p2=(3, 4))
    ready = with_next_chunk(restore, grown, 7)
    assert ready is not None and ready.chunk_ends == {0: 26, 1: 10, 2: 4}
    assert restore_starts(ready, grown) == {0: 25, 1: 10, 2: 3}
