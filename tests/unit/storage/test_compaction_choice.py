"""Which log is compacted, how much of it, and which segments become one."""

from __future__ import annotations

import msgspec
import pytest

from headpond.config.log import LogConfig
from headpond.storage.compaction.choice import Dirt, Unknown, find_dirt
from headpond.storage.compaction.grouping import group_segments
from headpond.storage.compaction.job import SegmentToClean
from headpond.storage.log.segment import Segment, SegmentLimits

NOW_MS = 1_000_000
CONFIG = LogConfig(compacts=True, deletes=False)


def segments(*sizes: int, timestamp: int | None = 500_000) -> list[Segment]:
    """Of ten offsets each; the last one is the active one."""
    made = []
    for slot, size_bytes in enumerate(sizes):
        segment = Segment(10 * slot, created_ms=0)
        segment.end_offset, segment.size_bytes = 10 * slot + 10, size_bytes
        segment.max_timestamp = segment.first_timestamp = None if timestamp is None else timestamp + slot * 100_000
        made.append(segment)
    return made


def look(found: list[Segment], config: LogConfig = CONFIG, **changes: int | None) -> Dirt | Unknown:
    fields: dict[str, int | None] = {
        "cleaned_end_offset": None,
        "log_start_offset": 0,
        "log_end_offset": 10 * len(found),
        "limit_offset": 10 * len(found),
        "now_ms": NOW_MS,
        **changes,
    }
    return find_dirt(found, config, **fields)  # type: ignore[arg-type]


def dirt(found: list[Segment], config: LogConfig = CONFIG, **changes: int | None) -> Dirt:
    result = look(found, config, **changes)
    assert isinstance(result, Dirt)
    return result


def bases(result: Dirt) -> list[int]:
    return [segment.base_offset for segment in result.segments]


def test_everything_but_the_active_segment_is_dirty_at_first() -> None:
    result = dirt(segments(100, 100, 50))
    assert (bases(result), result.clean_bytes, result.dirty_bytes, result.ratio) == ([0, 10], 0, 200, 1.0)


def test_what_was_cleaned_counts_as_clean_and_is_gone_through_again() -> None:
    result = dirt(segments(300, 100, 50), cleaned_end_offset=10)
    assert (bases(result), result.clean_bytes, result.dirty_bytes, result.ratio) == ([0, 10], 300, 100, 0.25)
    assert not result.is_worth_it(CONFIG)
    assert result.is_worth_it(msgspec.structs.replace(CONFIG, min_cleanable_dirty_ratio=0.2))


def test_a_log_without_dirt_is_never_worth_it() -> None:
    none_asked = msgspec.structs.replace(CONFIG, min_cleanable_dirty_ratio=0.0, max_compaction_lag_ms=1)
    assert not dirt(segments(300, 50), none_asked, cleaned_end_offset=10).is_worth_it(none_asked)


@pytest.mark.parametrize("cleaned_end_offset", [5, 99], ids=["below the log start", "above the log end"])
def test_a_checkpoint_that_can_not_be_means_that_all_is_dirty(cleaned_end_offset: int) -> None:
    result = dirt(segments(100, 100, 50), cleaned_end_offset=cleaned_end_offset, log_start_offset=10)
    assert (bases(result), result.first_dirty_offset) == ([10], 10)


def test_only_whole_segments_below_the_limit_are_cleaned() -> None:
    assert bases(dirt(segments(1, 1, 1, 1), limit_offset=29)) == [0, 10]
    assert bases(dirt(segments(1, 1, 1, 1), limit_offset=30)) == [0, 10, 20]


def test_young_segments_and_all_behind_them_wait() -> None:
    config = msgspec.structs.replace(CONFIG, min_compaction_lag_ms=400_000)
    assert bases(dirt(segments(1, 1, 1, 1), config)) == [0, 10]  # 500,000 and 600,000 against 1,000,000 - 400,000
    assert isinstance(look(segments(1, 1, timestamp=None), config), Unknown)


def test_a_segment_that_waited_too_long_is_cleaned_whatever_the_ratio() -> None:
    config = msgspec.structs.replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=450_000)
    assert dirt(segments(300, 100, 50), config).is_worth_it(config)
    late = dirt(segments(300, 100, 50), config, cleaned_end_offset=10)  # the dirty one began at 600,000
    assert not late.is_overdue and not late.is_worth_it(config)
    assert isinstance(look(segments(1, 1, timestamp=None), config), Unknown)


def test_a_compacted_topic_rolls_by_its_largest_lag() -> None:
    config = msgspec.structs.replace(CONFIG, max_compaction_lag_ms=5_000)
    assert SegmentLimits.of(config).age_ms_max == 5_000
    assert SegmentLimits.of(msgspec.structs.replace(config, compacts=False)).age_ms_max == config.segment_ms


def grouped(*found: SegmentToClean, bytes_max: int = 100, index_bytes_max: int = 1 << 20) -> list[list[int]]:
    groups = group_segments(found, bytes_max=bytes_max, index_bytes_max=index_bytes_max, interval_bytes=4_096)
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_become_one_as_long_as_they_fit() -> None:
    found = [SegmentToClean(n, n + 1, size) for n, size in enumerate([60, 40, 1, 99, 300, 10, 10])]
    assert grouped(*found) == [[0, 1], [2, 3], [4], [5, 6]]


def test_a_group_never_outgrows_relative_offsets_or_its_index() -> None:
    far = 1 << 31
    assert grouped(SegmentToClean(0, 10, 1), SegmentToClean(10, far + 1, 1)) == [[0], [10]]
    assert grouped(SegmentToClean(0, 10, 1), SegmentToClean(10, far, 1)) == [[0, 10]]
    large = [SegmentToClean(n, n + 1, 5_000) for n in range(4)]
    assert grouped(*large, bytes_max=1 << 30, index_bytes_max=48) == [[0, 1], [2, 3]]
