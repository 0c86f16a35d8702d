"""Offsets as Spark keeps them: the connector's JSON, one text for one meaning, and the ids of topics."""

from __future__ import annotations

import json

import pytest

from headpond.model import TopicPartition
from headpond.spark.kafka.errors import WrongCheckpoint
from headpond.spark.reading.offsets import Offsets, check_first, read_document, start_document

ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))


def tp(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def test_offsets_are_the_connectors_json_with_partitions_in_the_order_of_their_numbers() -> None:
    offsets = Offsets({tp("b-10"): 5, tp("b-9"): 4, tp("a-0"): 3})
    assert json.dumps(offsets.document()) == '{"a": {"0": 3}, "b": {"9": 4, "10": 5}}'


def test_the_same_offsets_are_the_same_text_whatever_order_they_came_in() -> None:
    one = Offsets({tp("a-0"): 1, tp("b-1"): 2, tp("b-0"): 3}, {"a": ID, "b": OTHER_ID})
    other = Offsets({tp("b-0"): 3, tp("b-1"): 2, tp("a-0"): 1}, {"b": OTHER_ID, "a": ID})
    assert json.dumps(one.document()) == json.dumps(other.document())


def test_an_id_is_an_entry_without_partitions_which_readers_of_the_form_pass_over() -> None:
    document = Offsets({tp("orders-0"): 7}, {"orders": ID}).document()
    assert list(document) == ["orders", "orders#AAECAwQFBgcICQoLDA0ODw"]
    flat = {(topic, int(partition)): offset for topic, parts in document.items() for partition, offset in parts.items()}
    assert flat == {("orders", 0): 7}


def test_offsets_come_back_as_they_were_written() -> None:
    offsets = Offsets({tp("a-0"): 0, tp("a.b_c-1"): 1 << 62}, {"a": ID, "a.b_c": OTHER_ID})
    assert read_document(json.loads(json.dumps(offsets.document()))) == offsets


def test_the_connectors_own_checkpoint_is_understood() -> None:
    assert read_document(json.loads('{"orders":{"1":5,"0":3}}')) == Offsets({tp("orders-0"): 3, tp("orders-1"): 5})


def test_a_query_that_has_not_begun_says_so_and_always_in_the_same_words() -> None:
    assert start_document() == start_document()
    assert read_document(start_document()) is None


def test_where_a_query_begins_is_marked_and_comes_back_so() -> None:
    offsets = Offsets({tp("a-0"): 5}, is_begin=True)
    assert json.dumps(offsets.document()) == '{"a": {"0": 5}, "#begin": {}}'
    assert read_document(offsets.document()) == offsets


@pytest.mark.parametrize(
    "document",
    [{"a": {"0": 5}, "a#AAECAwQFBgcICQoLDA0ODw": {}}, {"a": {"0": 5}, "#begin": {}}, {"a": {"0": 5}, "#start": {}}, {}],
    ids=["with ids", "marked", "from the start", "nothing to read"],
)
def test_a_first_batch_of_ours_is_known_by_its_ids_or_its_mark(document: object) -> None:
    end = read_document(document)
    assert end is not None
    check_first(end)


def test_a_first_batch_of_another_source_is_refused_in_one_sentence() -> None:
    with pytest.raises(WrongCheckpoint, match=r'finish it with format\("kafka"\), or give this query a checkpointLoc'):
        check_first(Offsets({tp("a-0"): 5}))


def test_marks_do_not_move_a_query() -> None:
    marked = Offsets({tp("a-0"): 5}, {"a": ID}, is_begin=True)
    assert marked.is_same_place(Offsets({tp("a-0"): 5}, {"a": ID}))
    assert not marked.is_same_place(Offsets({tp("a-0"): 6}, {"a": ID}))
    assert not marked.is_same_place(Offsets({tp("a-0"): 5}, {"a": OTHER_ID}))


def test_no_partitions_is_not_the_same_as_not_begun() -> None:
    assert read_document({}) == Offsets({})


@pytest.mark.parametrize(
    "document",
    [
        {"offset": 5},
        {"orders": {"0": "5"}},
        {"orders": {"x": 5}},
        {"orders": {"0": -1}},
        {"orders": {"0": True}},
        {"orders#short": {}},
        ["orders"],
        5,
    ],
)
def test_a_checkpoint_of_another_source_is_refused_in_one_sentence(document: object) -> None:
    with pytest.raises(WrongCheckpoint, match="give this query a checkpointLocation of its own"):
        read_document(document)


def test_topics_are_told_apart_by_their_ids_where_both_are_known() -> None:
    mine = Offsets({}, {"a": ID})
    assert mine.is_same_topic("a", Offsets({}, {"a": ID}))
    assert not mine.is_same_topic("a", Offsets({}, {"a": OTHER_ID}))
    assert mine.is_same_topic("a", Offsets({}))
