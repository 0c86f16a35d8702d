"""Describing and changing settings while the broker runs: what DescribeConfigs shows and the Alter requests may do.

Pure: maps of texts in, rows or a new map out. The caller stores the map; ``settings_with_dynamic`` and ``topic_config``
make settings of it. Codes and messages are Kafka 4.3's, asked of a real one; they are raised as ``BrokerError``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from headpond.config.definition import LIST, PER_BROKER, UNKNOWN, ConfigError, Setting, Value, to_text
from headpond.config.effective import (
    DEFAULT,
    DYNAMIC_DEFAULT,
    DYNAMIC_TOPIC,
    Effective,
)
from headpond.config.known.of_topics import BROKER_NAMES, TOPIC_SETTINGS
from headpond.config.registry import (
    LISTENER_PREFIX,
    broker_setting,
    broker_settings,
    family,
    listener_base,
    topic_setting,
)
from headpond.model import BrokerError, ErrorCode

CLIENT_METRICS = 7
GROUP = 8
"""Sources of settings beyond those in ``effective``."""

SET, DELETE, APPEND, SUBTRACT = range(4)
_THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_OPERATIONS = ("SET", "DELETE", "APPEND", "SUBTRACT")


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


class Row(NamedTuple):
    """One setting as DescribeConfigs shows it."""

    name: str
    value: str | None
    source: int
    read_only: bool
    is_sensitive: bool
    type: int
    synonyms: tuple[Synonym, ...]


VALUE_BYTES_MAX = 32_767
"""What a string of the protocol holds: a value that grew beyond it could not be described."""


class Operation(NamedTuple):
    name: str
    operation: int
    value: str | None


# --- describing -------------------------------------------------------------------------------------------------------


def describe_topic(overrides: Mapping[str, str], effective: Effective, names: Collection[str] | None) -> list[Row]:
    """Every topic setting (``names`` None or empty), or the known ones among ``names``."""
    rows = []
    for name, setting in TOPIC_SETTINGS.items():
        if (names and name not in names) or (setting.internal and name not in overrides):
            continue
        value = to_text(effective.topic_value(name, overrides))
        synonyms: list[Synonym] = []
        if name in overrides:
            synonyms.append(Synonym(name, value, DYNAMIC_TOPIC))
        if name in BROKER_NAMES:
            synonyms += _broker_synonyms(BROKER_NAMES[name][0].name, effective)
        source = synonyms[0].source if synonyms else DEFAULT
        rows.append(Row(name, value, source, False, False, setting.type, tuple(synonyms)))
    return rows


def describe_broker(effective: Effective, names: Collection[str] | None) -> list[Row]:
    known: dict[str, Setting | None] = {n: s for n, s in broker_settings().items() if not s.internal}
    for _, layer in effective.layers():
        known.update({name: broker_setting(name) for name in layer})
    return [
        _broker_row(name, effective.text(name)[0], setting, _broker_synonyms(name, effective))
        for name, setting in sorted(known.items())
        if not names or name in names
    ]


def describe_broker_default(effective: Effective, names: Collection[str] | None) -> list[Row]:
    """What is set for all brokers, and nothing else."""
    rows = []
    for name, text in sorted(effective.dynamic_default.items()):
        if not names or name in names:
            synonyms = [each for each in _broker_synonyms(name, effective) if each.source == DYNAMIC_DEFAULT]
            rows.append(_broker_row(name, text, broker_setting(name), synonyms))
    return rows


def describe_group(overrides: Mapping[str, str], effective: Effective, names: Collection[str] | None) -> list[Row]:
    from headpond.config.known.others import GROUP_BROKER_NAMES, GROUP_SETTINGS

    rows = []
    for name, setting in GROUP_SETTINGS.items():
        if names and name not in names:
            continue
        broker_name = GROUP_BROKER_NAMES.get(name)
        below = _broker_synonyms(broker_name, effective) if broker_name else [Synonym(name, setting.default, DEFAULT)]
        if name in overrides:
            value = to_text(setting.parse(overrides[name]))
            below.insert(0, Synonym(name, value, GROUP))
        else:
            value = to_text(effective.value(broker_name)) if broker_name else setting.default
        rows.append(Row(name, value, below[0].source, False, False, setting.type, tuple(below)))
    return rows


def describe_client_metrics(overrides: Mapping[str, str], names: Collection[str] | None) -> list[Row]:
    from headpond.config.known.others import CLIENT_METRICS_SETTINGS

    rows = []
    for name, setting in CLIENT_METRICS_SETTINGS.items():
        if names and name not in names:
            continue
        if name in overrides:
            value = to_text(setting.parse(overrides[name]))
            synonyms: tuple[Synonym, ...] = (Synonym(name, value, CLIENT_METRICS),)
            rows.append(Row(name, value, CLIENT_METRICS, False, False, setting.type, synonyms))
        else:
            rows.append(Row(name, setting.default, DEFAULT, False, False, setting.type, ()))
    return rows


def _broker_row(name: str, text: str | None, setting: Setting | None, synonyms: Sequence[Synonym]) -> Row:
    """An unknown setting might be a secret: its value is never shown."""
    source = synonyms[0].source if synonyms else DEFAULT
    if setting is None:
        return Row(name, None, source, True, True, UNKNOWN, tuple(synonyms))
    value = None if setting.is_sensitive or text is None else to_text(setting.parse(text))
    return Row(name, value, source, not setting.is_dynamic, setting.is_sensitive, setting.type, tuple(synonyms))


def _broker_synonyms(name: str, effective: Effective) -> list[Synonym]:
    """Every place that has a value, strongest first. As in Kafka, those before the first that bears ``name`` itself are
    left out, and so nothing is left when only its weaker names have a value (``log.retention.ms`` by its hours)."""
    names = _synonym_names(name)
    setting = broker_setting(name)
    hidden = setting is None or setting.is_sensitive
    found = [
        Synonym(each, None if hidden else layer[each], source)
        for source, layer in effective.layers()
        for each in names
        if each in layer
    ]
    if name == "broker.id" and "broker.id" not in effective.static and "node.id" in effective.static:
        found.append(Synonym(name, effective.static["node.id"], effective.text("node.id")[1]))
    for each in names:
        known = broker_setting(each)
        if known is not None and known.default is not None:
            found.append(Synonym(each, None if hidden else known.default, DEFAULT))
    while found and found[0].name != name:
        del found[0]
    return found


def _synonym_names(name: str) -> tuple[str, ...]:
    if name.startswith(LISTENER_PREFIX):
        return (name, listener_base(name))
    if name in ("log.flush.scheduler.interval.ms", "node.id", "broker.id", "log.dirs", "log.dir"):
        return (name,)  # each speaks for itself, though the code reads them as one
    return family(name)


# --- changing ---------------------------------------------------------------------------------------------------------


def apply_operations(kind: str, current: Mapping[str, str], operations: Sequence[Operation]) -> dict[str, str]:
    """The map after these operations; ``kind`` is topic, broker, group or client-metrics. Not yet checked."""
    changed = dict(current)
    for name, operation, value in operations:
        if operation == SET and value is not None:
            changed[name] = value
        elif operation == DELETE:
            changed.pop(name, None)
        elif operation in (APPEND, SUBTRACT) and value is not None:
            changed[name] = _spliced(kind, name, operation, value, current)
        else:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return changed


def _spliced(kind: str, name: str, operation: int, value: str, current: Mapping[str, str]) -> str:
    setting = _lookup(kind)(name)
    if setting is None or setting.type != LIST:
        word = _OPERATIONS[operation]
        if kind != "broker":
            why = f"Can't {word} to key {name} because its type is not LIST."
        elif setting is None:
            why = f"Unknown config name: {name}"
        else:
            why = f"Config value {word.lower()} is not allowed for config key: {name}"
        raise BrokerError(ErrorCode.INVALID_CONFIG, why)
    before = current.get(name, setting.default) or ""
    words = [word.strip() for word in before.split(",") if word.strip()]
    if operation == APPEND:
        known = set(words)
        words += [word for word in dict.fromkeys(value.split(",")) if word not in known]
    else:
        unwanted = Counter(value.split(","))
        words = [word for word in words if not _is_taken(unwanted, word)]
    spliced = ",".join(words)
    if len(spliced.encode()) > VALUE_BYTES_MAX:
        raise _invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{VALUE_BYTES_MAX} bytes."
        )
    return spliced


def _is_taken(unwanted: Counter[str], word: str) -> bool:
    """Each that is not wanted takes one away."""
    unwanted[word] -= 1
    return unwanted[word] >= 0


def check_topic(configs: Mapping[str, str | None], effective: Effective) -> None:
    """Whether a topic may have these settings: for CreateTopics and for changes. Raises ``BrokerError`` 40."""
    nulls = [name for name, text in configs.items() if text is None]
    if nulls:
        raise _invalid_config(f"Null value not supported for topic configs: {','.join(nulls)}")
    overrides = {name: text for name, text in configs.items() if text is not None}
    for name in overrides:
        if name not in TOPIC_SETTINGS:
            raise _invalid_config(f"Unknown topic config name: {name}")
    try:
        for name, text in overrides.items():
            TOPIC_SETTINGS[name].parse(text)
        least = effective.topic_value("min.compaction.lag.ms", overrides)
        most = effective.topic_value("max.compaction.lag.ms", overrides)
        remote = effective.topic_value("remote.storage.enable", overrides)
    except ConfigError as error:
        raise _invalid_config(str(error)) from None
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise _invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    if remote:
        raise _invalid_config(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def check_broker(configs: Mapping[str, str], effective: Effective, *, of_all_brokers: bool) -> None:
    """Whether these may be the dynamic settings of this broker, or of all. Kafka's code for a wrong one is
    INVALID_REQUEST. Unknown names are accepted, as in Kafka, except our own."""
    known = {name: broker_setting(name) for name in configs}
    for name, setting in known.items():
        if setting is None and name.startswith("headpond."):
            raise _invalid_config(f"Unknown config name: {name}")
    _refuse(known, lambda n, s: not s.is_dynamic and n == s.name, "Cannot update these configs dynamically")
    _refuse(
        known,
        lambda n, s: n.startswith("ssl.") and s.mode == PER_BROKER and n != "ssl.client.auth",
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    try:
        for name, setting in known.items():
            if setting is not None:
                setting.parse(configs[name])
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if of_all_brokers:
        _refuse(
            known,
            lambda n, s: s.mode == PER_BROKER or n.startswith(LISTENER_PREFIX),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    if of_all_brokers:
        after = effective.with_dynamic(configs, effective.dynamic_broker)
    else:
        after = effective.with_dynamic(effective.dynamic_default, configs)
    try:
        _ = after.settings
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"requirement failed: {error}") from None
    for name in _THREADS:
        _check_threads(name, effective.value(name), after.value(name))


def _check_threads(name: str, before: Value, after: Value) -> None:
    """Kafka grows and shrinks its pools step by step: by half or double at most. Most of ours do not depend on them;
    what tools may ask for is the same."""
    if not isinstance(before, int) or not isinstance(after, int) or before == after:
        return
    if name == "log.cleaner.threads" and after < 1:
        sentence = "Log cleaner threads should be at least 1"
    elif before // 2 <= after <= before * 2:
        return
    elif name == "log.cleaner.threads":
        change = "reduced to less than half" if after < before else "increased to more than double"
        sentence = f"Log cleaner threads cannot be {change} the current value {before}"
    else:
        bound = "be at least half" if after < before else "not be greater than double"
        sentence = (
            f"Dynamic thread count update validation failed for {name}={after}, value should {bound} the current value "
            f"{before}"
        )
    raise BrokerError(
        ErrorCode.INVALID_REQUEST,
        f"Invalid value org.apache.kafka.common.config.ConfigException: {sentence} for configuration Invalid dynamic "
        "configuration",
    )


def check_group(configs: Mapping[str, str], effective: Effective) -> None:
    from headpond.config.known import others as other_settings

    try:
        other_settings.check_group(configs, effective)
    except ConfigError as error:
        raise _invalid_config(str(error)) from None


def check_client_metrics(configs: Mapping[str, str]) -> None:
    from headpond.config.known import others as other_settings

    try:
        other_settings.check_client_metrics(configs)
    except other_settings.WrongRequest as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from None
    except ConfigError as error:
        raise _invalid_config(str(error)) from None


def _refuse(known: Mapping[str, Setting | None], is_wrong: Callable[[str, Setting], bool], sentence: str) -> None:
    wrong = sorted(name for name, setting in known.items() if setting is not None and is_wrong(name, setting))
    if wrong:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{sentence}: [{', '.join(wrong)}]")


def _invalid_config(sentence: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_CONFIG, sentence)


def _lookup(kind: str) -> Callable[[str], Setting | None]:
    if kind == "topic":
        return topic_setting
    if kind == "broker":
        return broker_setting
    from headpond.config.known.others import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS

    return (GROUP_SETTINGS if kind == "group" else CLIENT_METRICS_SETTINGS).get
