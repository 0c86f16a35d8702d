"""Nothing is left of a broker under test, whatever happens to the process that owns it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from headpond.testing import Broker
from headpond.testing.command import headpond_environment
from headpond.testing.guard import Guard
from support.traces import is_alive, is_listening
from support.variants import kinds, rare
from support.waiting import eventually

SAY = "print(broker.pid, broker.bootstrap_servers, *MORE, flush=True)\n"


class Owned(NamedTuple):
    owner: subprocess.Popen[str]
    broker_pid: int
    address: str
    more: list[str]
    folder: Path

    def wait_until_gone(self) -> None:
        eventually(lambda: not is_alive(self.broker_pid), what="the end of the broker")
        eventually(lambda: not is_listening(self.address), what="the end of its last thread, which holds the port")
        eventually(lambda: not os.listdir(self.folder), what=lambda: f"an empty folder, not {os.listdir(self.folder)}")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Callable[[str], Owned]]:
    """Another process that runs ``script``, with a temporary folder that only its broker uses."""
    owners: list[subprocess.Popen[str]] = []

    def start(script: str) -> Owned:
        folder = tmp_path / f"temporary {len(owners)}"  # with a space, as people have
        folder.mkdir()
        owner = subprocess.Popen(
            [sys.executable, "-c", f"import os, sys, time\nfrom headpond.testing import Broker\nMORE = []\n{script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=headpond_environment({"TMPDIR": str(folder)}),
            text=True,
            start_new_session=True,
        )
        owners.append(owner)
        assert owner.stdout is not None
        pid, address, *more = owner.stdout.readline().split()
        return Owned(owner, int(pid), address, more, folder)

    yield start
    for owner in owners:
        with owner:
            owner.kill()


BLOCK = f"with Broker() as broker:\n    broker.create_topic('t')\n    {SAY}    sys.stdin.read()\n"


def test_when_its_owner_is_killed(own: Callable[[str], Owned]) -> None:
    owned = own(BLOCK)
    assert is_alive(owned.broker_pid) and is_listening(owned.address) and os.listdir(owned.folder)
    owned.owner.kill()
    owned.wait_until_gone()


@pytest.mark.parametrize("closed", [[0], rare([0, 1]), [0, 1, 2], rare([1, 2])])
def test_an_owner_without_standard_streams_has_a_broker_that_goes_with_it(
    own: Callable[[str], Owned], closed: list[int]
) -> None:
    """As under cron, in a daemon, and with ``<&-``: the owner's next files get these numbers."""
    owned = own(
        f"said = os.fdopen(os.dup(1), 'w')\nfor number in {closed}: os.close(number)\n"
        f"with Broker() as broker:\n    broker.restart(kill=True)\n    broker.create_topic('t')\n"
        f"    {SAY.replace('flush', 'file=said, flush')}    time.sleep(1000)\n"
    )
    assert is_alive(owned.broker_pid) and is_listening(owned.address)
    owned.owner.kill()
    owned.wait_until_gone()


def test_when_the_owner_s_whole_process_group_is_killed(own: Callable[[str], Owned]) -> None:
    owned = own(BLOCK)
    os.killpg(owned.owner.pid, signal.SIGKILL)
    owned.wait_until_gone()


WITH_ITS_GUARD = BLOCK.replace("*MORE", "broker._guard._shell.pid")
WITH_THE_OWNER_LAST = ("guard", "broker", "owner")


@pytest.mark.parametrize("what", [signal.SIGKILL, signal.SIGSTOP])
def test_when_its_owner_is_killed_and_its_guard_does_nothing(own: Callable[[str], Owned], what: signal.Signals) -> None:
    owned = own(WITH_ITS_GUARD)
    guard = int(owned.more[0])
    os.kill(guard, what)
    try:
        owned.owner.kill()
        owned.wait_until_gone()
    finally:
        if what is signal.SIGSTOP:
            os.kill(guard, signal.SIGKILL)


