"""Every test runs twice, with logs that are made durable by the journal and without. Thousands of recoveries each say
what they cut off: too much to keep."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from unit.storage.storage_rig import Rig


@pytest.fixture(autouse=True, params=[False, True], ids=["own files", "journal"])
def has_journal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rig, "has_journal", request.param)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
