"""The files of scripts, and how one of them is played: in order on one broker, the fresh ones each on its own.

A file has ``SCRIPTS`` and, where it needs other settings than the defaults, ``SETTINGS`` for both brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from parity.notation import Script
from parity.player import play
from parity.recording import Recorded, recorded
from parity.surroundings import Peer

FAMILIES = sorted(path.stem for path in (Path(__file__).parent / "scripts").glob("*.py"))

StartPeer = Callable[[Path, Mapping[str, str]], AbstractContextManager[Peer]]


def scripts_of(family: str) -> list[Script]:
    scripts: list[Script] = _module(family).SCRIPTS
    names = [script.name for script in scripts]
    assert len(set(names)) == len(names), f"{family} has two scripts of one name"
    return scripts


def settings_of(family: str) -> Mapping[str, str]:
    settings: Mapping[str, str] = getattr(_module(family), "SETTINGS", {})
    return settings


def _module(family: str) -> Any:
    return import_module(f"parity.scripts.{family}")


class Stage:
    """Plays the scripts of one family; its shared broker starts with the first that wants it."""

    def __init__(self, family: str, folder: Path, start: StartPeer) -> None:
        self._settings = settings_of(family)
        self._folder = folder
        self._start = start
        self._stack = ExitStack()
        self._shared: Peer | None = None
        self._fresh = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.__exit__(*exc)

    def play(self, script: Script) -> Recorded:
        if script.fresh:
            self._fresh += 1
            with self._start(self._folder / f"fresh-{self._fresh}", self._settings) as peer:
                return recorded(play(script, peer))
        if self._shared is None:
            self._shared = self._stack.enter_context(self._start(self._folder / "shared", self._settings))
        return recorded(play(script, self._shared))


def play_all(family: str, folder: Path, start: StartPeer) -> Iterator[tuple[str, Recorded]]:
    with Stage(family, folder, start) as stage:
        for script in scripts_of(family):
            yield script.name, stage.play(script)
