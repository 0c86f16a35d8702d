"""Completion, tried in the shells themselves: what TAB offers is what the command takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headpond.cli.completion.command import SHELLS, script
from headpond.cli.main import COMMANDS, whole_parser
from support.shells import offered


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a-file.log").touch()
    (tmp_path / "here" / "a * log").touch()
    return tmp_path / "here"


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "") == sorted(command.name for command in COMMANDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_actions_and_their_options_are_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "topics", "") == ["alter", "create", "delete", "describe", "list"]
    assert offered(shell, folder, "headpond", "topics", "de") == ["delete", "describe"]
    assert offered(shell, folder, "headpond", "topics", "create", "x", "--p") == ["--partitions"]
    assert "--follow" in offered(shell, folder, "headpond", "consume", "orders", "--")


@pytest.mark.parametrize("shell", SHELLS)
def test_values_of_a_fixed_choice_are_offered(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "produce", "t", "--acks", "") == ["0", "1", "all"]
    assert offered(shell, folder, "headpond", "completion", "") == sorted(SHELLS)


@pytest.mark.parametrize("shell", SHELLS)
def test_files_are_offered_where_a_file_is_meant(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "log", "dump", "a-") == ["a-file.log"]
    assert offered(shell, folder, "headpond", "serve", "--config", "a-") == ["a-file.log"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_whose_name_has_blanks_is_one_file(shell: str, folder: Path) -> None:
    assert offered(shell, folder, "headpond", "log", "dump", "a") == ["a * log", "a-file.log"]
    assert offered(shell, folder, "headpond", "serve", "--config", "a") == ["a * log", "a-file.log"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_the_same_for_the_same_command_line(shell: str) -> None:
    assert script(shell, whole_parser()) == script(shell, whole_parser())
