"""Both brokers are asked now, side by side, and a real Kafka still answers as the recording says.

What ``make test`` compares with would be worth nothing if it were stale.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from parity.allowed import sift
from parity.families import FAMILIES, play_all
from parity.peers import headpond, kafka
from parity.recording import differences, load

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not os.environ.get("HEADPOND_TEST_KAFKA_CLASSPATH") or not shutil.which("java"),
        reason="needs Kafka's jars (HEADPOND_TEST_KAFKA_CLASSPATH) and java",
    ),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_kafka_answers_as_recorded_and_headpond_as_kafka(family: str, tmp_path: Path) -> None:
    written = load(family)
    answered = dict(play_all(family, tmp_path / "kafka", kafka))
    stale = [f"{name}: {each}" for name, of in answered.items() for each in differences(written.get(name, {}), of)]
    assert not stale, "the recording is stale (make parity-record):\n" + "\n".join(stale)
    wrong = []
    for name, ours in play_all(family, tmp_path / "headpond", headpond):
        refused, _ = sift(family, name, differences(answered[name], ours))
        wrong += [f"{name}: {each}" for each in refused]
    assert not wrong, "\n" + "\n".join(wrong)
