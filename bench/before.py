"""Headpond as it was at a commit: a work tree and an environment of its own in bench/build/before, made on first use.

build(commit)      check the commit out and install it, unless that is what is there already
revision()         what is measured here; is_in_history(revision): whether it can be found later
program()          the console script that the tree itself declares, whatever the package is called by now
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

from .tools import BUILD, HERE

COMMIT = "1704248"
"""What `--servers headpond,before` compares with, unless `--before` names another commit."""
FOLDER = BUILD / "before"
INSTALL_MAX_S = 600.0


class CannotBuild(Exception):
    """The message says which step failed, and why."""


def build(commit: str) -> None:
    """Raises ``CannotBuild``. A build that was interrupted is made anew."""
    tree, environment, mark = FOLDER / "tree", FOLDER / "venv", FOLDER / "ready"
    wanted = f"{_run('git', '-C', str(HERE), 'rev-parse', '--verify', commit + '^{commit}')} {sys.version}"
    if mark.exists() and mark.read_text() == wanted:
        return
    mark.unlink(missing_ok=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    full_commit = wanted.split()[0]
    if (tree / ".git").exists():
        _run("git", "-C", str(tree), "checkout", "--quiet", "--force", "--detach", full_commit)
    else:
        shutil.rmtree(tree, ignore_errors=True)
        _run("git", "-C", str(HERE), "worktree", "prune")  # a tree whose folder was removed is still registered
        _run("git", "-C", str(HERE), "worktree", "add", "--quiet", "--detach", str(tree), full_commit)
    shutil.rmtree(environment, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(environment))
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    _run(*pip, "--constraint", str(tree / "constraints.txt"), "--editable", str(tree))
    mark.write_text(wanted)


def program() -> str:
    return str(FOLDER / "venv" / "bin" / script())


def script() -> str:
    """The name of the command in that tree, which is the prefix of its own settings, too."""
    declared = tomllib.loads((FOLDER / "tree" / "pyproject.toml").read_text())["project"]["scripts"]
    return str(next(iter(declared)))


def revision() -> str:
    """What is measured here: the commit, and whether files differ from it."""
    try:
        commit = _run("git", "-C", str(HERE), "rev-parse", "--short", "HEAD")
        changed = _run("git", "-C", str(HERE), "status", "--porcelain", "--untracked-files=no")
    except CannotBuild:
        return "unknown"
    return f"{commit} with changes" if changed else commit


def is_in_history(commit: str) -> bool:
    """Whether what is here grew out of it, with or without changes: others can look it up."""
    try:
        _run("git", "-C", str(HERE), "merge-base", "--is-ancestor", commit.split()[0], "HEAD")
    except CannotBuild:
        return False
    return True


def _run(*command: str) -> str:
    # Variables of git's hooks would point it at another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_MAX_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{command[0]}: {error}") from None
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}: {done.stderr.strip()[-300:] or f'exit {done.returncode}'}")
    return done.stdout.strip()
