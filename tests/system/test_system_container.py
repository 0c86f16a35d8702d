"""The container file: what it says, and its steps run one by one in a Debian made for them, where there is no engine to
build an image. The broker then runs as in a hardened container: uid 65532, no capabilities, nothing writable but /data.

The second part downloads a Debian and the dependencies: ``make container-test``, as root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headpond import __version__
from headpond.config.sources import load
from support.broker import BrokerProcess, run_headpond
from support.containerfile import Builder, Stage, images, instructions
from support.waiting import DEADLINE_S, eventually

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text()
UV = "ghcr.io/astral-sh/uv:"
OWNER = 65532
PREPARE_S_MAX = 900
PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "UV_INDEX_URL")


def last_stage() -> list[tuple[str, str]]:
    steps = instructions(TEXT)
    return steps[max(at for at, (word, _) in enumerate(steps) if word == "FROM") :]


def test_it_runs_as_nobody_s_user_with_its_data_in_a_volume_and_without_a_shell() -> None:
    said = dict(last_stage())
    assert said["USER"] == f"{OWNER}:{OWNER}"
    assert said["VOLUME"] == '["/data"]'
    assert said["EXPOSE"] == "9092"
    assert said["ENTRYPOINT"] == '["/opt/headpond/bin/headpond"]' and said["CMD"] == '["serve"]'
    assert " CMD [" in said["HEALTHCHECK"]


def test_every_image_has_a_version_and_the_stages_share_their_base() -> None:
    named = images(TEXT)
    assert all(image.rpartition(":")[2] not in ("", "latest") for image in named)
    bases = {rest.split()[0] for word, rest in instructions(TEXT) if word == "FROM"}
    assert len(bases) == 1, "the environment's Python is a link to the base's"


def test_what_is_copied_from_the_repository_is_let_through_to_the_engine() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        path
        for word, rest in instructions(TEXT)
        if word == "COPY" and "--from" not in rest
        for path in rest.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / path).exists() for path in copied)


def test_its_health_check_asks_the_broker_itself_wherever_that_sends_its_clients(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    check = shlex.split(dict(last_stage())["HEALTHCHECK"].partition(" CMD ")[2].translate(str.maketrans("[],", "   ")))
    broker = make_broker(arguments=["--advertise", "nowhere.invalid:1"]).start()
    arguments = [word.replace("127.0.0.1:9092", broker.bootstrap_servers) for word in check[1:]]
    done = run_headpond(*arguments)
    assert (check[0], done.returncode) == ("/opt/headpond/bin/headpond", 0), done.stderr
    broker.kill()
    assert run_headpond(*arguments).returncode == 1


def test_the_compose_example_makes_a_broker_for_this_machine_and_for_its_neighbours() -> None:
    yaml = pytest.importorskip("yaml", reason="the example is read with PyYAML, which is not installed here")
    (service,) = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"].values()
    assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).samefile(
        ROOT / "Containerfile"
    )
    assert all(port.startswith("127.0.0.1:") for port in service["ports"]), "it asks nobody for a password"
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    image = dict(pair.split("=", 1) for word, rest in last_stage() if word == "ENV" for pair in rest.split())
    variables = {name: text for name, text in (image | service["environment"]).items() if name.startswith("HEADPOND_")}
    settings = load({}, [], variables, lambda _: b"").settings
    assert [each[2:] for each in settings.network.listeners] == [
        ("", 9092, "localhost", 9092),
        ("", 29092, "headpond", 29092),
    ]
    assert settings.storage.data_dir == "/data" and service["volumes"] == ["headpond-data:/data"]


# --- its steps --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if not os.environ.get("HEADPOND_TEST_DOWNLOADS"):
        pytest.skip("needs downloads (HEADPOND_TEST_DOWNLOADS); `make container-test` allows them")
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a root folder and changes into it")
    if shutil.which("debootstrap") is None and shutil.which("apt-get") is not None:
        subprocess.run(["apt-get", "install", "-y", "-qq", "debootstrap"], capture_output=True, check=False)
    for program in ("debootstrap", "unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    folder = tmp_path_factory.mktemp("container")
    base = debian(folder / "base")
    reach = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    reach["SSL_CERT_FILE"] = "/etc/ssl/certs/ca-certificates.crt"
    yield Builder(ROOT, folder, base, {UV: uv(folder / "uv")}, reach).build(TEXT)
    shutil.rmtree(folder, ignore_errors=True)  # some 700 MB


def debian(root: Path) -> Path:
    """Stands for python:3.11-slim-bookworm: the same release, with the Python that it has."""
    release = "bookworm"
    assert release in TEXT
    packages = "python3.11,ca-certificates"
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(root)],
        capture_output=True,
        text=True,
        timeout=PREPARE_S_MAX,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no Debian could be had: {done.stdout.strip().splitlines()[-1:]}")
    for file in ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt"):  # the network as it is here
        shutil.copyfile(file, root / file.lstrip("/"))
    return root


def uv(folder: Path) -> Path:
    """Stands for uv's image: the same program, from PyPI."""
    (version,) = {image.removeprefix(UV) for image in images(TEXT) if image.startswith(UV)}
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "download", "-q", "--no-deps", "-d", folder, f"uv=={version}"]
    subprocess.run(pip, check=True, timeout=PREPARE_S_MAX)
    (wheel,) = folder.glob("uv-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/scripts/uv")]
        (folder / "uv").write_bytes(archive.read(name))
    (folder / "uv").chmod(0o755)
    return folder


