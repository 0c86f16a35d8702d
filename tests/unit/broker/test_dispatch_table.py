"""The table of served APIs, the handler files and the protocol's facts say the same."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from headpond.broker.requests.routes import HANDLERS, advertised_versions, handler_module
from headpond.protocol.apis import APIS


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_each_handler_serves_the_versions_that_are_advertised_for_it(key: int) -> None:
    api = handler_module(key).API
    info = APIS[key]
    assert (api.key, api.name) == (key, info.name)
    assert api.versions == info.versions


def test_produce_is_advertised_from_version_0() -> None:
    assert (0, 0, 13) in advertised_versions()


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_each_handler_file_tells_its_story(key: int) -> None:
    module = handler_module(key)
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{APIS[key].name}: v")


def test_the_protocol_page_is_up_to_date() -> None:
    root = Path(__file__).resolve().parents[3]
    tool = runpy.run_path(str(root / "tools" / "protocol_page.py"))
    assert (root / "docs" / "protocol.md").read_text() == tool["page"](), "run tools/protocol_page.py"
