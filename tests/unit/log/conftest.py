from __future__ import annotations

from collections.abc import Iterator

import pytest

from headpond.log import Log
from unit.log.log_rig import LogRig


@pytest.fixture
def rig() -> Iterator[LogRig]:
    """A simulated disk with an open log of small segments on it."""
    rig = LogRig()
    rig.open()
    yield rig
    if not rig.log.is_closed:
        rig.die()


@pytest.fixture
def log(rig: LogRig) -> Log:
    return rig.log
