"""Starting and stopping a broker the way people do: flags, variables, files, signals, and every way to get it wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headpond.protocol.schema.metadata import MetadataRequest
from support.batches import build
from support.broker import BrokerProcess, StartFailed, run_headpond
from support.variants import kinds, rare
from support.verbs import append, create_topic, end_offset, fetch_partition, fetch_request
from support.wire import Wire

MARKER = ".kafka_cleanshutdown"


@pytest.mark.parametrize("with_signal", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_and_the_next_start_has_nothing_to_complain_about(
    fresh_broker: BrokerProcess, with_signal: signal.Signals
) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        append(wire, topic, build([b"x"] * 3))
    assert not (fresh_broker.data_dir / MARKER).exists()
    fresh_broker.stop(with_signal=with_signal)
    assert (fresh_broker.data_dir / MARKER).exists()
    fresh_broker.start()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        assert end_offset(wire, topic) == 3
    fresh_broker.stop()
    assert "WARNING" not in fresh_broker.logs() and "ERROR" not in fresh_broker.logs()


def test_it_stops_while_clients_wait_for_records(fresh_broker: BrokerProcess) -> None:
    with Wire(fresh_broker.bootstrap_servers) as wire:
        topic = create_topic(wire, "orders")
        wire.send(fetch_request({topic: [fetch_partition()]}, version=12, max_wait_ms=300_000), 12)
        fresh_broker.stop()


def test_one_line_says_that_it_is_ready_and_where(fresh_broker: BrokerProcess) -> None:
    lines = fresh_broker.stdout().splitlines()
    assert len(lines) == 1
    assert f"listening on {fresh_broker.bootstrap_servers}" in lines[0]
    assert fresh_broker.port > 0


def test_the_advertised_address_is_what_clients_are_told(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(arguments=["--advertise", "broker.example:1234", "--broker-id", "7"]).start()
    with Wire(broker.bootstrap_servers) as wire:
        (told,) = wire.call(MetadataRequest(topics=[]), 12).brokers
    assert (told.node_id, told.host, told.port) == (7, "broker.example", 1234)


def test_a_folder_in_use_is_refused_and_its_owner_goes_on(
    fresh_broker: BrokerProcess, make_broker: Callable[..., BrokerProcess]
) -> None:
    second = make_broker("second")
    second.data_dir = fresh_broker.data_dir
    with pytest.raises(StartFailed):
        second.start()
    assert second.wait_exit() == 1
    assert str(fresh_broker.data_dir) in second.logs()
    assert "in use" in second.logs() and "Traceback" not in second.logs()
    with Wire(fresh_broker.bootstrap_servers) as wire:
        create_topic(wire, "orders")


def test_a_port_in_use_is_refused(fresh_broker: BrokerProcess, make_broker: Callable[..., BrokerProcess]) -> None:
    second = make_broker("second", port=fresh_broker.port)
    with pytest.raises(StartFailed):
        second.start()
    assert second.wait_exit() == 1
    assert f"{fresh_broker.port}" in second.logs()
    assert "in use" in second.logs() and "Traceback" not in second.logs()


def test_a_folder_that_can_t_be_used_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    for folder in (file, file / "below" / "it"):
        done = run_headpond("serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder))
        assert done.returncode == 1
        why = f"{file} is a file, and a folder is wanted"
        assert done.stderr == f"headpond: the data folder {folder} can't be used: {why}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "log.retention.mss=1"], "log.retention.ms"),
        rare(["--set", "headpond.flsh=os"], "headpond.flush"),
        rare(["--set", "headpond.flush=never"], "ack"),
        rare(["--set", "log.segment.bytes=many"], "log.segment.bytes"),
        (["--set", "log.segment.bytes=10"], "1048576"),
        rare(["--set", "log.segment.bytes"], "name=value"),
        rare(["--listen", "nowhere"], "nowhere"),
        (["--listen", "127.0.0.1:99999"], "99999"),
        rare(["--broker-id", "one"], "one"),
        (["--log-level", "loud"], "DEBUG, INFO, WARNING, WARN, ERROR (from --log-level)"),
        (["--config", "no-such-file.toml"], "no-such-file.toml"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_setting_is_refused_with_a_hint(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = run_headpond("serve", "--data-dir", str(tmp_path / "data"), *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists(), "nothing was touched"


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"HEADPOND_LOG_RETENTION_MSS": "1"}, "HEADPOND_LOG_RETENTION_MS"),
        rare({"HEADPOND_FLUSH": "never"}, "HEADPOND_FLUSH"),
        rare({"HEADPOND_SET": "log.retention.mss=1"}, "log.retention.ms"),
    ],
    ids=str,
)
def test_a_wrong_variable_is_refused_with_a_hint(tmp_path: Path, env: dict[str, str], says: str) -> None:
    done = run_headpond("serve", "--data-dir", str(tmp_path / "data"), env=env)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def effective(*arguments: str, env: dict[str, str] | None = None) -> dict[str, tuple[str, str]]:
    """What ``headpond config`` says: setting -> (value, origin)."""
    done = run_headpond("config", "--json", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return {row["name"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)}


def test_the_command_line_is_stronger_than_variables_and_these_than_the_file(tmp_path: Path) -> None:
    file = tmp_path / "headpond.toml"
    file.write_text('"log.retention.hours" = 1\n"log.segment.bytes" = 2000000\n[headpond]\nflush = "os"\n')
    env = {"HEADPOND_LOG_RETENTION_HOURS": "2", "HEADPOND_LOG_SEGMENT_BYTES": "3000000"}
    found = effective("--config", str(file), "--set", "log.segment.bytes=4000000", env=env)
    assert found["log.segment.bytes"][0] == "4000000" and "--set" in found["log.segment.bytes"][1]
    assert found["log.retention.hours"][0] == "2" and "HEADPOND_" in found["log.retention.hours"][1]
    assert found["headpond.flush"][0] == "os" and "headpond.toml" in found["headpond.flush"][1]


def test_config_prints_every_setting_when_asked() -> None:
    plain = run_headpond("config", "--set", "num.partitions=5").stdout
    assert "num.partitions" in plain and "5" in plain and "log.segment.bytes" not in plain
    everything = effective("--all")
    assert everything["log.segment.bytes"] == ("1073741824", "default")


def test_settings_reach_the_broker_from_variable_and_file(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    file = tmp_path / "headpond.toml"
    file.write_text('"num.partitions" = 3\n')
    broker = make_broker(arguments=["--config", str(file)], env={"HEADPOND_AUTO_CREATE_TOPICS_ENABLE": "false"}).start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "orders", partitions=-1)
        names = [MetadataRequest.MetadataRequestTopic(name=n) for n in ("orders", "made-by-asking")]
        orders, other = wire.call(MetadataRequest(topics=names, allow_auto_topic_creation=True), 12).topics
        assert (len(orders.partitions), other.error_code) == (3, 3)
        again = wire.call(MetadataRequest(topics=names[1:], allow_auto_topic_creation=True), 12).topics[0]
        assert again.error_code == 3, "creation by asking is off"


def test_everything_can_come_from_variables(tmp_path: Path, make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(env={"HEADPOND_BROKER_ID": "9", "HEADPOND_SET": "num.partitions=4"}).start()
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.call(MetadataRequest(topics=[]), 12).brokers[0].node_id == 9
    assert os.listdir(broker.data_dir)


@pytest.mark.parametrize(
    "source", kinds(["flag", "variable", "TOML", "properties", "setting"], ordinary={"flag", "TOML"})
)
def test_the_log_level_comes_from_wherever_settings_do(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, source: str
) -> None:
    toml, properties = tmp_path / "a.toml", tmp_path / "a.properties"
    toml.write_text('log-level = "error"\n')
    properties.write_text("headpond.log.level=Error\n")
    options: dict[str, dict[str, Any]] = {
        "flag": {"arguments": ["--log-level", "error"]},
        "variable": {"env": {"HEADPOND_LOG_LEVEL": "ERROR"}},
        "TOML": {"arguments": ["--config", str(toml)]},
        "properties": {"arguments": ["--config", str(properties)]},
        "setting": {"settings": {"headpond.log.level": "error"}},
    }
    broker = make_broker(**options[source]).start()
    broker.stop()
    assert "Ctrl-C stops it" in broker.logs() and "INFO" not in broker.logs()  # not even that it stops
    broker.arguments = ["--log-level", "debug"] if source != "setting" else []
    broker.settings = {"headpond.log.level": "debug"} if source == "setting" else {}
    broker.start()
    broker.stop()
    assert "INFO headpond.lifecycle: stopped" in broker.logs()


def test_a_kafkas_server_properties_starts_a_broker_with_a_warning_each_for_what_is_unused_and_what_is_unknown(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=3\ncontroller.quorum.voters=3@localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        "advertised.listeners=PLAINTEXT://localhost:9092\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n"
        "log.dirs=/var/lib/kafka\nnum.io.threads=16\nnum.partitions=2\nzookeeper.connect=localhost:2181\n"
    )
    broker = make_broker(arguments=["--config", str(file)]).start()
    with Wire(broker.bootstrap_servers) as wire:
        create_topic(wire, "orders", partitions=-1)
        answer = wire.call(MetadataRequest(topics=None), 12)
        assert (answer.brokers[0].node_id, len(answer.topics[0].partitions)) == (3, 2)
    broker.stop()
    unused, unknown = [line.partition(": ")[2] for line in broker.logs().splitlines() if "WARNING" in line]
    assert unused == "settings without effect here: controller.quorum.voters, num.io.threads, process.roles"
    assert unknown == "unknown settings, ignored: zookeeper.connect"


def test_another_broker_id_on_the_same_folder_is_refused(fresh_broker: BrokerProcess) -> None:
    fresh_broker.stop()
    fresh_broker.arguments = ["--broker-id", "55"]
    with pytest.raises(StartFailed):
        fresh_broker.start()
    assert fresh_broker.wait_exit() == 1
    assert "55" in fresh_broker.logs() and "Traceback" not in fresh_broker.logs()


def test_version_and_help() -> None:
    assert run_headpond("--version").stdout.startswith("headpond ")
    assert "serve" in run_headpond("--help").stdout
    assert run_headpond("sreve").returncode == 2
