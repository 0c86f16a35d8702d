"""The pytest plugin; pytest finds it by itself where Headpond is installed.

    headpond_broker         one broker for the whole run (under pytest-xdist: for each worker)
    fresh_headpond_broker   one broker for one test, to stop, kill and restart as it likes
    headpond_topic          the name of a new topic of this test's own, in the broker that the test uses
    headpond_settings       override it in conftest.py: broker settings for both

    @pytest.mark.headpond(settings={"message.max.bytes": 1000})     more settings for this test's fresh broker

Every pytest run of a project that has Headpond installed imports this file: it imports nothing that pytest has not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headpond.testing.broker import Broker

MARKER = "headpond"
SHARED = "headpond_broker"
FRESH = "fresh_headpond_broker"
TOPIC = "headpond_topic"

_has_settings = pytest.StashKey[bool]()
"""Of a test: its fresh broker was started, with what its markers say."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(settings): broker settings, by their names, of this test's {FRESH}")


@pytest.fixture(scope="session")
def headpond_settings() -> Mapping[str, object]:
    """Broker settings, by their names, of every broker that the fixtures start. Override it to have others."""
    return {}


@pytest.fixture(scope="session")
def headpond_broker(headpond_settings: Mapping[str, object]) -> Iterator[Broker]:
    """A real Kafka-compatible broker that all tests share: keep them apart by the names of their topics."""
    from headpond.testing.broker import Broker

    with Broker(settings=headpond_settings) as broker:
        yield broker


@pytest.fixture
def fresh_headpond_broker(request: pytest.FixtureRequest, headpond_settings: Mapping[str, object]) -> Iterator[Broker]:
    """A real, empty Kafka-compatible broker of this test's own."""
    from headpond.testing.broker import Broker

    settings = dict(headpond_settings)
    for marker in reversed(list(request.node.iter_markers(MARKER))):  # the closest one has the last word
        settings.update(_settings_of(marker))
    request.node.stash[_has_settings] = True
    with Broker(settings=settings) as broker:
        yield broker


@pytest.fixture
def headpond_topic(request: pytest.FixtureRequest) -> str:
    """The name of a new topic that no other test uses: in this test's fresh broker if it has one, else in the shared
    one. It has as many partitions as the setting ``num.partitions`` says."""
    from secrets import token_hex

    broker: Broker = request.getfixturevalue(FRESH if FRESH in request.fixturenames else SHARED)
    name = f"{re.sub('[^a-zA-Z0-9]+', '-', request.node.name)[:200].strip('-')}-{token_hex(4)}"
    broker.create_topic(name, partitions=-1)
    return name


# --- the marker -------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fails a test whose marker has no effect, before it runs."""
    if _is_without_effect(item) and "request" not in _fixtures(item):
        pytest.fail(_sentence(item), pytrace=False)


@pytest.hookimpl(trylast=True, specname="pytest_runtest_call")  # a wrapper would depend on the release of pluggy
def pytest_runtest_call_passed(item: pytest.Item) -> None:
    """The same after a test that has ``request`` and could ask for the fixture by its name."""
    if _is_without_effect(item) and not item.stash.get(_has_settings, False):
        pytest.fail(_sentence(item), pytrace=False)


def _is_without_effect(item: pytest.Item) -> bool:
    """A marker of a class or a module may be there for other tests, but not for one that uses the shared broker."""
    fixtures = _fixtures(item)
    if FRESH in fixtures:
        return False
    is_sharing = SHARED in fixtures or TOPIC in fixtures
    markers = item.iter_markers(MARKER) if is_sharing else (m for m in item.own_markers if m.name == MARKER)
    return any(True for _ in markers)


def _fixtures(item: pytest.Item) -> Collection[str]:
    """What other plugins collect need not have any."""
    names: Collection[str] = getattr(item, "fixturenames", ())
    return names


def _sentence(item: pytest.Item) -> str:
    return (
        f"the marker {MARKER!r} has no effect on {item.name}: its settings are those of the fixture {FRESH}, which "
        f"the test does not use. For {SHARED}, override the fixture headpond_settings"
    )


def _settings_of(marker: pytest.Mark) -> Mapping[str, object]:
    settings = marker.args[0] if len(marker.args) == 1 and not marker.kwargs else marker.kwargs.get("settings")
    if len(marker.args) + len(marker.kwargs) != 1 or not isinstance(settings, Mapping):
        given = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        wanted = f'@pytest.mark.{MARKER}(settings={{"num.partitions": 3}})'
        pytest.fail(f"the marker {MARKER}({given}) should be like {wanted}", pytrace=False)
    return settings
