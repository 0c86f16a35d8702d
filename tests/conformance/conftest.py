"""The clients under which every conformance test runs: none of them ours, all of them unchanged."""

from __future__ import annotations

import pytest

from support.clients.base import Admin, Client
from support.clients.choose import CLIENTS, LIBRARIES, make_admin, make_client
from support.installed import begin_to_install
from support.verbs import Topic, create_topic, describe_topic
from support.wire import Wire


@pytest.fixture(scope="session", autouse=True)
def kcat_on_its_way() -> None:
    """Tries once where it is missing; without it, its tests are skipped and say so."""
    begin_to_install()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """Each of the clients, kcat included."""
    return make_client(request.param, bootstrap)


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """Each of the libraries, which can do what kcat can't: timestamps, headers per record, bytes."""
    return make_client(request.param, bootstrap)


@pytest.fixture(params=LIBRARIES)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Admin:
    return make_admin(request.param, bootstrap)


@pytest.fixture
def internal_topic(wire: Wire) -> Topic:
    """__transaction_state, made like any other topic where the broker has not made it yet."""
    name = "__transaction_state"
    try:
        return describe_topic(wire, name)
    except AssertionError:
        return create_topic(wire, name)
