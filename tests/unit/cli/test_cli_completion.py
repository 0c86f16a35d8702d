"""Completion, tried in the shells themselves: what TAB offers is what the command takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.cli.completion import SHELLS, script
from penstock.cli.main import COMMANDS

ASK = {
    "bash": """
source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _penstock; printf '%s\\n' "${COMPREPLY[@]}"
""",
    # zsh completes in an interactive shell only: the few functions that the script calls print what they would offer.
    "zsh": """
compdef() { : }
_describe() { local each; for each in ${(P)@[-1]}; do print -r -- ${each%%:*}; done }
_files() { print -l -- *(N) }
compadd() { shift; print -l -- "$@" }
source "$1"; words=("${@:2}"); CURRENT=$#words; _penstock
""",
    "fish": """
source $argv[1]; complete -C "$argv[2..-1]" | string split -f1 \\t
""",
}


def offered(shell: str, folder: Path, *words: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    file = folder.parent / f"penstock.{shell}"
    file.write_text(script(shell))
    isolated = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    arguments = [program, *isolated, "-c", ASK[shell], *([] if shell == "fish" else [shell]), str(file), *words]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr == "", done.stderr
    last = words[-1]
    return sorted(word for word in done.stdout.split("\n") if word and word.startswith(last))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a-file.log").touch()
    return tmp_path / "here"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "penstock", "") == sorted(command.name for command in COMMANDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_actions_and_their_options_are_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "penstock", "topics", "") == ["alter", "create", "delete", "describe", "list"]
    assert offered(shell, folder, "penstock", "topics", "de") == ["delete", "describe"]
    assert offered(shell, folder, "penstock", "topics", "create", "x", "--p") == ["--partitions"]
    assert "--follow" in offered(shell, folder, "penstock", "consume", "orders", "--")


@pytest.mark.parametrize("shell", SHELLS)
def test_values_of_a_fixed_choice_are_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "penstock", "produce", "t", "--acks", "") == ["0", "1", "all"]
    assert offered(shell, folder, "penstock", "completion", "") == sorted(SHELLS)


@pytest.mark.parametrize("shell", SHELLS)
def test_files_are_offered_where_a_file_is_meant(shell: str, folder: Path) -> None:
    assert "a-file.log" in offered(shell, folder, "penstock", "log", "dump", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_the_same_for_the_same_command_line(shell: str) -> None:
    assert script(shell) == script(shell)
