"""The pytest plugin, used as a project that has just installed Headpond uses it: by nothing but the fixtures' names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.traces import is_alive, is_listening
from support.waiting import eventually

pytest_plugins = ["pytester"]

NOTE = '''
import os

def note(broker, name="note"):
    """What the test outside wants to know of a broker in here."""
    path = os.path.join(os.environ["NOTES"], f"{name}-{os.getpid()}-{broker.pid}")
    with open(path, "w") as file:
        file.write(f"{broker.pid} {broker.bootstrap_servers}")
'''


@pytest.fixture(autouse=True)
def surroundings(pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder that only the brokers in here use."""
    for name in ("temporary", "notes"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(noting=NOTE)


def noted(tmp_path: Path) -> list[tuple[int, str]]:
    texts = [path.read_text().split() for path in sorted((tmp_path / "notes").iterdir())]
    return [(int(pid), address) for pid, address in texts]


def assert_gone(tmp_path: Path, *, brokers: int) -> None:
    found = noted(tmp_path)
    assert len({pid for pid, _ in found}) == brokers
    assert not any(is_alive(pid) or is_listening(address) for pid, address in found)
    assert left_in(tmp_path) == []


def left_in(tmp_path: Path) -> list[str]:
    """pytest keeps its own folders of the last runs."""
    return [name for name in os.listdir(tmp_path / "temporary") if not name.startswith("pytest-of-")]


def test_one_broker_is_shared_and_a_fresh_one_is_empty(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        """
        import pytest
        from noting import note
        from headpond.testing import TopicNotCreated

        def test_first(headpond_broker):
            note(headpond_broker)
            headpond_broker.create_topic("orders")

        def test_second(headpond_broker):
            note(headpond_broker)
            with pytest.raises(TopicNotCreated):
                headpond_broker.create_topic("orders")

        @pytest.mark.parametrize("time", [1, 2])
        def test_fresh(fresh_headpond_broker, headpond_broker, time):
            note(fresh_headpond_broker)
            assert fresh_headpond_broker.pid != headpond_broker.pid
            fresh_headpond_broker.create_topic("orders")
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=4)
    assert_gone(tmp_path, brokers=3)


def test_a_failing_test_leaves_nothing(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        """
        from noting import note

        def test_failing(headpond_broker, fresh_headpond_broker):
            note(headpond_broker)
            note(fresh_headpond_broker)
            assert False

        def test_leaving_it_dead(fresh_headpond_broker):
            note(fresh_headpond_broker)
            fresh_headpond_broker.kill()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1, failed=1)
    assert_gone(tmp_path, brokers=3)


def test_a_run_that_is_killed_leaves_nothing(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        """
        import time
        from noting import note

        def test_endless(headpond_broker, fresh_headpond_broker):
            note(headpond_broker)
            note(fresh_headpond_broker)
            time.sleep(1000)
        """
    )
    run = subprocess.Popen([sys.executable, "-m", "pytest"], stdout=subprocess.DEVNULL, cwd=pytester.path)
    try:
        eventually(lambda: len(noted(tmp_path)) == 2, retry_on=(ValueError,))
    finally:
        run.kill()
        run.wait(30)
    eventually(lambda: not any(is_alive(p) or is_listening(a) for p, a in noted(tmp_path)), what="their end")
    eventually(lambda: not left_in(tmp_path), what="the end of their folders")
    assert_gone(tmp_path, brokers=2)


def test_each_worker_of_xdist_has_a_broker_of_its_own(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(
        """
        import pytest
        from noting import note

        @pytest.mark.parametrize("turn", range(8))
        def test_shared(headpond_broker, worker_id, turn):
            note(headpond_broker, worker_id)
            headpond_broker.create_topic(f"{worker_id}-{turn}")

        @pytest.mark.parametrize("turn", range(2))
        def test_fresh(fresh_headpond_broker, turn):
            fresh_headpond_broker.create_topic("orders")
        """
    )
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=10)
    names = {path.name.split("-")[0] for path in (tmp_path / "notes").iterdir()}
    assert names == {"gw0", "gw1"}
    assert_gone(tmp_path, brokers=2)


def test_settings_come_from_a_fixture_and_from_a_marker(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def headpond_settings():
            return {"num.partitions": 3, "headpond.flush": "os"}
        """
    )
    pytester.makepyfile(
        """
        import pytest

        def test_shared(headpond_broker):
            assert headpond_broker.settings == {"num.partitions": 3, "headpond.flush": "os"}

        @pytest.mark.headpond(settings={"num.partitions": 5, "broker.id": 4})
        class TestFresh:
            @pytest.mark.headpond({"num.partitions": 7})
            def test_fresh(self, fresh_headpond_broker):
                wanted = {"num.partitions": 7, "headpond.flush": "os", "broker.id": 4}
                assert fresh_headpond_broker.settings == wanted
                assert "Broker 4," in fresh_headpond_broker.logs()
        """
    )
    pytester.runpytest_subprocess("--strict-markers", "-W", "error").assert_outcomes(passed=2)


def test_a_marker_without_effect_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        ran = []
        marked = pytest.mark.headpond(settings={"num.partitions": 5})

        @marked
        def test_without_a_broker():
            ran.append("without a broker")

        @marked
        def test_with_the_shared_one(headpond_broker):
            ran.append("with the shared one")

        @marked
        def test_with_request(request):
            ran.append("with request")

        @marked
        class TestClass:
            def test_of_a_class_with_the_shared_one(self, headpond_broker):
                ran.append("of a class")

            def test_of_a_class_without_a_broker(self):
                pass

            def test_of_a_class(self, fresh_headpond_broker):
                assert fresh_headpond_broker.settings["num.partitions"] == 5

        @marked
        def test_that_asks_by_name(request):
            assert request.getfixturevalue("fresh_headpond_broker").settings["num.partitions"] == 5

        @marked
        @pytest.mark.usefixtures("fresh_headpond_broker")
        def test_that_uses_it_unseen():
            pass

        def test_what_ran():
            assert ran == ["with request"]
        """
    )
    result = pytester.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=5, failed=4)
    result.stdout.fnmatch_lines(
        [
            "the marker 'headpond' has no effect on test_without_a_broker: its settings are those of the fixture "
            "fresh_headpond_broker, which the test does not use. For headpond_broker, override the fixture *settings",
            "*no effect on test_with_the_shared_one: *",
            "*no effect on test_with_request: *",
            "*no effect on test_of_a_class_with_the_shared_one: *",
        ]
    )


