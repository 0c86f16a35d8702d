"""Modules that are named in strings, so that they are imported when they are needed: all of them are there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import headpond
import headpond.testing
from headpond.broker.requests.routes import handle_of, handler_module, handler_name
from headpond.broker.start.later import MODULES
from headpond.cli.main import COMMANDS
from headpond.cli.pipeline.command import ACTIONS
from headpond.protocol.apis import APIS, SERVED

SOURCE = Path(headpond.__file__).parent
HANDLERS = SOURCE / "broker" / "handlers"
HOT = (0, 1)
"""Produce and Fetch are called by the connection itself."""


@pytest.mark.parametrize("key", SERVED)
def test_every_handler_is_there(key: int) -> None:
    if key in HOT:
        assert handler_module(key) is not None
    else:
        assert callable(handle_of(key))


def test_every_handler_file_serves_an_api_or_helps_one_that_does() -> None:
    """None is left that no row of the table leads to."""
    files = [path for path in HANDLERS.rglob("*.py") if path.name != "__init__.py"]
    texts = {path: path.read_text() for path in files}
    named = {handler_name(key) for key in SERVED}
    for path in files:
        module = "headpond." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        room, _, name = module.rpartition(".")
        uses = (f"from {module} import ", f"from {room} import {name}")
        assert module in named or any(use in text for text in texts.values() for use in uses), module


@pytest.mark.parametrize("key", APIS)
def test_every_api_has_its_messages(key: int) -> None:
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
