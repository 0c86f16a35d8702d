"""What the options of ``headpond groups`` and ``headpond transactions`` mean, and how partitions are told."""

from __future__ import annotations

import argparse

import pytest

from headpond.cli.common.arguments import offset_number
from headpond.cli.groups.command import shift_number, topic_option
from headpond.cli.groups.show import PartitionLag, partitions_in_words
from headpond.cli.main import main
from headpond.client.group_admin import GroupOffset
from headpond.model import TopicPartition

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("orders", ("orders", None)),
        ("orders:0", ("orders", [0])),
        ("orders:5,0,3-4,3", ("orders", [0, 3, 4, 5])),
    ],
)
def test_a_topic_comes_with_partitions_or_without(text: str, means: tuple[str, list[int] | None]) -> None:
    assert topic_option(text) == means


@pytest.mark.parametrize("text", ["orders:", "orders:a", "orders:4-3", "orders:1,,2", "orders:-1", "o:0-999999999"])
def test_partitions_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="TOPIC:0,3-5"):
        topic_option(text)


def test_a_topic_has_a_name() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="the name of a topic can't be empty"):
        topic_option(":1")


def test_offsets_are_not_negative_and_shifts_may_be() -> None:
    assert (offset_number("42"), shift_number("-42"), shift_number("+1")) == (42, -42, 1)
    for parse, wrong in [(offset_number, "-1"), (offset_number, str(1 << 63)), (shift_number, "x"), (shift_number, "")]:
        with pytest.raises(argparse.ArgumentTypeError):
            parse(wrong)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["groups", "reset-offsets", "g", "--topic", "t"], "one of the arguments"),
        (["groups", "reset-offsets", "g", "--to-latest"], "one of the arguments"),
        (["groups", "reset-offsets", "g", "--topic", "t", "--to-latest", "--to-earliest"], "not allowed"),
        (["groups", "reset-offsets", "g", "--topic", "t", "--all-topics", "--to-latest"], "not allowed"),
        (["groups", "reset-offset", "g"], "did you mean reset-offsets?"),
        (["groups", "delete"], "NAME is missing"),
        (["transactions", "abort"], "give a transactional id"),
        (["transactions", "abort", "x", "--topic", "t"], "not both"),
        (["transactions", "abort", "--topic", "t", "--partition", "0"], "all of --topic"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_tried(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code  # type: ignore[assignment]
    assert code == 2
    assert says in capsys.readouterr().err


def test_partitions_are_told_in_spans() -> None:
    tps = [TopicPartition("users", 4), *(TopicPartition("orders", number) for number in (2, 0, 1, 7, 9, 8))]
    assert partitions_in_words(tps) == "orders 0-2 7-9, users 4"
    assert partitions_in_words([]) == ""


@pytest.mark.parametrize(
    ("committed", "end", "lag"),
    [(3, 10, 7), (10, 10, 0), (12, 10, 0), (None, 10, None), (3, None, None)],
    ids=["behind", "at the end", "beyond it", "nothing committed", "topic gone"],
)
def test_lag_is_what_lies_between_and_unknown_where_one_of_them_is(
    committed: int | None, end: int | None, lag: int | None
) -> None:
    offset = None if committed is None else GroupOffset(committed, -1, "")
    assert PartitionLag(ORDERS, offset, end, None).lag == lag
