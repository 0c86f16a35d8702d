"""Real Kafkas and Java frameworks that belong to one test, and Spark with its own connector for a file of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.connector import Connector, prepared_connector
from interop.frameworks import Frameworks, framework_jars
from interop.oracle import Oracle


@pytest.fixture
def make_kafka() -> Iterator[Callable[..., Oracle]]:
    """``make_kafka(data_dir, settings)``, not started yet."""
    made: list[Oracle] = []

    def make(data_dir: Path, settings: dict[str, Any] | None = None) -> Oracle:
        made.append(Oracle(data_dir, settings))
        return made[-1]

    yield make
    for kafka in made:
        kafka.kill()


@pytest.fixture
def frameworks(tmp_path: Path) -> Iterator[Frameworks]:
    started = Frameworks(framework_jars(), tmp_path)
    yield started
    started.kill_all()


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connector]:
    python, jars = prepared_connector()
    process = Connector(python, jars, tmp_path_factory.mktemp("connector") / "spark.log")
    yield process
    process.close()
