"""The library as processes use it: kill -9, forks, a second process, ends without a close, its cost, its files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headpond.log
from headpond.log import LogInUse
from support.broker import headpond_command, headpond_environment
from support.cli import Cli
from support.waiting import DEADLINE_S

REPOSITORY = Path(__file__).parents[3]
IMPORT_AND_OPEN_CPU_S_MAX = 0.3
"""Three times the bar, in CPU time: the machine that runs the tests does other things, too. ``make bench`` has it."""

CHILD = """
import sys, threading
import headpond.log
log = headpond.log.open(sys.argv[1], segment_bytes=20_000, index_interval_bytes=500)
"""


def python(program: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + program, *map(str, arguments)],
        env=headpond_environment(),
        stdin=subprocess.PIPE,  # whatever this process has may end at once
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    assert not err, err
    return out


def test_kill_9_loses_no_record_whose_offset_was_returned(tmp_path: Path) -> None:
    """Several times, in the middle of appends of several threads; every line was written after an append returned."""
    acknowledged: dict[int, bytes] = {}
    for life in range(3):
        child = python(
            """
lock = threading.Lock()
def run(thread):
    for number in range(100_000):
        value = f"{sys.argv[2]} {thread} {number}"
        if number % 10 == 9:
            offsets = log.append_many([value] * 5)
        else:
            offsets = [log.append(value)]
        with lock:
            for offset in offsets:
                sys.stdout.write(f"{offset} {value}\\n")
            sys.stdout.flush()
for thread in range(4):
    threading.Thread(target=run, args=(thread,)).start()
""",
            tmp_path / "orders",
            life,
        )
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(400)]
        child.kill()
        out, _ = child.communicate(timeout=DEADLINE_S)
        for line in lines + out.splitlines(keepends=True):
            if line.endswith("\n"):
                offset, _, value = line.rstrip("\n").partition(" ")
                acknowledged[int(offset)] = value.encode()
        with headpond.log.open(tmp_path / "orders") as log:
            found = {record.offset: record.value for record in log.read()}
        assert sorted(found) == list(range(len(found))), "no hole"
        assert acknowledged.items() <= found.items()
    assert len(acknowledged) >= 1_200


def test_a_second_process_can_t_open_it(tmp_path: Path) -> None:
    child = python("print('open', flush=True); sys.stdin.read()", tmp_path / "orders")
    assert child.stdout is not None
    child.stdout.readline()
    with pytest.raises(LogInUse):
        headpond.log.open(tmp_path / "orders")
    child.kill()
    child.communicate()
    headpond.log.open(tmp_path / "orders").close()


def test_a_program_that_ends_without_a_close_leaves_a_clean_folder(tmp_path: Path) -> None:
    assert said(python("print(log.append_many([b'a'] * 100)[-1])", tmp_path / "orders")) == "99\n"
    assert (tmp_path / "orders" / ".kafka_cleanshutdown").exists()
    with headpond.log.open(tmp_path / "orders") as log:
        assert log.end_offset == 100


def test_a_forked_child_is_told_that_the_log_is_its_parent_s(tmp_path: Path) -> None:
    program = """
import os
log.append(b"of the parent")
reader = log.read()
child = os.fork()
if child == 0:
    for call in (lambda: log.append(b"of the child"), lambda: next(reader), lambda: headpond.log.open(sys.argv[1])):
        try:
            call()
        except headpond.log.LogError as error:
            print(type(error).__name__, str(error).partition(" that")[0], flush=True)
    log.close()
    sys.exit(0)
print("child", os.waitpid(child, 0)[1])
print(log.append(b"of the parent"), [record.value for record in reader])
log.close()
"""
    told = said(python(program, tmp_path / "orders")).splitlines()
    assert told[:2] == ["LogClosed the log was opened by the process"] * 2
    assert told[2].startswith("LogInUse")
    assert told[3:] == ["child 0", "1 [b'of the parent']"]


def test_an_exception_in_the_with_block_closes_the_log(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), headpond.log.open(tmp_path / "orders") as log:
        log.append(b"a")
        raise ZeroDivisionError
    assert log.is_closed


def test_ctrl_c_ends_a_program_that_follows_a_log(tmp_path: Path) -> None:
    program = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("follows", flush=True)
    list(log.follow())
except KeyboardInterrupt:
    log.close()
    print("stopped")
"""
    child = python(program, tmp_path / "orders")
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    assert said(child) == "stopped\n"


