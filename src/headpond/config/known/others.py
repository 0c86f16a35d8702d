"""The settings of groups and of client metrics subscriptions, as in Kafka 4.3: described and stored; those of
consumer groups take effect.

Data and the checks between them. A group's default is the broker's setting in ``GROUP_BROKER_NAMES``.
"""

from __future__ import annotations

from collections.abc import Mapping

from headpond.config.definition import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    ConfigError,
    InvalidValue,
    Setting,
    Value,
    between,
    invalid,
    one_of,
)
from headpond.config.effective import Effective
from headpond.model.patterns import InvalidPattern, compiled


def _offset_reset(name: str, value: Value) -> None:
    if value in ("earliest", "latest"):
        return
    kind, _, duration = str(value).partition(":")
    if kind == "by_duration" and _is_duration(duration):
        return
    raise invalid(
        name,
        value,
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'.",
    )


def _is_duration(text: str) -> bool:
    import re

    pattern = r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d*)?S)?)?"
    return re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII) is not None


_GROUP_ROWS = (
    Setting("consumer.assignment.interval.ms", INT, "1000", between(0)),
    Setting("consumer.heartbeat.interval.ms", INT, "5000", between(1)),
    Setting("consumer.session.timeout.ms", INT, "45000", between(1)),
    Setting("share.assignment.interval.ms", INT, "1000", between(0), used=False),
    Setting("share.auto.offset.reset", STRING, "latest", _offset_reset, used=False),
    Setting("share.delivery.count.limit", INT, "5", between(2), used=False),
    Setting("share.heartbeat.interval.ms", INT, "5000", between(1), used=False),
    Setting(
        "share.isolation.level", STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), used=False
    ),
    Setting("share.partition.max.record.locks", INT, "2000", between(100), used=False),
    Setting("share.record.lock.duration.ms", INT, "30000", between(1000), used=False),
    Setting("share.renew.acknowledge.enable", BOOLEAN, "true", used=False),
    Setting("share.session.timeout.ms", INT, "45000", between(1), used=False),
    Setting("streams.assignment.interval.ms", INT, "1000", between(0), used=False),
    Setting("streams.heartbeat.interval.ms", INT, "5000", between(1), used=False),
    Setting("streams.initial.rebalance.delay.ms", INT, "3000", between(0), used=False),
    Setting("streams.num.standby.replicas", INT, "0", between(0), used=False),
    Setting("streams.session.timeout.ms", INT, "45000", between(1), used=False),
)
GROUP_SETTINGS: dict[str, Setting] = {row.name: row for row in _GROUP_ROWS}

_WITHOUT_BROKER_NAME = ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")
GROUP_BROKER_NAMES: dict[str, str] = {
    name: f"group.{name}" for name in GROUP_SETTINGS if name not in _WITHOUT_BROKER_NAME
}

_METRICS_ROWS = (
    Setting("interval.ms", INT, "300000", used=False),
    Setting("match", LIST, "", used=False),
    Setting("metrics", LIST, "", used=False),
)
CLIENT_METRICS_SETTINGS: dict[str, Setting] = {row.name: row for row in _METRICS_ROWS}

_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3_600_000
PATTERNS_LENGTH_MAX = 4_096
"""Characters, of all patterns of a subscription: they are compiled while the change is checked."""
_MATCHABLE = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class WrongRequest(ConfigError):
    """Kafka answers these with INVALID_REQUEST rather than INVALID_CONFIG."""


def check_group(configs: Mapping[str, str], effective: Effective) -> None:
    """Raises ``ConfigError``. The broker's ``group.*.min`` and ``max`` settings bound what a group may have."""
    for name in configs:
        if name not in GROUP_SETTINGS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = {name: setting.parse(configs.get(name, setting.default)) for name, setting in GROUP_SETTINGS.items()}
    for kind in ("consumer", "share", "streams"):
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            _within(f"{kind}.{what}", f"group.{kind}.min.{what}", f"group.{kind}.max.{what}", values, effective)
    for what in ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks"):
        _within(f"share.{what}", f"group.share.min.{what}", f"group.share.max.{what}", values, effective)
    _within("streams.num.standby.replicas", None, "group.streams.max.standby.replicas", values, effective)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[heartbeat]):
            raise ConfigError(f"{session} must be greater than {heartbeat}")


def _within(name: str, least: str | None, most: str, values: Mapping[str, Value], effective: Effective) -> None:
    if least is not None and _number(values[name]) < _number(effective.value(least)):
        raise ConfigError(f"{name} must be greater than or equal to {least}")
    if _number(values[name]) > _number(effective.value(most)):
        raise ConfigError(f"{name} must be less than or equal to {most}")


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Raises ``ConfigError``; ``WrongRequest`` where Kafka says INVALID_REQUEST."""
    for name in configs:
        if name not in CLIENT_METRICS_SETTINGS:
            raise WrongRequest(f"Unknown client metrics configuration: {name}")
    values = {name: CLIENT_METRICS_SETTINGS[name].parse(text) for name, text in configs.items()}
    interval_ms = values.get("interval.ms", _INTERVAL_MS_MIN)
    if not _INTERVAL_MS_MIN <= _number(interval_ms) <= _INTERVAL_MS_MAX:
        raise WrongRequest(
            f"Invalid value {interval_ms} for interval.ms, interval must be between {_INTERVAL_MS_MIN} and "
            f"{_INTERVAL_MS_MAX} (1 hour)"
        )
    patterns = values.get("match", ())
    assert isinstance(patterns, tuple)
    _check_match(patterns)


def _check_match(patterns: tuple[str, ...]) -> None:
    length_left = PATTERNS_LENGTH_MAX
    for pattern in patterns:
        name, equals, expression = pattern.partition("=")
        length_left -= len(pattern)
        try:
            if not equals or name.strip() not in _MATCHABLE or length_left < 0:
                raise InvalidPattern("no such word, or too many")
            compiled(expression.strip())
        except InvalidPattern:
            raise InvalidValue(f"Illegal client matching pattern: {pattern}") from None
