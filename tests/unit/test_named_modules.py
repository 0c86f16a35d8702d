"""Modules that are named in strings, so that they are imported when they are needed: all of them are there."""

from __future__ import annotations

from importlib import import_module

import pytest

import headpond.testing
from headpond.broker.requests.routes import HANDLERS, handler_module
from headpond.broker.start.later import MODULES
from headpond.cli.main import COMMANDS
from headpond.cli.pipeline.command import ACTIONS
from headpond.protocol.apis import APIS

HOT = (0, 1)
"""Produce and Fetch are called by the connection itself."""


@pytest.mark.parametrize("key", HANDLERS)
def test_every_handler_is_there_and_serves_the_api_that_it_is_listed_for(key: int) -> None:
    module = handler_module(key)
    assert (module.API.key, module.API.name) == (key, APIS[key].name)
    assert hasattr(module, "handle") or key in HOT


@pytest.mark.parametrize("key", APIS)
def test_every_api_that_is_served_has_its_messages(key: int) -> None:
    if key in HANDLERS:
        assert APIS[key].request.KEY == APIS[key].response.KEY == key


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_has_its_folder(name: str) -> None:
    assert callable(import_module(f"headpond.cli.{name}.command").configure)


@pytest.mark.parametrize("name", [action.name for action in ACTIONS])
def test_every_action_of_a_pipeline_has_its_module(name: str) -> None:
    assert callable(import_module(f"headpond.cli.pipeline.{name}").configure)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_imported_after_a_start_is_there(name: str) -> None:
    import_module(name)


@pytest.mark.parametrize("name", headpond.testing.__all__)
def test_what_the_testing_package_offers_is_there(name: str) -> None:
    assert getattr(headpond.testing, name) is not None