# --- its cost ---------------------------------------------------------------------------------------------------------


def test_headpond_itself_imports_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, headpond; print([m for m in sys.modules if m.startswith('headpond.')])"],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_library_imports_neither_the_broker_nor_what_it_does_not_need(tmp_path: Path) -> None:
    out = said(python("print(*sys.modules)", tmp_path / "orders")).split()
    rooms = {name.split(".")[1] for name in out if name.startswith("headpond.")}
    assert rooms == {"log", "storage", "protocol", "runtime", "config", "model", "ports", "telemetry", "cluster"}
    assert not {"numpy", "pyarrow", "rich", "sqlite3", "headpond.config.broker"} & set(out)


def test_it_takes_no_time_to_import_and_to_open(tmp_path: Path) -> None:
    program = "import sys, time, headpond.log; headpond.log.open(sys.argv[1]); print(time.process_time())"
    environment = {name: value for name, value in headpond_environment().items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent = []
    for number in range(3):
        command = [sys.executable, "-c", program, str(tmp_path / f"{number}")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        spent.append(float(done.stdout))
    assert min(spent) < IMPORT_AND_OPEN_CPU_S_MAX, "CPU time, the interpreter's own start included"


# --- its files --------------------------------------------------------------------------------------------------------


def test_the_commands_check_it_and_make_a_topic_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with headpond.log.open(folder, segment_bytes=2_000, index_interval_bytes=300) as log:
        for number in range(50):
            log.append(b"order %d" % number, key=b"%d" % (number % 5))
        log.append_many([b"apples " * 30] * 50)
        log.delete_before(20)
        topic_id = (folder / "orders-0" / "partition.metadata").read_bytes()
    cli = Cli("127.0.0.1:1")
    verified = cli.ok("log", "verify", folder, "--json").document
    assert (verified["faults"], verified["partitions"]) == ([], 1)
    assert "orders-0" in cli("serve", "--data-dir", folder, "--listen", "127.0.0.1:0").failed_with(1)
    adopted = cli.ok("adopt", "--data-dir", folder, "--json").document
    assert [(one["topic"], one["adopted"]) for one in adopted] == [("orders", True)]
    assert cli.ok("log", "verify", folder, "--json").document["faults"] == []
    assert (folder / "orders-0" / "partition.metadata").read_bytes() == topic_id
    with headpond.EmbeddedBroker(folder) as broker:
        records = broker.consume("orders")
        assert [record.offset for record in records] == list(range(20, 100))
        assert records[0].value == b"order 20"
        assert broker.produce("orders", ["one more"])[0].offset == 100
    with pytest.raises(headpond.log.LogUnusable, match="belongs to a broker"):
        headpond.log.open(folder)


def test_a_log_that_was_killed_is_adopted_too(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    child = python("log.append_many([b'a'] * 100); print('done', flush=True); sys.stdin.read()", folder)
    assert child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.communicate()
    cli = Cli("127.0.0.1:1")
    assert cli.ok("log", "verify", folder, "--json").document["faults"] == []
    assert "orders" in cli.ok("adopt", "--data-dir", folder).out


def test_a_compaction_in_a_real_process(tmp_path: Path) -> None:
    with headpond.log.open(tmp_path / "orders", segment_bytes=5_000) as log:
        for number in range(200):
            log.append(bytes(100), key=b"%d" % (number % 7))
        assert log.compact().records_removed == 193
        assert [record.offset for record in log.read()] == list(range(193, 200))
    said_by = subprocess.run(
        headpond_command("log", "verify", str(tmp_path / "orders")),
        env=headpond_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fault" not in said_by.stderr


# --- the example ------------------------------------------------------------------------------------------------------


def test_the_example_shows_records_segments_and_index_entries(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / "log_library.py"), str(tmp_path)],
        env=headpond_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.findall(r"^(\d+) customer", done.stdout, re.MULTILINE) == ["7", "8", "9", "10", "11"]
    segments = re.findall(r"^\d{20}\.log: offsets (\d+) to (\d+), (\d+) bytes$", done.stdout, re.MULTILINE)
    assert len(segments) > 1
    assert (segments[0][0], segments[-1][1]) == ("0", "11")
    assert sum(int(size) for *_, size in segments) == sum(
        os.path.getsize(path) for path in (tmp_path / "orders" / "orders-0").glob("*.log")
    )
    assert "the batch that ends with offset" in done.stdout
