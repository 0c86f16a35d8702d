"""The registry against what a real Kafka 4.3.1 says of its settings (kafka-4.3.1-settings.json)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from headpond.config.broker import (
    FetchSettings,
    MetricsSettings,
    NetworkSettings,
    OutputSettings,
    StorageSettings,
    TopicDefaults,
)
from headpond.config.compaction import CompactionSettings
from headpond.config.definition import DOUBLE, TYPE_NAMES, ConfigError, InvalidValue, Setting, java_double, to_text
from headpond.config.documentation import documentation
from headpond.config.effective import Effective
from headpond.config.groups import GroupSettings
from headpond.config.known.of_topics import BROKER_NAMES, TOPIC_SETTINGS
from headpond.config.known.used import OWN_DEFAULTS, USED_SETTINGS
from headpond.config.log import LogConfig
from headpond.config.registry import broker_setting, broker_settings, topic_setting
from headpond.config.transactions import TransactionSettings

KAFKA = json.loads((Path(__file__).parent / "kafka-4.3.1-settings.json").read_text())
LISTENERS_NEED_A_RESTART = {"listeners", "listener.security.protocol.map"}


def ours() -> dict[str, Setting]:
    return {name: setting for name, setting in broker_settings().items() if name.startswith("headpond.")}


def test_every_broker_setting_of_kafka_is_known_and_no_other_but_ours() -> None:
    assert broker_settings().keys() - ours().keys() == KAFKA["broker"].keys() | KAFKA["dynamic_only"].keys()


def test_every_topic_setting_of_kafka_is_known_and_no_other_but_ours() -> None:
    assert TOPIC_SETTINGS.keys() - {"headpond.validate.records"} == KAFKA["topic"].keys()


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_types_and_defaults_are_kafkas(kind: str) -> None:
    find = broker_setting if kind == "broker" else topic_setting
    for name, fact in KAFKA[kind].items():
        setting = find(name)
        assert setting is not None
        assert TYPE_NAMES[setting.type] == fact["type"], name
        if name not in OWN_DEFAULTS:
            assert setting.default == fact["default"], name
            assert to_text(setting.parse(setting.default)) == fact["default"], name
        assert setting.internal == fact["internal"], name


def test_what_may_change_while_running_is_what_may_in_kafka_except_the_listeners() -> None:
    for name, fact in KAFKA["broker"].items():
        setting = broker_setting(name)
        assert setting is not None
        assert setting.mode == ("read-only" if name in LISTENERS_NEED_A_RESTART else fact["mode"]), name


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_ranges_are_kafkas_at_both_ends(kind: str) -> None:
    find = broker_setting if kind == "broker" else topic_setting
    looked_at = 0
    for name, fact in KAFKA[kind].items():
        if ",..." not in fact["valid"] or not fact["valid"].endswith("]") or ":" in fact["valid"]:
            continue
        low, _, high = fact["valid"][1:-1].partition(",...")
        setting = find(name)
        assert setting is not None
        setting.parse(low)
        with pytest.raises(InvalidValue, match=f"for configuration {name}: Value must be at least {low}"):
            setting.parse(str(int(low) - 1))
        if high.strip(","):
            setting.parse(high.strip(","))
            with pytest.raises(InvalidValue, match="Value must be no more than"):
                setting.parse(str(int(float(high.strip(","))) + 1))
        looked_at += 1
    assert looked_at > 15


def test_enumerations_are_kafkas() -> None:
    for name, fact in {**KAFKA["broker"], **KAFKA["topic"]}.items():
        valid = fact["valid"]
        if valid.startswith("[") and "..." not in valid and ":" not in valid:
            setting = topic_setting(name) or broker_setting(name)
            assert setting is not None
            for word in valid[1:-1].split(", "):
                setting.parse(word)
            with pytest.raises(InvalidValue, match=f"String must be one of: {', '.join(valid[1:-1].split(', '))}"):
                setting.parse("nonsense")


def test_every_default_of_a_topic_is_the_default_of_its_broker_setting() -> None:
    for name, names in BROKER_NAMES.items():
        weakest = broker_setting(names[-1].name)
        assert weakest is not None and weakest.default is not None
        value, topic_default = weakest.default_value(), TOPIC_SETTINGS[name].default_value()
        assert (
            value * names[-1].unit_ms if isinstance(value, int) and names[-1].unit_ms > 1 else value
        ) == topic_default


def test_every_setting_has_a_sentence_of_its_own_words() -> None:
    for name in TOPIC_SETTINGS:
        assert (documentation("topic", name) or "").endswith("."), name
    for name, setting in broker_settings().items():
        sentence = documentation("broker", name) or ""
        assert sentence.endswith("."), name
        assert ("without effect" in sentence) == (not setting.used and not _gives_a_topic_default(name)), name
    assert documentation("broker", "no.such.setting") is None


def _gives_a_topic_default(name: str) -> bool:
    return any(name == names[0].name for names in BROKER_NAMES.values())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (1e-5, "1.0E-5"), (1.7976931348623157e308, "1.7976931348623157E308"), (1e7, "1.0E7"), (12.0, "12.0"),
     (123456789.5, "1.234567895E8"), (0.0, "0.0"), (-0.0001, "-1.0E-4")],
)  # fmt: skip
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    "text",
    [
        "1_0",
        "0x10",
        "1.0",
        "",
        " ",
        "+",
        "--1",
        "-+1",
        "9" * 50,
        "9" * 5_000,
        "\u00a05",
        "\u20035",
        "10k",
        "\U0001d7d9",
    ],
)
def test_what_java_does_not_read_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="Not a number of type LONG") as refused:
        TOPIC_SETTINGS["flush.messages"].parse(text)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("text", "value"),
    [(" 5\t", 5), ("+05", 5), ("-1", -1), ("\u0663", 3), ("0" * 5_000 + "7", 7), ("-9223372036854775808", -(2**63))],
)
def test_what_java_reads_as_a_number_is_taken(text: str, value: int) -> None:
    assert TOPIC_SETTINGS["retention.bytes"].parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5f", 0.5), ("+.5e+1d", 5.0), ("5.", 5.0), ("0x1p-1", 0.5), (" 1e-300 ", 1e-300), ("-0.0", 0.0)],
)
def test_doubles_are_read_as_java_reads_them(text: str, value: float) -> None:
    assert broker_settings()["log.cleaner.io.buffer.load.factor"].parse(text) == value


@pytest.mark.parametrize(
    "text", ["inf", "nan", "infinity", "1_0", "1d5", "NaNd", "0x1", ".", "e5", "", "\u0663.5", "\u00a00.5", "1 0"]
)
def test_what_java_does_not_read_as_a_double_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="Not a number of type DOUBLE"):
        broker_settings()["log.cleaner.io.buffer.load.factor"].parse(text)


@pytest.mark.parametrize("text", ["NaN", "+NaN", "Infinity", "-Infinity", "1e400", "-1e999", "0x1p9999"])
@pytest.mark.parametrize(
    "name",
    [name for name, setting in broker_settings().items() if setting.type == DOUBLE] + ["min.cleanable.dirty.ratio"],
)
def test_a_number_that_is_not_finite_is_refused_by_every_setting(name: str, text: str) -> None:
    setting = broker_settings().get(name) or TOPIC_SETTINGS[name]
    with pytest.raises(InvalidValue, match="Value must be a finite number"):
        setting.parse(text)


def test_white_space_is_trimmed_as_java_trims_it() -> None:
    enabled = broker_settings()["auto.create.topics.enable"]
    assert enabled.parse("\x00 TRUE\r\n") is True
    for text in ("\u00a0true", "yes", "1", ""):
        with pytest.raises(InvalidValue, match="Expected value to be either true or false"):
            enabled.parse(text)
    assert broker_settings()["compression.type"].parse(" gzip ") == "gzip"


def test_lists_are_trimmed_doubles_dropped_and_holes_refused() -> None:
    policy = TOPIC_SETTINGS["cleanup.policy"]
    assert policy.parse(" delete , compact ,delete") == ("delete", "compact")
    assert policy.parse("") == ()
    with pytest.raises(InvalidValue, match=r"Configuration 'cleanup.policy' values must not be empty."):
        policy.parse("delete,,compact")


def test_a_listeners_own_setting_is_checked_like_the_one_it_overrides() -> None:
    setting = broker_setting("listener.name.external.ssl.client.auth")
    assert setting is not None and setting.name == "listener.name.external.ssl.client.auth"
    with pytest.raises(InvalidValue, match="for configuration listener"):
        setting.parse("perhaps")
    secret = broker_setting("listener.name.external.plain.sasl.jaas.config")
    assert secret is not None and secret.is_sensitive


def test_settings_in_use_are_found_without_loading_the_rest() -> None:
    program = (
        "import sys\n"
        "from headpond.config.sources import load\n"
        "load({'listen': '127.0.0.1:0', 'data-dir': 'x'}, ['log.segment.bytes=2097152'], {'HOME': '/'}, None)\n"
        "heavy = {'headpond.config.known.accepted', 'headpond.config.documentation', 'tomllib', 'difflib'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_settings_page_is_up_to_date() -> None:
    root = Path(__file__).resolve().parents[3]
    spec = importlib.util.spec_from_file_location("settings_page", root / "tools" / "settings_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (root / "docs" / "settings.md").read_text() == module.page(), "run: python tools/settings_page.py"
    assert all(f"`{name}`" in module.page() for name in USED_SETTINGS)


def test_classic_groups_can_not_be_turned_off_and_consumer_groups_can() -> None:
    def groups(protocols: str) -> GroupSettings:
        return Effective(static={"node.id": "1", "group.coordinator.rebalance.protocols": protocols}).settings.groups

    assert groups("classic,consumer").has_consumer_groups
    assert not groups("classic").has_consumer_groups
    with pytest.raises(ConfigError, match="Disabling the 'classic' protocol is not supported"):
        groups("consumer")


def test_every_setting_that_is_parsed_is_obeyed_somewhere() -> None:
    package = Path(__file__).resolve().parents[3] / "src" / "headpond"
    only_names = {*(package / "config" / "known").iterdir(), package / "config" / "documentation.py"}
    assert all(path.exists() for path in only_names)
    code = "".join(path.read_text() for path in package.rglob("*.py") if path not in only_names)
    kinds = [LogConfig, NetworkSettings, FetchSettings, TopicDefaults, StorageSettings, MetricsSettings, OutputSettings]
    kinds += [GroupSettings, TransactionSettings, CompactionSettings]
    unread = [f"{kind.__name__}.{name}" for kind in kinds for name in kind.__struct_fields__ if f".{name}" not in code]
    assert unread == []
