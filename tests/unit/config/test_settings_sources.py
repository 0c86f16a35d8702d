"""Where settings come from, who wins, and the sentence when one is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from headpond.cli.config.command import run
from headpond.config.definition import ConfigError
from headpond.config.effective import Effective
from headpond.config.sources import load, variable_of


def file_of(text: str) -> Callable[[str], bytes]:
    return lambda path: text.encode()


def loaded(
    flags: Mapping[str, str | None] | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    toml: str | None = None,
    hostname: str = "box",
) -> Effective:
    flags = dict(flags or {})
    if toml is not None:
        flags["config"] = "headpond.toml"
    return load(flags, sets, environ or {}, file_of(toml or ""), hostname=hostname)


def origins(effective: Effective) -> dict[str, tuple[str | None, str]]:
    return {row.name: (row.value, row.origin) for row in effective.rows()}


def test_without_anything_every_setting_has_its_default() -> None:
    settings = loaded().settings
    assert origins(loaded()) == {}
    assert settings.broker_id == 1
    assert settings.network.listeners == (("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 9092),)
    assert (settings.network.request_memory_bytes_max, settings.network.response_memory_bytes_max) == (2**29, 2**29)
    assert settings.storage.flush == "ack"
    assert settings.fetch.bytes_max == 57_671_680
    assert settings.topics.auto_create and settings.topics.partitions == 1


def test_the_command_line_beats_the_environment_which_beats_the_file() -> None:
    toml = 'headpond.flush = "os"\nnum.partitions = 3\n[log.segment]\nbytes = 3145728\n'
    environ = {"HEADPOND_FLUSH": "interval", "HEADPOND_LOG_SEGMENT_BYTES": "2097152"}
    effective = loaded(None, ["log.segment.bytes=1048576"], environ, toml)
    assert origins(effective) == {
        "log.segment.bytes": ("1048576", "--set"),
        "num.partitions": ("3", "headpond.toml"),
        "headpond.flush": ("interval", "HEADPOND_FLUSH"),
    }
    assert effective.settings.log.segment_bytes == 1_048_576
    assert effective.settings.topics.partitions == 3


def test_a_stronger_source_wins_under_whichever_name_of_the_same_thing() -> None:
    effective = loaded(None, ["log.retention.hours=2"], {}, '"log.retention.ms" = 5000\nlog.dirs = "/file"\n')
    assert effective.settings.log.retention_ms == 2 * 3_600_000
    assert "log.retention.ms" not in origins(effective)
    assert loaded(None, ["log.dir=/flag"], {}, 'log.dirs = "/file"\n').settings.storage.data_dir == "/flag"


def test_within_one_source_milliseconds_beat_minutes_beat_hours() -> None:
    sets = ["log.retention.hours=9", "log.retention.minutes=3", "log.roll.hours=1"]
    assert loaded(None, sets).settings.log.retention_ms == 180_000
    assert loaded(None, [*sets, "log.retention.ms=77"]).settings.log.retention_ms == 77
    assert loaded(None, sets).settings.log.segment_ms == 3_600_000


def test_flags_environment_and_file_know_the_short_forms() -> None:
    for effective in (
        loaded({"listen": "0.0.0.0:0", "advertise": "me:7", "data_dir": "d", "broker_id": "5"}),
        loaded(
            environ={
                "HEADPOND_LISTEN": "0.0.0.0:0",
                "HEADPOND_ADVERTISE": "me:7",
                "HEADPOND_DATA_DIR": "d",
                "HEADPOND_BROKER_ID": "5",
            }
        ),
        loaded(toml='listen = "0.0.0.0:0"\nadvertise = "me:7"\ndata-dir = "d"\nbroker-id = 5\n'),
    ):
        settings = effective.settings
        assert settings.network.listeners == (("PLAINTEXT", "PLAINTEXT", "", 0, "me", 7),)
        assert (settings.storage.data_dir, settings.broker_id) == ("d", 5)


def test_several_listeners_have_names_protocols_and_advertised_addresses() -> None:
    effective = loaded(
        {"listen": "INTERNAL://10.0.0.1:9092,external://[::1]:9093", "advertise": "EXTERNAL://example.org:443"},
        ["listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"],
    )
    assert effective.settings.network.listeners == (
        ("INTERNAL", "PLAINTEXT", "10.0.0.1", 9092, "10.0.0.1", 9092),
        ("EXTERNAL", "PLAINTEXT", "::1", 9093, "example.org", 443),
    )


def test_the_short_advertise_is_about_the_first_listener_whatever_its_name() -> None:
    sets = ["listener.security.protocol.map=OUT:PLAINTEXT"]
    listener = loaded({"listen": "OUT://:9092", "advertise": "me:7"}, sets).settings.network.listeners[0]
    assert (listener.name, listener.advertised_host, listener.advertised_port) == ("OUT", "me", 7)


def test_a_listener_on_every_interface_advertises_the_hosts_name() -> None:
    assert loaded({"listen": ":9092"}, hostname="box").settings.network.listeners[0].advertised_host == "box"


def test_kafkas_controller_listener_is_left_out() -> None:
    sets = ["listeners=PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names=CONTROLLER"]
    assert [each.name for each in loaded(None, sets).settings.network.listeners] == ["PLAINTEXT"]


def test_the_set_variable_splits_only_where_a_name_follows() -> None:
    environ = {"HEADPOND_SET": "num.partitions=3,log.cleanup.policy=compact,delete\nbroker.rack=r1"}
    assert origins(loaded(None, (), environ)) == {
        "broker.rack": ("r1", "HEADPOND_SET"),
        "log.cleanup.policy": ("compact,delete", "HEADPOND_SET"),
        "num.partitions": ("3", "HEADPOND_SET"),
    }


def test_an_empty_variable_and_other_programs_variables_count_as_not_set() -> None:
    environ = {"HEADPOND_FLUSH": "", "HEADPOND_HOME": "/x", "KAFKA_HEAP_OPTS": "-Xmx1G"}
    assert load({}, [], environ, file_of(""), other_variables={"HEADPOND_HOME"}).static == {}


def test_the_file_may_nest_tables_quote_names_and_hold_lists() -> None:
    toml = '[log]\ncleanup.policy = ["compact", "delete"]\n"segment.bytes" = 2097152\n'
    toml += "[auto.create.topics]\nenable = false\n"
    settings = loaded(toml=toml).settings
    assert (settings.log.compacts, settings.log.deletes, settings.log.segment_bytes) == (True, True, 2_097_152)
    assert not settings.topics.auto_create


@pytest.mark.parametrize(
    ("flags", "sets", "environ", "toml", "sentence"),
    [
        (
            {"listen": "x"},
            [],
            {},
            None,
            "--listen: 'x' is not an address: it should be HOST:PORT, as in 127.0.0.1:9092",
        ),
        ({"listen": "::1:9092"}, [], {}, None, "write an IPv6 host in brackets"),
        ({"listen": "h:70000"}, [], {}, None, "it should be HOST:PORT"),
        ({"broker-id": "x"}, [], {}, None, "configuration node.id: Not a number of type INT (from --broker-id)"),
        (
            {},
            ["log.segment.byte=1"],
            {},
            None,
            "unknown setting log.segment.byte (from --set), did you mean log.segment.bytes?",
        ),
        ({}, ["log.segment.bytes=1"], {}, None, "Value must be at least 1048576 (from --set)"),
        ({}, ["headpond.flush=never"], {}, None, "String must be one of: ack, interval, os (from --set)"),
        (
            {},
            ["retention.ms=1"],
            {},
            None,
            "a setting of topics, not of the broker: the broker's default for it is log.retention.ms",
        ),
        ({}, ["nonsense"], {}, None, "--set nonsense: it should be name=value"),
        (
            {},
            [],
            {"HEADPOND_LOG_SEGMNT_BYTES": "1"},
            None,
            "unknown variable HEADPOND_LOG_SEGMNT_BYTES, did you mean HEADPOND_LOG_SEGMENT_BYTES?",
        ),
        ({}, [], {"HEADPOND_NUM_PARTITIONS": "0"}, None, "Value must be at least 1 (from HEADPOND_NUM_PARTITIONS)"),
        ({}, [], {"HEADPOND_SET": "x"}, None, "HEADPOND_SET: 'x' should be name=value"),
        (
            {},
            [],
            {},
            "[log.segmen]\nbytes = 1\n",
            "unknown setting log.segmen.bytes (from headpond.toml), did you mean log.segment.bytes?",
        ),
        ({}, [], {}, "x = [", "the settings file headpond.toml is not TOML"),
        ({}, [], {}, "num.partitions = 2020-01-01\n", "num.partitions in headpond.toml should be a text, a number"),
        ({}, ["log.dirs=a,b"], {}, None, "log.dirs must name one folder, not 2: a, b"),
        ({}, ["log.dirs="], {}, None, "log.dirs must name one folder, not 0: none"),
        ({}, ["node.id=1", "broker.id=2"], {}, None, "node.id (1) and broker.id (2) must be the same"),
        (
            {"listen": ":1"},
            ["listeners=PLAINTEXT://:2"],
            {},
            None,
            "listeners is given twice: by --listen and by --set",
        ),
        (
            {},
            [],
            {},
            'listen = ":1"\nlisteners = "PLAINTEXT://:2"\n',
            "listeners is given twice by headpond.toml: as listen and as listeners",
        ),
        ({}, ["node.id=1", "node.id=2"], {}, None, "node.id is given twice by --set"),
        ({}, ["listeners=SSL://:9092"], {}, None, "the listener SSL asks for SSL: only PLAINTEXT is served"),
        (
            {},
            ["listener.security.protocol.map=PLAINTEXT:NOPE"],
            {},
            None,
            "Invalid security protocol `NOPE` defined in listener.security.protocol.map",
        ),
        ({"listen": f"h:{'9' * 5_000}"}, [], {}, None, "it should be HOST:PORT"),
        ({}, [f"listeners=PLAINTEXT://h:{'9' * 5_000}"], {}, None, "it should be HOST:PORT"),
        ({}, [f"max.connections.per.ip.overrides=h:{'9' * 5_000}"], {}, None, "should be HOST:COUNT"),
        ({}, ["max.connections.per.ip.overrides=h:5,,i:6"], {}, None, "'' should be HOST:COUNT"),
        ({}, ["max.connections.per.ip.overrides=h:1_0"], {}, None, "'h:1_0' should be HOST:COUNT"),
        ({}, [], {}, f"num.partitions = {'9' * 5_000}\n", "the settings file headpond.toml is not TOML"),
        ({}, [], {}, f"x = {'[' * 5_000}", "the settings file headpond.toml is not TOML"),
        ({}, ["group.consumer.assignors="], {}, None, "group.consumer.assignors: it must not be empty"),
        ({}, ["group.consumer.assignors=range,x"], {}, None, "unknown assignor 'x', there are uniform and range"),
        ({}, ["connections.max.idle.ms=100"], {}, None, "should always be less than connections.max.idle.ms=100"),
        ({}, ["listeners=X://:9092"], {}, None, "has no security protocol for the listener X"),
        ({}, ["listeners=PLAINTEXT://:1,PLAINTEXT://:2"], {}, None, "each listener must have a different name"),
        ({"advertise": "0.0.0.0:9092"}, [], {}, None, "must name a host that clients can reach"),
        ({}, ["advertised.listeners=OTHER://h:1"], {}, None, "names the listener OTHER, which listeners does not have"),
        (
            {},
            ["headpond.request.memory.bytes=1048576"],
            {},
            None,
            "must be at least socket.request.max.bytes (104857600)",
        ),
        (
            {},
            ["queued.max.request.bytes=5"],
            {},
            None,
            "queued.max.request.bytes (5) must be at least socket.request.max.bytes",
        ),
        ({}, ["max.connections.per.ip=0"], {}, None, "can be 0 only if max.connections.per.ip.overrides is set"),
        ({}, ["max.connections.per.ip.overrides=host"], {}, None, "'host' should be HOST:COUNT"),
        ({}, ["log.roll.ms=0"], {}, None, "log.roll.ms must be greater than or equal to 1"),
        (
            {},
            ["log.retention.ms=0"],
            {},
            None,
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(
    flags: Mapping[str, str], sets: Sequence[str], environ: Mapping[str, str], toml: str | None, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(flags, sets, environ, toml)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named() -> None:
    def missing(path: str) -> bytes:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(ConfigError, match=r"the settings file nope\.toml cannot be read: No such file or directory"):
        load({}, [], {"HEADPOND_CONFIG": "nope.toml"}, missing)


def test_the_value_of_a_secret_appears_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    effective = Effective({"ssl.key.password": "hunter2", "log.dirs": "/d"}, {"ssl.key.password": "--set"})
    run(effective)
    run(effective, json=True)
    run(effective, all=True)
    shown = capsys.readouterr().out
    assert "hunter2" not in shown and "[hidden]" in shown


def test_headpond_config_shows_an_aligned_table_with_origins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(loaded({"data-dir": "/d"}, ["num.partitions=3"])) == 0
    assert capsys.readouterr().out == (
        "setting         value  from\n"
        "log.dirs        /d     --data-dir\n"
        "num.partitions  3      --set\n"
    )  # fmt: skip


def test_headpond_config_shows_every_default_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    run(loaded(), all=True, json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    flush = {"name": "headpond.flush", "value": "ack", "origin": "default", "has_effect": True}
    assert rows["headpond.flush"] == flush
    assert len(rows) > 340 and "log.initial.task.delay.ms" not in rows


def test_the_variable_of_a_setting() -> None:
    assert variable_of("log.segment.bytes") == "HEADPOND_LOG_SEGMENT_BYTES"
    assert variable_of("headpond.request.memory.bytes") == "HEADPOND_REQUEST_MEMORY_BYTES"


def test_a_misspelt_short_variable_is_shown_the_right_one() -> None:
    with pytest.raises(ConfigError, match="did you mean HEADPOND_DATA_DIR"):
        load({}, [], {"HEADPOND_DATADIR": "x"}, lambda path: b"")