def test_when_the_guard_is_killed_and_the_owner_goes_on(own: Callable[[str], Owned]) -> None:
    owned = own(
        "with Broker() as broker:\n    guard = broker._guard._shell\n    guard.kill()\n    guard.wait()\n"
        f"    broker.restart()\n    broker.restart(kill=True)\n    {SAY}    sys.stdin.read()\n"
    )
    assert is_listening(owned.address)
    assert owned.owner.stdin is not None
    owned.owner.stdin.close()
    assert owned.owner.wait(30) == 0
    owned.wait_until_gone()


@pytest.mark.parametrize(
    "who",
    [
        ("owner", "broker"),
        ("guard", "broker"),
        rare(("broker", "guard")),
        rare(("broker", "owner")),
        rare(("guard", "owner")),
        rare(("owner", "guard")),
    ],
)
def test_when_two_of_owner_guard_and_broker_are_killed_the_third_cleans_up(
    own: Callable[[str], Owned], who: tuple[str, ...]
) -> None:
    owned = own(WITH_ITS_GUARD)
    kill(owned, who)
    if "owner" not in who:
        assert owned.owner.stdin is not None
        owned.owner.stdin.close()
        assert owned.owner.wait(30) == 0
    owned.wait_until_gone()


@pytest.mark.parametrize("who", kinds(permutations(("owner", "guard", "broker")), ordinary=[WITH_THE_OWNER_LAST]))
def test_when_owner_guard_and_broker_are_killed_at_once_their_folder_is_all_that_is_left(
    own: Callable[[str], Owned], who: tuple[str, ...]
) -> None:
    owned = own(WITH_ITS_GUARD)
    for pid in pids_of(owned).values():
        os.kill(pid, signal.SIGSTOP)  # nobody gets to do anything in between
    kill(owned, who)
    eventually(lambda: not any(map(is_alive, pids_of(owned).values())), what="the end of all three")
    eventually(lambda: not is_listening(owned.address), what="the end of the last thread, which holds the port")
    (left,) = os.listdir(owned.folder)
    assert left.startswith("headpond-"), "the guide says so"


def pids_of(owned: Owned) -> dict[str, int]:
    return {"owner": owned.owner.pid, "guard": int(owned.more[0]), "broker": owned.broker_pid}


def kill(owned: Owned, who: tuple[str, ...]) -> None:
    pids = pids_of(owned)
    for each in who:
        os.kill(pids[each], signal.SIGKILL)


def test_when_the_owner_is_killed_after_it_killed_its_broker(own: Callable[[str], Owned]) -> None:
    owned = own(
        f"broker = Broker().start()\npid = broker.pid\nbroker.kill()\n{SAY.replace('broker.pid', 'pid')}"
        "sys.stdin.read()\n"
    )
    assert os.listdir(owned.folder)
    owned.owner.kill()
    owned.wait_until_gone()


@pytest.mark.parametrize("way_out", ["pass", "os._exit(0)", "raise ValueError", "broker = None\nsys.stdin.read()"])
def test_when_its_owner_forgets_it(own: Callable[[str], Owned], way_out: str) -> None:
    owned = own(f"broker = Broker().start()\n{SAY}sys.stderr.close()\n{way_out}\n")
    owned.wait_until_gone()


def test_when_the_owner_has_children_that_live_on(own: Callable[[str], Owned]) -> None:
    owned = own(
        "with Broker() as broker:\n"
        "    if (child := os.fork()) == 0:\n"
        "        time.sleep(1000)\n"
        f"    MORE = [child]\n    {SAY}    sys.stdin.read()\n"
    )
    child = int(owned.more[0])
    try:
        owned.owner.kill()
        owned.wait_until_gone()
        assert is_alive(child), "it was to be there all the time"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_that_leaves_the_block_ends_nothing(own: Callable[[str], Owned]) -> None:
    owned = own(
        "with Broker() as broker:\n"
        "    if (child := os.fork()) == 0:\n"
        "        sys.exit(0)\n"  # runs __exit__ in the child
        f"    MORE = [os.waitpid(child, 0)[1]]\n    {SAY}    sys.stdin.read()\n"
    )
    assert owned.more == ["0"] and is_listening(owned.address)


