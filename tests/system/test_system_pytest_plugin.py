"""The pytest plugin, used as a project that has just installed Headpond uses it: by nothing but the fixtures' names."""

from __future__ import annotations

import os
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

        from headpond.testing import Broker

        pytestmark = pytest.mark.headpond(settings={"num.partitions": 5, "broker.id": 4})

        def test_shared(headpond_broker):
            assert headpond_broker.settings == {**Broker.DEFAULTS, "num.partitions": 3, "headpond.flush": "os"}

        @pytest.mark.headpond(settings={"num.partitions": 7})
        def test_fresh(fresh_headpond_broker):
            wanted = {**Broker.DEFAULTS, "num.partitions": 7, "headpond.flush": "os", "broker.id": 4}
            assert fresh_headpond_broker.settings == wanted
            assert "Broker 4," in fresh_headpond_broker.logs()
        """
    )
    pytester.runpytest_subprocess("--strict-markers", "-W", "error").assert_outcomes(passed=2)


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
