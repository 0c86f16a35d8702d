"""The pytest plugin; pytest finds it by itself where Headpond is installed.

    headpond_broker         one broker for the whole run (under pytest-xdist: for each worker)
    fresh_headpond_broker   one broker for one test, to stop, kill and restart as it likes
    headpond_settings       override it in conftest.py: broker settings for both

    @pytest.mark.headpond(settings={"message.max.bytes": 1000})     more settings for this test's fresh broker

Every pytest run of a project that has Headpond installed imports this file: it imports nothing that pytest has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headpond.testing.broker import Broker

MARKER = "headpond"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(settings): broker settings, by their names, of this test's fresh_headpond_broker"
    )


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
        settings.update(_marked(*marker.args, **marker.kwargs))
    with Broker(settings=settings) as broker:
        yield broker


def _marked(settings: Mapping[str, object]) -> Mapping[str, object]:
    """What the marker takes; anything else is a TypeError that says so."""
    return settings
