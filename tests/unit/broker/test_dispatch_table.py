"""The table of APIs and the handlers say the same."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from headpond.broker.requests.routes import REFUSALS, handle_of, handler_module
from headpond.protocol.apis import APIS, SERVED, advertised_versions


def test_produce_is_advertised_from_version_0() -> None:
    assert (0, 0, 13) in advertised_versions()


@pytest.mark.parametrize("key", sorted(SERVED))
def test_each_handler_tells_the_story_of_the_versions_that_it_serves(key: int) -> None:
    api = APIS[key]
    story = (handle_of(key) if api.served_in == REFUSALS else handler_module(key)).__doc__
    assert story is not None
    first, last = api.versions[0], api.versions[-1]
    versions = f"v{first}" if first == last else f"v{first}-v{last}"
    assert [word.rstrip(".") for word in story.split()[:2]] == [f"{api.name}:", versions]


def test_the_protocol_page_is_up_to_date() -> None:
    root = Path(__file__).resolve().parents[3]
    tool = runpy.run_path(str(root / "tools" / "protocol_page.py"))
    assert (root / "docs" / "protocol.md").read_text() == tool["page"](), "run tools/protocol_page.py"