def test_an_interrupt_of_the_owner_s_group_reaches_the_owner_alone(own: Callable[[str], Owned]) -> None:
    """Ctrl-C: the test's own teardown still finds its broker. (What runs in the background of a shell inherits that
    interrupts are ignored.)"""
    owned = own(
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nwith Broker() as broker:\n"
        f"    try:\n        {SAY}        sys.stdin.read()\n    except KeyboardInterrupt:\n"
        "        broker.create_topic('made-in-the-teardown')\n        print('made', flush=True)\n"
    )
    os.killpg(owned.owner.pid, signal.SIGINT)
    assert owned.owner.stdout is not None and owned.owner.stdout.read() == "made\n"
    owned.wait_until_gone()


def test_a_broker_outlives_the_thread_that_started_it(own: Callable[[str], Owned]) -> None:
    owned = own(
        "import threading\nbroker = Broker()\nthread = threading.Thread(target=broker.start)\n"
        f"thread.start()\nthread.join()\nbroker.create_topic('t')\n{SAY}sys.stdin.read()\n"
    )
    assert is_alive(owned.broker_pid) and is_listening(owned.address)


def test_what_the_broker_started_goes_with_it(tmp_path: Path) -> None:
    guard = Guard(None)
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = guard.launch(
            ["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], stdout=out, stderr=out, env=dict(os.environ), cwd="/"
        )
    worker = int(eventually(said.read_text, what="the worker's number"))
    assert is_alive(worker)
    guard.end()
    assert process.wait(30) == -signal.SIGKILL
    eventually(lambda: not is_alive(worker), what="the end of the worker")


def test_what_the_broker_started_goes_with_it_without_a_guard(tmp_path: Path) -> None:
    guard = Guard(None)
    said = tmp_path / "said"
    broker = "lambda *_, **__: print((child := subprocess.Popen(['sleep', '1000'])).pid, flush=True) or child.wait()"
    script = (
        f"import runpy, subprocess\nfrom headpond.testing import guarded\nrunpy.run_module = {broker}\nguarded.main()"
    )
    with said.open("wb") as out:
        process = guard.launch(
            [sys.executable, "-c", script, *guard.headpond()[-2:]],
            stdout=out,
            stderr=out,
            env=headpond_environment(),
            cwd="/",
        )
    worker = int(eventually(said.read_text, what="the worker's number"))
    guard._shell.kill()
    guard.end()
    assert process.wait(30) == -signal.SIGKILL
    eventually(lambda: not is_alive(worker), what="the end of the worker")


def test_a_number_that_is_free_again_is_not_killed(tmp_path: Path) -> None:
    guard = Guard(None)
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = guard.launch(
            ["/bin/sh", "-c", "echo here; sleep 1000"], stdout=out, stderr=out, env=dict(os.environ), cwd="/"
        )
    eventually(said.read_text, what="a sign of life")
    guard.forget()
    guard.end()
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def test_a_guard_that_can_not_be_started_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("headpond.testing.guard.SHELL", str(tmp_path / "no-such-shell"))
    before = os.listdir("/dev/fd")
    with pytest.raises(FileNotFoundError, match="no-such-shell"), Broker():
        pass
    assert os.listdir("/dev/fd") == before and os.listdir(tmp_path) == []


def test_a_child_that_is_forked_while_the_guard_starts_holds_none_of_its_pipes(
    own: Callable[[str], Owned],
) -> None:
    owned = own(
        "import subprocess\n"
        "class Forking(subprocess.Popen):\n"
        "    def __init__(self, *a, **k):\n"
        "        if not MORE and (child := os.fork()) == 0:\n"
        "            time.sleep(1000)\n"
        "        MORE or MORE.append(child)\n"
        "        super().__init__(*a, **k)\n"
        "subprocess.Popen = Forking\nwith Broker() as broker:\n"
        "    broker._guard._shell.kill()\n    broker._guard._shell.wait()\n"  # the broker's own pipe must do
        f"    {SAY}    sys.stdin.read()\n"
    )
    child = int(owned.more[0])
    try:
        owned.owner.kill()
        owned.wait_until_gone()
        assert is_alive(child), "it was to be there all the time"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_failed_start_leaves_nothing_and_quotes_the_broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broker = Broker(settings={"log.retention.mss": 1})
    with pytest.raises(Exception, match=r"ended with 2, it said:\n.*did you mean log.retention.ms"), broker:
        pass
    assert os.listdir(tmp_path) == [] and not broker.is_running
