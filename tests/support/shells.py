"""What the shells offer at a TAB, with the completion script of this Headpond."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headpond.cli.common.arguments import BOOTSTRAP_VARIABLE
from headpond.cli.completion.command import script
from headpond.cli.main import whole_parser
from support.broker import headpond_environment
from support.installed import installed

NOBODY = "127.0.0.1:1"
ASK = {
    "bash": """
source "$1"; COMP_WORDS=("${@:2}"); COMP_LINE="${*:2}"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_headpond; printf '%s\\n' "${COMPREPLY[@]}"
""",
    # zsh completes in an interactive shell only: the few functions that the script calls print what they would offer.
    "zsh": """
compdef() { : }
_describe() { local each; for each in ${(P)@[-1]}; do print -r -- ${each%%:*}; done }
_files() { print -l -- *(N) }
compadd() { shift; print -l -- "$@" }
source "$1"; words=("${@:2}"); CURRENT=$#words; _headpond
""",
    "fish": """
source $argv[1]; complete -C "$argv[2..-1]" | string split -f1 \\t
""",
}


def offered(shell: str, folder: Path, *words: str, bootstrap: str = NOBODY) -> list[str]:
    """What a TAB behind ``words`` offers in ``folder``; ``bootstrap`` is what the environment says."""
    if not installed(shell):
        pytest.skip(f"{shell} is not installed and could not be (tests/support/install_debian.sh)")
    file = folder.parent / f"headpond.{shell}"
    file.write_text(script(shell, whole_parser()))
    command = folder.parent / "programs" / "headpond"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m headpond "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])
    environment = {**headpond_environment(), "PATH": path, BOOTSTRAP_VARIABLE: bootstrap}
    isolated = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    arguments = [shell, *isolated, "-c", ASK[shell], *([] if shell == "fish" else [shell]), str(file), *words]
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stderr == "", done.stderr
    last = words[-1]
    return sorted(word for word in done.stdout.split("\n") if word and word.startswith(last))
