"""Fixtures that tests of every kind share: brokers as real processes, raw connections, topics with names of their own.

``HEADPOND_TEST_BOOTSTRAP=host:port`` points the conformance tests at another broker, a real Apache Kafka for one: what
passes there is by definition right. Tests that need to own the process are skipped then.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from support.broker import BrokerProcess
    from support.verbs import Topic
    from support.wire import Wire

OVERRIDE = os.environ.get("HEADPOND_TEST_BOOTSTRAP")


def pytest_addoption(parser: pytest.Parser) -> None:
    from support.at_least import HELP

    parser.addoption("--at-least", metavar="FOLDER=N", action="append", default=[], help=HELP)


def pytest_configure(config: pytest.Config) -> None:
    from support.at_least import AtLeast
    from support.signals import keep_ignored_signals_from_children

    keep_ignored_signals_from_children()
    for wanted in config.getoption("--at-least"):
        folder, _, number = wanted.partition("=")
        config.pluginmanager.register(AtLeast(folder, int(number)))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for the whole run; tests keep apart by the names of their topics. Every setting that a client can see
    has its default, and retention does not begin: some tests write records of years ago."""
    from support.broker import BrokerProcess, serving

    if OVERRIDE:
        pytest.skip("the broker under test is not ours to start")
    settings = {"log.initial.task.delay.ms": 86_400_000}
    with serving(BrokerProcess(tmp_path_factory.mktemp("broker"), settings=settings)) as process:
        yield process


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Where the broker under test listens: the session's, or the one that the environment names."""
    if OVERRIDE:
        return OVERRIDE
    servers: str = request.getfixturevalue("broker").bootstrap_servers
    return servers


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Brokers that belong to one test; ``make_broker(settings={...})`` gives one that is not started yet."""
    from support.broker import BUGS, BrokerProcess

    made: list[BrokerProcess] = []

    def make(name: str = "broker", **options: Any) -> BrokerProcess:
        made.append(BrokerProcess(tmp_path / name, **options))
        return made[-1]

    yield make
    for process in made:
        process.close()
    for process in made:
        assert not BUGS.search(process.logs()), process.logs()


@pytest.fixture
def fresh_broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A running broker of the test's own, to stop, kill and restart."""
    return make_broker().start()


@pytest.fixture
def connect(bootstrap: str) -> Iterator[Callable[..., Wire]]:
    """Raw connections to the broker under test, closed at the end."""
    from support.wire import Wire

    opened: list[Wire] = []

    def open_wire(to: str = bootstrap, **options: Any) -> Wire:
        opened.append(Wire(to, **options))
        return opened[-1]

    yield open_wire
    for wire in opened:
        wire.close()


@pytest.fixture
def wire(connect: Callable[..., Wire]) -> Wire:
    return connect()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test and no other run uses, and that says whose it is."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:80].strip("-")
    return f"{words}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(wire: Wire, topic_name: str) -> Topic:
    """A topic with one partition and default settings."""
    from support.verbs import create_topic

    return create_topic(wire, topic_name)
