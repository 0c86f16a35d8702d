"""A container file without a container engine: its steps, run in roots that are folders.

Knows what ours uses (FROM, COPY, RUN, ENV, WORKDIR, USER and the settings of an image) and refuses the rest. Each stage
is a copy of ``base``, which stands for the image it begins with. Needs root.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STEP_S_MAX = 600
_SETTINGS = ("USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD")


@dataclass
class Stage:
    root: Path
    image: str
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    settings: dict[str, str] = field(default_factory=dict)

    def command(self, instruction: str) -> list[str]:
        """Of ENTRYPOINT, CMD or HEALTHCHECK: without a shell, or it is not ours."""
        found: list[str] = json.loads(self.settings[instruction][self.settings[instruction].index("[") :])
        return found


def instructions(text: str) -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def images(text: str) -> list[str]:
    """Every image that is named, stages aside."""
    stages = re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE)
    return [name for name in re.findall(r"(?:^FROM |--from=)(\S+)", text, re.MULTILINE) if name not in stages]


class Builder:
    def __init__(
        self, context: Path, folder: Path, base: Path, images: Mapping[str, Path], environment: dict[str, str]
    ):
        """``images``: by the beginning of their names, the folders that stand for images that are only copied from;
        ``environment``: what the steps need to reach the network from here."""
        self._context = context
        self._folder = folder
        self._base = base
        self._images = images
        self._environment = environment

    def build(self, text: str) -> Stage:
        stages: dict[str, Stage] = {}
        stage: Stage | None = None
        for word, rest in instructions(text):
            if word == "FROM":
                image, _, name = rest.partition(" AS ")
                root = self._folder / f"stage-{len(stages)}"
                subprocess.run(["cp", "-a", "--reflink=auto", self._base, root], check=True)
                stage = stages[name or "last"] = Stage(root, image)
                continue
            assert stage is not None, f"{word} before FROM"
            if word == "COPY":
                self._copy(stage, rest, stages)
            elif word == "RUN":
                self._run(stage, rest)
            elif word == "ENV":
                stage.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            elif word == "WORKDIR":
                stage.folder = rest
                (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            else:
                assert word in _SETTINGS, f"{word} is not known here"
                stage.settings[word] = rest
        assert stage is not None
        return stage

    def _copy(self, stage: Stage, rest: str, stages: Mapping[str, Stage]) -> None:
        words = rest.split()
        origin = self._context
        if words[0].startswith("--from="):
            name = words.pop(0).removeprefix("--from=")
            origin = stages[name].root if name in stages else self._image(name)
        assert not words[0].startswith("--"), f"COPY {words[0]} is not known here"
        *sources, target = words
        into = stage.root / (target if target.startswith("/") else f"{stage.folder}/{target}").lstrip("/")
        for source in sources:
            path = origin / source.lstrip("/")
            if path.is_dir():  # its contents
                shutil.copytree(
                    path, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                place = into / path.name if target.endswith("/") or len(sources) > 1 else into
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)

    def _image(self, name: str) -> Path:
        return next(path for start, path in self._images.items() if name.startswith(start))

    def _run(self, stage: Stage, command: str) -> None:
        assert "USER" not in stage.settings, "steps as another user are not known here"
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"}
        done = subprocess.run(
            ["chroot", str(stage.root), "/bin/sh", "-c", f"cd {stage.folder} && {command}"],
            env=environment | self._environment | stage.environment,
            capture_output=True,
            text=True,
            timeout=STEP_S_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