def test_a_marker_of_a_module_without_effect_on_a_test_s_topic_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from headpond.testing import Record

        pytestmark = pytest.mark.headpond(settings={"num.partitions": 5})

        def test_with_a_topic_of_the_shared_one(headpond_topic):
            pass

        def test_with_a_topic_of_its_own_broker(headpond_topic, fresh_headpond_broker):
            fresh_headpond_broker.produce(headpond_topic, [Record("x", partition=4)])

        def test_without_a_broker():
            pass
        """
    )
    result = pytester.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*no effect on test_with_a_topic_of_the_shared_one: *"])


def test_a_marker_on_what_another_plugin_collects_is_without_effect(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        class Line(pytest.Item):
            def runtest(self):
                pass

        class Lines(pytest.File):
            def collect(self):
                for name in ("plain", "marked"):
                    line = Line.from_parent(self, name=name)
                    if name == "marked":
                        line.add_marker(pytest.mark.headpond(settings={}))
                    yield line

        def pytest_collect_file(file_path, parent):
            return Lines.from_parent(parent, path=file_path) if file_path.suffix == ".lines" else None
        """
    )
    pytester.makefile(".lines", test_lines="")
    result = pytester.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the marker 'headpond' has no effect on marked: *"])


def test_a_marker_that_says_nothing_is_told_how_to(pytester: pytest.Pytester) -> None:
    markers = ["headpond", "headpond()", "headpond(setting={})", "headpond('a=1')"]
    tests = [
        f"@pytest.mark.{marker}\ndef test_{number}(fresh_headpond_broker):\n    pass\n"
        for number, marker in enumerate(markers)
    ]
    pytester.makepyfile("import pytest\n" + "\n".join(tests))
    result = pytester.runpytest_subprocess("-rN")  # without the summary, which has the sentences again under CI
    result.assert_outcomes(errors=len(markers))
    usage = 'should be like @pytest.mark.headpond(settings={"num.partitions": 3})'
    assert len([line for line in result.outlines if line.endswith(usage)]) == len(markers)


