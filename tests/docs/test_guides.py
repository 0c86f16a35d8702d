"""Every command of the README and the guides does what the page says, every program runs, in the order of reading."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.guide import Step, commands_that_nobody_runs, matches, steps_of
from support.broker import BrokerProcess, headpond_environment
from support.installed import installed
from support.waiting import eventually

REPOSITORY = Path(__file__).parents[2]
GUIDES = REPOSITORY / "docs" / "guides"
WITH_A_TEST_OF_ITS_OWN = ("testing.md", "spark.md", "lake.md", "pipelines.md")
ADDRESS = "127.0.0.1:9092"
METRICS_ADDRESS = "127.0.0.1:9404"
COMMAND_S_MAX = 60

# What a guide may call that a test machine may lack: curl, by the few lines of it that the guides use.
CURL = """#!{python}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[-1], timeout=10).read().decode(), end="")
"""


class Terminal:
    """A folder, a PATH with this Headpond on it, and the guide's broker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker: BrokerProcess | None = None
        programs = folder / ".programs"
        programs.mkdir()
        self._add(programs / "headpond", '#!/bin/sh\nexec "{python}" -P -m headpond "$@"\n')
        self._add(programs / "curl", CURL)
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        self._environment = {**headpond_environment(), "PATH": path, "LC_ALL": "C.UTF-8"}

    def _add(self, program: Path, text: str) -> None:
        program.write_text(text.format(python=sys.executable))
        program.chmod(0o755)

    def do(self, step: Step) -> None:
        if step.stops_broker:
            self.stop_broker()
        if step.starts_broker:
            self._start_broker(step)
        elif step.kind == "program":
            self._run_python(step)
        elif step.kind == "tests":
            self._run_python(step, "-m", "pytest", "-q", "-p", "no:cacheprovider")
        elif step.kind == "dialogue":
            self._run_python(step, "-m", "doctest")
        elif not step.text.startswith("pip install"):  # the tests' own environment was made by it
            self._run_command(step)

    def _start_broker(self, step: Step) -> None:
        self.stop_broker()
        arguments = shlex.split(step.text)[2:]
        data_dir = self._folder / "headpond-data"
        if "--data-dir" in arguments:
            at = arguments.index("--data-dir")
            data_dir = self._folder / arguments[at + 1]
            del arguments[at : at + 2]
        arguments = [argument.replace(METRICS_ADDRESS, "127.0.0.1:0") for argument in arguments]
        self._broker = BrokerProcess(self._folder / ".broker", arguments=arguments)
        self._broker.data_dir = data_dir
        self._broker.start()
        broker = self._broker

        def said() -> str:
            # Some pages show the one line on stdout, some all that a terminal does, a moment later.
            seen = broker.logs() if "\n" in step.output.strip() else broker.stdout()
            seen = seen.replace(broker.bootstrap_servers, ADDRESS).replace(str(data_dir), data_dir.name)
            return seen.replace(f" --bootstrap-server {ADDRESS}", "")  # a broker on the default port does not say it

        eventually(lambda: matches(step.output, said()), what=lambda: f"{step.output}\nseen:\n{said()}")

    def stop_broker(self) -> None:
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def _run_python(self, step: Step, *runner: str) -> None:
        program = self._folder / ("dialogue.txt" if step.kind == "dialogue" else "program.py")
        program.write_text(self._with_addresses(step.text))
        done = self._run([sys.executable, *runner, str(program)])
        assert done.returncode == 0, f"{step.text}\n{done.stdout}"

    def _run_command(self, step: Step) -> None:
        done = self._run(["bash", "-o", "pipefail", "-c", self._with_addresses(step.text)])
        seen = done.stdout
        assert matches(step.output, seen), f"$ {step.text}\npromised:\n{step.output}\nseen:\n{seen}"
        assert (done.returncode != 0) == step.is_refused, f"$ {step.text} ended with {done.returncode}:\n{seen}"

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        environment = dict(self._environment)
        if self._broker is not None:
            environment["HEADPOND_BOOTSTRAP_SERVER"] = self._broker.bootstrap_servers
        return subprocess.run(
            command,
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S_MAX,
        )

    def _with_addresses(self, text: str) -> str:
        if self._broker is None:
            return text
        text = text.replace(ADDRESS, self._broker.bootstrap_servers)
        if METRICS_ADDRESS in text:
            found = re.search(r"http://(127\.0\.0\.1:\d+)/metrics", self._broker.logs())
            assert found is not None, self._broker.logs()
            text = text.replace(METRICS_ADDRESS, found[1])
        return text


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.stop_broker()


@pytest.mark.parametrize(
    "guide",
    [
        REPOSITORY / "README.md",
        REPOSITORY / "docs" / "operations-metrics.md",
        *(guide for guide in sorted(GUIDES.glob("*.md")) if guide.name not in WITH_A_TEST_OF_ITS_OWN),
    ],
    ids=lambda g: g.stem,
)
def test_a_guide_does_what_it_says(guide: Path, terminal: Terminal) -> None:
    steps = steps_of(guide)
    for program in ("kcat", "rsync"):
        if any(program in step.text.split() for step in steps) and not installed(program):
            pytest.skip(f"needs {program}, which could not be installed")
    for step in steps:
        terminal.do(step)


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))], ids=lambda page: page.name
)
def test_no_page_shows_a_command_that_nobody_runs(page: Path) -> None:
    assert commands_that_nobody_runs(page) == []


def test_the_copy_from_kafka_is_the_one_that_was_tried() -> None:
    """The line that names another machine can't be run here: but for that name it is the one that is."""
    page = (GUIDES / "migration.md").read_text()
    remote, local = re.findall(r"(rsync .*) \S+ headpond-data/$", page, re.MULTILINE)
    assert remote == local


def test_every_guide_is_in_the_table_of_contents() -> None:
    contents = (REPOSITORY / "docs" / "README.md").read_text()
    for guide in GUIDES.glob("*.md"):
        assert f"(guides/{guide.name})" in contents


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} points at {target}"


@pytest.mark.parametrize(
    ("promised", "seen", "is_kept"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a ...\n...\nz\n", "a b c\nd\ne\nz\n", True),
        ("a.c\n", "abc\n", False),
        ("", "", True),
        ("", "noise\n", False),
    ],
)
def test_promised_output_is_compared_line_by_line(promised: str, seen: str, is_kept: bool) -> None:
    assert matches(promised, seen) is is_kept
