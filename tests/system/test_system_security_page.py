"""What SECURITY.md says of the broker, where a test can tell."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from headpond.config.definition import ConfigError
from headpond.config.registry import broker_settings
from headpond.config.sources import load
from headpond.config.without_effect import security_reason
from support.batches import build
from support.broker import BrokerProcess, headpond_command, headpond_environment, run_headpond
from support.confinement import Confined, needs_systemd
from support.verbs import append, create_topic, stored
from support.wire import Wire

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()


def test_by_default_it_listens_on_loopback_only_and_serves_no_metrics() -> None:
    settings = load({}, [], {}, lambda _: b"", hostname="box").settings
    assert [(each.host, each.protocol) for each in settings.network.listeners] == [("127.0.0.1", "PLAINTEXT")]
    assert settings.metrics is None


def named_settings() -> list[str]:
    (sentence,) = re.findall(r"from every source of settings: (.*?)\. A listener", PAGE, re.DOTALL)
    return re.findall(r"`([^`]+)`", sentence)


def test_the_page_names_every_kind_of_setting_that_is_refused() -> None:
    named = named_settings()
    assert len(named) == 9
    kinds = tuple(name.removesuffix("*") for name in named)
    refused = [name for name in broker_settings() if security_reason(name)]
    unnamed = {name for name in refused if not name.startswith(kinds)}
    assert unnamed == {
        "alter.config.policy.class.name",
        "client.quota.callback.class",
        "create.topic.policy.class.name",
        "connections.max.reauth.ms",
    }, "the policy classes, and what belongs to SASL"


@pytest.mark.parametrize("name", named_settings())
@pytest.mark.parametrize("source", ["--set", "variable", "TOML", "properties"])
def test_a_security_setting_without_effect_is_refused_from_every_source(name: str, source: str) -> None:
    name = name.replace("listener.name.*", "listener.name.plaintext.ssl.keystore.location")
    name = {
        "authorizer.*": "authorizer.class.name",
        "sasl.*": "sasl.jaas.config",
        "ssl.*": "ssl.keystore.location",
    }.get(name, name)
    name = {"security.*": "security.providers", "delegation.token.*": "delegation.token.secret.key"}.get(name, name)
    path = {"TOML": "a.toml", "properties": "a.properties"}.get(source)
    text = f'"{name}" = "x"\n' if source == "TOML" else f"{name}=x\n"
    with pytest.raises(ConfigError, match="would have no effect"):
        load(
            {"config": path},
            [f"{name}=x"] if source == "--set" else [],
            {"HEADPOND_SET": f"{name}=x"} if source == "variable" else {},
            lambda _: text.encode(),
        )


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_that_would_need_security_is_refused(protocol: str) -> None:
    done = run_headpond("config", "--listen", f"{protocol}://127.0.0.1:0")
    assert done.returncode == 2 and f"asks for {protocol}: only PLAINTEXT is served" in done.stderr


@needs_systemd
def test_the_broker_opens_no_outgoing_connection(tmp_path: Path) -> None:
    """A call of ``connect`` would end it."""
    broker = Confined(tmp_path, lethal=["connect"], settings={"headpond.metrics.listen": "127.0.0.1:0"})
    with contextlib.closing(broker):
        broker.started()
        for _ in range(2):
            with Wire(broker.bootstrap_servers) as wire:
                topic = create_topic(wire, f"orders-{os.urandom(4).hex()}")
                append(wire, topic, build([b"x"]))
                assert len(stored(wire, topic)) == 1
            broker.restart(kill=True)
        broker.stop()


@needs_systemd
def test_a_process_that_connects_would_have_been_ended(tmp_path: Path) -> None:
    with contextlib.closing(Confined(tmp_path, lethal=["connect"])) as broker:
        broker.started()
        line = [*broker.wrapper, *headpond_command("topics", "list", "-b", broker.bootstrap_servers)]
        done = subprocess.run(line, check=False, capture_output=True, env=headpond_environment())
        assert done.returncode == -signal.SIGSYS, done.stderr


def test_files_get_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    with contextlib.closing(BrokerProcess(tmp_path)) as broker:
        broker.wrapper = ["sh", "-c", 'umask 077; exec "$@"', "sh"]
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            append(wire, create_topic(wire, "orders"), build([b"x"]))
        broker.stop()
        made = [broker.data_dir, *broker.data_dir.rglob("*")]
        assert len(made) > 8
        assert {path.name for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077} == set()


def test_the_value_of_an_unknown_setting_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("plugin.password=hunter2\nnum.partitions=2\n")
    done = run_headpond("config", "--config", str(file))
    assert done.returncode == 0 and "plugin.password" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_what_the_page_says_of_unit_container_and_links_is_so() -> None:
    assert "UMask=0077" in (ROOT / "deploy" / "headpond.service").read_text()
    assert "-m 0700 /data" in (ROOT / "Containerfile").read_text()
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", PAGE) if ":" not in target]
    assert targets and [target for target in targets if not (ROOT / target).exists()] == []
