"""The README is short, and reads the same on PyPI: its links lead from there to this repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "README.md").read_text()
LINKS = re.findall(r"\]\(([^)]+)\)", TEXT)
PROJECT = re.compile(
    r"https://(?:github\.com/headpond/headpond/(?:blob|tree)|raw\.githubusercontent\.com/headpond/headpond)/main/(.+)"
)


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) < 180


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_every_link_is_absolute_and_leads_to_a_file_that_is_there(link: str) -> None:
    found = PROJECT.fullmatch(link)
    assert found is not None, "a relative link leads nowhere on PyPI"
    path, _, anchor = found[1].partition("#")
    assert (REPOSITORY / path).exists()
    if anchor:
        titles = re.findall(r"^#+ (.+)$", (REPOSITORY / path).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_picture_is_the_file_itself_and_not_a_page_about_it() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", TEXT)
    assert pictures and all(picture.startswith("https://raw.githubusercontent.com/") for picture in pictures)


def test_figures_need_no_footnotes() -> None:
    assert not re.search(r"^\|.*\*", TEXT, re.MULTILINE)