class Container:
    """The image, running: namespaces of its own for mounts and network, a read-only root, /data from elsewhere."""

    def __init__(self, image: Stage, folder: Path) -> None:
        self._image = image
        self._said = folder / "said"
        data = folder / "volume"
        shutil.copytree(image.root / "data", data)
        shutil.copystat(image.root / "data", data)
        os.chown(data, OWNER, OWNER)  # as an engine fills a new volume
        root = image.root
        prepare = (
            "set -e; ip link set lo up; "
            f"mount --bind {root} {root}; mount --bind {data} {root}/data; mount -o remount,bind,ro {root}; "
            f"mount -t proc proc {root}/proc; mount -t tmpfs -o mode=755 dev {root}/dev; "
            f"for each in null zero urandom random; do touch {root}/dev/$each; "
            f"mount --bind /dev/$each {root}/dev/$each; done; "
        )
        line = self._as_owner(["chroot", str(root)], [*image.command("ENTRYPOINT"), *image.command("CMD")])
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--net", "sh", "-c", f'{prepare} exec "$@"', "sh", *line],
                stdout=said,
                stderr=said,
            )

    def _as_owner(self, inside: list[str], command: list[str]) -> list[str]:
        given = {**self._image.environment, "HEADPOND_ADVERTISE": "127.0.0.1:9092"}
        variables = [f"{name}={value}" for name, value in given.items()]
        no_power = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--clear-groups"]
        who = ["/usr/bin/setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", *no_power]
        return [*inside, *who, "/usr/bin/env", "-i", "-C", self._image.folder, *variables, *command]

    def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """As ``docker exec`` does."""
        inside = ["nsenter", f"--target={self.process.pid}", "--mount", "--net", "--root", "--wd"]
        return subprocess.run(
            self._as_owner(inside, list(command)),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def said(self) -> str:
        return self._said.read_text()

    def wait_ready(self) -> None:
        eventually(lambda: "listening on" in self.said() or self.process.poll() is not None, what=self.said)
        assert self.process.poll() is None, self.said()


@pytest.fixture(scope="module")
def container(image: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    running = Container(image, tmp_path_factory.mktemp("running"))
    try:
        running.wait_ready()
        yield running
    finally:
        running.process.kill()
        running.process.wait()


with_downloads = pytest.mark.interop


@with_downloads
def test_the_broker_serves_as_uid_65532_on_a_read_only_root(container: Container) -> None:
    status = Path(f"/proc/{container.process.pid}/status").read_text()
    assert f"Uid:\t{OWNER}\t{OWNER}" in status and "CapEff:\t0000000000000000" in status
    assert f"headpond {__version__} listening on 0.0.0.0:9092" in container.said()
    refused = container.run("/usr/bin/touch", "/opt/headpond/x", "/tmp/x", "/etc/x")
    assert refused.stderr.count("Read-only file system") == 3
    headpond = "/opt/headpond/bin/headpond"
    written = container.run(headpond, "produce", "greetings", "--create", stdin="hello\n")
    assert written.returncode == 0, written.stderr
    assert container.run(headpond, "consume", "greetings").stdout == "hello\n"


@with_downloads
def test_its_health_check_passes_while_it_serves_and_fails_elsewhere(container: Container, image: Stage) -> None:
    check = image.command("HEALTHCHECK")
    passed = container.run(*check)
    assert passed.returncode == 0, passed.stderr
    elsewhere = [*check[:-4], "--bootstrap-server", "127.0.0.1:9", "--timeout", "1"]
    assert container.run(*elsewhere).returncode == 1


@with_downloads
def test_it_stops_at_the_signal_that_the_image_names(container: Container, image: Stage) -> None:
    container.process.send_signal(getattr(signal, image.settings["STOPSIGNAL"]))
    assert container.process.wait(DEADLINE_S) == 0
    assert "Traceback" not in container.said()
