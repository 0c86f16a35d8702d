"""A release as users get it: wheel and source distribution, each installed into an environment that holds nothing but
its dependencies, and served from there."""

from __future__ import annotations

import email
import email.message
import os
import re
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

from headpond import __version__
from support.variants import kinds
from support.waiting import DEADLINE_S, eventually

pytest.importorskip("hatchling", reason="artefacts are built with hatchling, which is not installed here")
from packaging.requirements import Requirement  # comes with hatchling

ROOT = Path(__file__).parents[2]
BUILD_S_MAX = 180
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(ROOT, tmp_path_factory.mktemp("built"), "sdist", "wheel")


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"headpond-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in the source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built / f"headpond-{__version__}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.fixture(scope="module")
def wheel_of_sdist(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = _built(unpacked, tmp_path_factory.mktemp("rebuilt"), "wheel")
    return folder / f"headpond-{__version__}-py3-none-any.whl"


def _built(source: Path, folder: Path, *targets: str) -> Path:
    for target in targets:
        line = [sys.executable, "-P", "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        done = subprocess.run(line, cwd=source, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
        assert done.returncode == 0, done.stderr
    return folder


def described(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"headpond-{__version__}.dist-info/METADATA"))


# --- what is in them --------------------------------------------------------------------------------------------------


def test_the_wheel_holds_the_packages_and_nothing_of_the_repository(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"headpond/py.typed", "headpond/protocol/schema/fetch.py", "pyspark_headpond/__init__.py"} <= set(names)
    assert f"headpond-{__version__}.dist-info/licenses/LICENSE" in names
    assert {name.split("/")[0] for name in names} == {
        "headpond",
        "pyspark_headpond",
        f"headpond-{__version__}.dist-info",
    }


def test_the_source_distribution_holds_what_a_packager_needs_and_nothing_of_a_checkout(unpacked: Path) -> None:
    top = {path.name for path in unpacked.iterdir()}
    needed = {"src", "tests", "docs", "tools", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"}
    assert needed <= top
    assert not [name for name in top if name.startswith(".") and name not in (".gitignore", ".dockerignore", ".github")]
    assert not [*unpacked.rglob("*.pyc"), *unpacked.rglob("__pycache__")]


def test_both_ways_give_the_same_wheel(wheel: Path, wheel_of_sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as direct, zipfile.ZipFile(wheel_of_sdist) as rebuilt:
        assert {each.filename: each.CRC for each in direct.infolist()} == {
            each.filename: each.CRC for each in rebuilt.infolist()
        }


# --- what they say of themselves --------------------------------------------------------------------------------------


def test_who_made_it_and_where_it_lives_is_in_the_metadata(wheel: Path) -> None:
    told = described(wheel)
    assert (told["Name"], told["Version"], told["Author"]) == ("headpond", __version__, "the Headpond contributors")
    links = dict(link.split(", ", 1) for link in told.get_all("Project-URL", []))
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= links.keys()
    assert all(link.startswith("https://") for link in links.values())


def test_only_pythons_on_which_the_tests_have_passed_are_named(wheel: Path) -> None:
    pythons = [each for each in described(wheel).get_all("Classifier", []) if re.search(r":: Python :: 3\.", each)]
    assert pythons == ["Programming Language :: Python :: 3.11"]


def test_no_extra_is_empty(wheel: Path) -> None:
    told = described(wheel)
    needed = [Requirement(text) for text in told.get_all("Requires-Dist", [])]
    for extra in told.get_all("Provides-Extra", []):
        assert any(str(each.marker or "").endswith(f'extra == "{extra}"') for each in needed), extra


def test_the_readme_has_links_that_work_where_there_is_no_repository(wheel: Path) -> None:
    told = described(wheel)
    text = told.get_payload()
    assert told["Description-Content-Type"] == "text/markdown"
    assert isinstance(text, str) and text.lstrip().startswith("#")
    targets = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"""(?:src|srcset|href)=["']([^"']+)""", text)
    assert targets, "it has links"
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    ours = re.findall(r"https://[\w.]+/headpond/headpond/(?:blob/)?main/([^)\s#\"']+)", text)
    assert ours and [path for path in ours if not (ROOT / path).exists()] == []


def test_the_changelog_knows_the_version(unpacked: Path) -> None:
    assert PROJECT["version"] == __version__
    assert re.search(rf"^## \[?{re.escape(__version__)}\]?", (unpacked / "CHANGELOG.md").read_text(), re.MULTILINE)


# --- that they serve --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("artefact", kinds(["wheel", "wheel_of_sdist"], ordinary={"wheel"}))
def test_it_serves_from_an_environment_that_holds_it_and_its_dependencies_only(
    artefact: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    headpond = _installed(request.getfixturevalue(artefact), environment)
    where = _run(environment / "bin" / "python", "-c", "import headpond; print(headpond.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    with _serving(headpond, tmp_path) as address:
        said = _run(headpond, "produce", "greetings", "--create", "-b", address, folder=tmp_path, stdin="hello\n")
        assert said == ""
        assert _run(headpond, "consume", "greetings", "-b", address, folder=tmp_path) == "hello\n"


def _installed(wheel: Path, environment: Path) -> Path:
    _run(sys.executable, "-m", "venv", environment, folder=environment.parent)
    (packages,) = environment.glob("lib/python*/site-packages")
    for path in _dependencies():
        if not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    _run(*pip, "install", "-q", "--no-index", "--no-deps", wheel, folder=environment.parent)
    _run(*pip, "check", folder=environment.parent)
    return environment / "bin" / "headpond"


def _dependencies() -> set[Path]:
    """The folders and modules of what the project says that it needs, and of what that needs."""
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    seen: set[str] = set()
    found: set[Path] = set()
    while wanted:
        needed = wanted.pop()
        if needed.name in seen or (needed.marker is not None and not needed.marker.evaluate({"extra": ""})):
            continue
        seen.add(needed.name)
        distribution = metadata.distribution(needed.name)
        wanted += [Requirement(text) for text in distribution.requires or ()]
        for file in distribution.files or ():
            if file.parts[0] not in ("..", "__pycache__"):
                found.add(Path(str(distribution.locate_file(file.parts[0]))))
    return found


@contextmanager
def _serving(headpond: Path, folder: Path) -> Iterator[str]:
    with (folder / "stdout").open("w") as out, (folder / "stderr").open("w") as err:
        line = [headpond, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder / "data"]
        process = subprocess.Popen(line, cwd=folder, env=_bare_environment(), stdout=out, stderr=err)
    try:
        eventually(lambda: "listening on" in (folder / "stdout").read_text() or process.poll() is not None)
        assert process.poll() is None, (folder / "stderr").read_text()
        said = (folder / "stdout").read_text()
        assert said.startswith(f"headpond {__version__} listening on ")
        yield said.split()[-1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert "Traceback" not in (folder / "stderr").read_text()
    finally:
        process.kill()
        process.wait()


def _run(*line: str | Path, folder: Path, stdin: str = "") -> str:
    done = subprocess.run(
        line,
        cwd=folder,
        env=_bare_environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=BUILD_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def _bare_environment() -> dict[str, str]:
    """Nothing that could lead Python to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEADPOND", "VIRTUAL"))}