def test_each_test_gets_a_topic_of_its_own_in_the_broker_that_it_uses(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def headpond_settings():
            return {"num.partitions": 3}
        """
    )
    pytester.makepyfile(
        """
        import pytest
        from headpond.testing import Record

        seen = set()

        @pytest.mark.parametrize("name", ["a name: with / odd characters", "x" * 300])
        def test_shared(headpond_broker, headpond_topic, name):
            headpond_broker.produce(headpond_topic, [Record("x", partition=2)])
            assert len(headpond_broker.consume(headpond_topic)) == 1
            assert headpond_topic.startswith("test-shared-") and headpond_topic not in seen
            seen.add(headpond_topic)

        def test_fresh(headpond_topic, fresh_headpond_broker):
            assert fresh_headpond_broker.consume(headpond_topic) == []

        def test_by_itself(headpond_topic):
            assert isinstance(headpond_topic, str)
        """
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=4)


def test_a_failure_of_a_helper_points_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from headpond.testing import Record

        def test_a_value(headpond_broker):
            headpond_broker.produce("orders", [5])

        def test_a_topic(headpond_broker):
            headpond_broker.create_topic("no/name")

        def test_a_partition(headpond_broker, headpond_topic):
            headpond_broker.produce(headpond_topic, [Record("x", partition=7)])

        def test_records_that_do_not_come(headpond_broker, headpond_topic):
            headpond_broker.consume(headpond_topic, at_least=1, timeout_s=0.1)

        def test_a_stop(fresh_headpond_broker):
            fresh_headpond_broker.stop()
            fresh_headpond_broker.pid
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=5)
    places = [line for line in result.outlines if re.match(r"\S+\.py:\d+: ", line)]
    assert [place.partition(":")[0] for place in places] == [
        "test_a_failure_of_a_helper_points_at_the_line_of_the_test.py"
    ] * 5
    assert not [line for line in result.outlines if "src/headpond" in line]


def test_a_user_s_test_passes_a_strict_type_checker(tmp_path: Path) -> None:
    user = tmp_path / "test_user.py"
    user.write_text(
        """
import json

import pytest

from headpond.testing import Broker, BrokerFailed, Record, Sendable, StartFailed, StoredRecord, TopicNotCreated


@pytest.fixture(scope="session")
def headpond_settings() -> dict[str, object]:
    return {"num.partitions": 3}


def test_what_is_read_is_bytes(headpond_broker: Broker, headpond_topic: str) -> None:
    wanted: list[Sendable] = ['{"id": 1}', Record("2", key="k", headers={"a": "b"})]
    headpond_broker.produce(headpond_topic, wanted)
    for record in headpond_broker.consume(headpond_topic):
        assert record.value is not None
        text: str = record.value.decode()
        json.loads(record.value)
        key: bytes | None = record.key
        sources: list[str] = [name for name, value in record.headers if value is not None and value.decode()]
        ends: dict[tuple[str, int], int] = {(record.topic, record.partition): record.offset + 1}
        headpond_broker.produce("copy", [record])


@pytest.mark.headpond(settings={"message.max.bytes": 1000})
def test_orders(fresh_headpond_broker: Broker, headpond_topic: str) -> None:
    written: list[StoredRecord] = fresh_headpond_broker.produce(headpond_topic, ["a", b"b", ("k", None), Record("c")])
    assert [record.value for record in fresh_headpond_broker.consume(headpond_topic)] == [b"a", b"b", None, b"c"]
    with pytest.raises(TopicNotCreated) as refused:
        fresh_headpond_broker.create_topic(headpond_topic, cleanup_policy="compact")
    code: int = refused.value.code
    servers: str = fresh_headpond_broker.restart(kill=True).bootstrap_servers


async def in_a_block() -> None:
    async with Broker(settings={"num.partitions": 2}) as broker:
        reveal_type(broker)
    with Broker() as other:
        reveal_type(other.consume("t")[0].offset)
"""
    )
    wrong = tmp_path / "test_wrong.py"
    wrong.write_text(
        """
from headpond.testing import Broker, Brokers


def test_orders(headpond_broker: Broker) -> None:
    headpond_broker.produce("orders", 5)
    headpond_broker.produce("orders", [5])
"""
    )
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file",
            os.devnull,
            "--cache-dir",
            str(tmp_path),
            user,
            wrong,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in checked.stdout.splitlines() if line.startswith("test_")]
    assert [line for line in lines if line.startswith("test_user.py")] == [
        'test_user.py:39: note: Revealed type is "headpond.testing.broker.Broker"',
        'test_user.py:41: note: Revealed type is "int"',
    ], checked.stdout
    errors = [line.split(":")[1] for line in lines if line.startswith("test_wrong.py") and ": error:" in line]
    assert errors == ["2", "6", "7"], checked.stdout


def test_a_start_that_fails_shows_what_the_broker_said(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.headpond(settings={"num.partition": 5})
        def test_it(fresh_headpond_broker):
            pass
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*StartFailed: the broker ended with 2, it said:", "*did you mean num.partitions?"])
    assert left_in(tmp_path) == []


def test_nothing_is_written_where_the_run_was_started(pytester: pytest.Pytester, tmp_path: Path) -> None:
    test = pytester.makepyfile("def test_it(fresh_headpond_broker): fresh_headpond_broker.create_topic('orders')")
    here = tmp_path / "read-only"
    here.mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", str(test)],
        cwd=here,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert os.listdir(here) == []  # also where root may write


def test_a_project_that_does_not_use_it_pays_for_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.get_plugin("headpond").__name__ == "headpond.testing.plugin"
            ours = {name for name in sys.modules if name.partition(".")[0] == "headpond"}
            assert ours == {"headpond", "headpond.testing", "headpond.testing.plugin"}
            assert not {"msgspec", "uvloop"} & sys.modules.keys()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
