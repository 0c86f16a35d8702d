"""The comparison itself: it sees what differs, keeps what a run made up apart, and loses nothing in a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.protocol.schema.metadata import MetadataResponse
from parity import recording
from parity.notation import Script, ask, batch, resolve
from parity.plain import Plain, make_request, plain
from parity.player import Seen, steps_of
from parity.recording import Difference, differences, flat, load, recorded, save
from parity.surroundings import Peer, Surroundings

PEER = Peer("127.0.0.1:9092", Path("/data"), "the-cluster")
AN_ID = bytes.fromhex("dd79016f58e0430c8b6c66bfb8b96d0d")


def one(answer: Plain) -> recording.Recorded:
    return recorded([Seen("step", 3, answer)])


@pytest.mark.parametrize(
    ("kafka", "ours", "path"),
    [
        ({"error_code": 3}, {}, "error_code"),
        ({}, {"error_code": 3}, "error_code"),
        ({"topics": [{"a": 1}]}, {"topics": [{"a": 2}]}, "topics[0].a"),
        ({"topics": [{"a": 1}, {"a": 2}]}, {"topics": [{"a": 1}]}, "topics"),
        ({"topics": [{"name": "x"}, {"name": "y"}]}, {"topics": [{"name": "y"}, {"name": "x"}]}, "topics.order"),
        ({"topics": [{"name": "x"}, {"name": "y"}]}, {"topics": [{"name": "x"}]}, "topics[y]"),
        ({"value": None}, {"value": ""}, "value"),
        ({"flag": True}, {"flag": 1}, "flag"),
        ({"connection": "closed"}, {"error_code": 42}, "connection"),
    ],
)
def test_a_difference_is_found_at_its_place(kafka: Plain, ours: Plain, path: str) -> None:
    found = differences(one(kafka), one(ours))
    assert path in [each.path for each in found]
    assert {(each.step, each.version) for each in found} == {("step", 3)}
    assert not differences(one(kafka), one(kafka))


def test_a_step_that_was_not_played_is_a_difference() -> None:
    assert differences(one({}), {}) == [Difference("step", 3, "", {}, recording.MISSING)]


def test_a_recording_keeps_every_answer_and_versions_share_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "FOLDER", tmp_path)
    seen = [Seen("a", v, {"n": v >= 7}) for v in (1, 2, 3, 7, 9)] + [Seen("b", None, {"x": [1, None, "é"]})]
    save("family", {"script": recorded(seen)})
    kept = load("family")["script"]
    assert [Seen(*each) for each in flat(kept)] == seen
    assert list(kept["a"]) == ["1-3", "7,9"]


def test_what_a_run_made_up_is_put_back_and_nothing_else() -> None:
    variables = {"t": "the-topic", "t.id": AN_ID, "pid": 4_000, "port": 9_092}
    around = Surroundings(PEER, variables, began_ms=1_700_000_000_000)
    stranger = bytes(range(16))
    answer = {
        "topics": [
            {"topic_id": AN_ID},
            {"topic_id": stranger},
            {"topic_id": AN_ID[::-1]},
            {"topic_id": AN_ID[1:] + b"\xff"},
        ],
        "error_message": "Topic 'the-topic' exists",
        "producer_id": 4_000,
        "other_number": 4_000,
        "log_append_time_ms": 17,
        "port": 9_092,
    }
    assert around.put_back(answer) == {
        "topics": [
            {"topic_id": "${t.id}"},
            {"topic_id": stranger.hex()},
            {"topic_id": AN_ID[::-1].hex()},
            {"topic_id": (AN_ID[1:] + b"\xff").hex()},
        ],
        "error_message": "Topic '${t}' exists",
        "producer_id": "${pid}",
        "other_number": 4_000,
        "log_append_time_ms": 17,
        "port": "${port}",
    }


def test_only_the_fields_of_a_version_are_asked_and_answers_leave_out_defaults() -> None:
    fields = {"topics": [{"name": "x", "topic_id": AN_ID}], "allow_auto_topic_creation": False}
    assert make_request("Metadata", 12, fields).topics[0].topic_id == AN_ID
    old = make_request("Metadata", 1, fields)
    assert (old.topics[0].name, old.topics[0].topic_id, old.allow_auto_topic_creation) == ("x", bytes(16), True)
    with pytest.raises(AssertionError, match="has no"):
        make_request("Metadata", 1, {"no_such_field": 1})
    assert plain(MetadataResponse(controller_id=7, throttle_time_ms=0), 1) == {"controller_id": 7}


def test_variables_are_filled_in_to_the_last_leaf_and_must_be_known() -> None:
    asked = {"a": ["${t}", {"b": "x-${t}-y"}], "n": "${pid}", "r": batch("v", producer_id="${pid}")}
    filled = resolve(asked, {"t": "T", "pid": 5})
    assert (filled["a"], filled["n"]) == (["T", {"b": "x-T-y"}], 5)
    assert filled["r"][43:51] == (5).to_bytes(8, "big")
    with pytest.raises(AssertionError, match="no such variable"):
        resolve("${nobody}", {})


def test_steps_follow_the_version_that_their_script_is_about() -> None:
    script = Script(
        "s", [ask("Metadata"), ask("Metadata"), ask("ListOffsets"), ask("ApiVersions", versions=[0, 3])], "Metadata"
    )
    assert [(label, version) for label, version, _ in steps_of(script, 4)] == [
        ("Metadata", 4),
        ("Metadata (2)", 4),
        ("ListOffsets", 11),
        ("ApiVersions", 0),
        ("ApiVersions", 3),
    ]
