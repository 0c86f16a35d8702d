"""The settings of one broker, each with where its value comes from.

Precedence, strongest first: dynamic of this broker, dynamic of all brokers, static (command line, environment, file),
default. Never changed: a dynamic change makes a new ``Effective`` and from it a new ``BrokerSettings``. Nothing here
survives a crash: the static part is read anew at the start, the dynamic part comes from the metadata store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from headpond.config.definition import Value, to_text
from headpond.config.known.of_topics import BROKER_NAMES, TOPIC_SETTINGS
from headpond.config.registry import broker_setting, broker_settings, family

if TYPE_CHECKING:
    from headpond.config.broker import BrokerSettings

# Kafka's ids of where a value comes from, as DescribeConfigs sends them.
DYNAMIC_TOPIC = 1
DYNAMIC_BROKER = 2
DYNAMIC_DEFAULT = 3
STATIC = 4
DEFAULT = 5

_NOTHING: Mapping[str, str] = MappingProxyType({})
_ORIGINS = {DYNAMIC_BROKER: "dynamic (this broker)", DYNAMIC_DEFAULT: "dynamic (all brokers)", DEFAULT: "default"}
MASK = "[hidden]"


class SettingRow(NamedTuple):
    """One line of ``headpond config``."""

    name: str
    value: str | None
    origin: str
    has_effect: bool = True


class Effective:
    """``static`` holds what was given at the start, ``origins`` where (a flag, a variable, a file)."""

    __slots__ = ("_settings", "dynamic_broker", "dynamic_default", "hostname", "origins", "static")

    def __init__(
        self,
        static: Mapping[str, str] = _NOTHING,
        origins: Mapping[str, str] = _NOTHING,
        *,
        hostname: str = "localhost",
        dynamic_default: Mapping[str, str] = _NOTHING,
        dynamic_broker: Mapping[str, str] = _NOTHING,
    ) -> None:
        self.static = static
        self.origins = origins
        self.hostname = hostname
        self.dynamic_default = dynamic_default
        self.dynamic_broker = dynamic_broker
        self._settings: BrokerSettings | None = None

    @property
    def settings(self) -> BrokerSettings:
        """The parsed settings; made once. Raises ``ConfigError``."""
        if self._settings is None:
            from headpond.config.broker import build

            self._settings = build(self)
        return self._settings

    def with_dynamic(self, default_configs: Mapping[str, str], broker_configs: Mapping[str, str]) -> Effective:
        """The same broker under these dynamic settings. Names that cannot change while a broker runs are left out."""
        return Effective(
            self.static,
            self.origins,
            hostname=self.hostname,
            dynamic_default=_changeable(default_configs),
            dynamic_broker=_changeable(broker_configs),
        )

    def layers(self) -> tuple[tuple[int, Mapping[str, str]], ...]:
        """What was set, strongest first; the defaults come after these."""
        return (DYNAMIC_BROKER, self.dynamic_broker), (DYNAMIC_DEFAULT, self.dynamic_default), (STATIC, self.static)

    def text(self, name: str) -> tuple[str | None, int]:
        """The text of a broker setting under exactly this name, and its source."""
        for source, layer in self.layers():
            if name in layer:
                return layer[name], source
        if name == "broker.id":
            return self.text("node.id")
        setting = broker_setting(name)
        return (None if setting is None else setting.default), DEFAULT

    def value(self, name: str) -> Value:
        """The parsed value of a broker setting; of several names for one thing, the strongest that is set."""
        for each in family(name):
            text, source = self.text(each)
            if source != DEFAULT and text is not None:
                return _parse(each, text)
        for each in family(name):
            if (text := self.text(each)[0]) is not None:
                return _parse(each, text)
        return None

    def topic_value(self, name: str, overrides: Mapping[str, str] = _NOTHING) -> Value:
        """The parsed value of a topic setting: the topic's own, else what the broker gives all topics."""
        setting = TOPIC_SETTINGS[name]
        if (text := overrides.get(name)) is not None:
            return setting.parse(text)
        for _, layer in self.layers():
            for broker_name, unit_ms in BROKER_NAMES.get(name, ()):
                if broker_name in layer:
                    value = _parse(broker_name, layer[broker_name])
                    if unit_ms != 1 and isinstance(value, int):
                        value *= unit_ms
                    if name == "retention.ms" and isinstance(value, int) and value < 0:
                        return -1  # any negative time means for ever
                    return value
        return setting.default_value()

    def topic_source(self, name: str) -> int:
        """Where ``topic_value`` finds the value of a topic that says nothing itself."""
        names = [broker_name for broker_name, _ in BROKER_NAMES.get(name, ())]
        return next((source for source, layer in self.layers() if any(each in layer for each in names)), DEFAULT)

    def rows(self, *, all_settings: bool = False) -> Iterator[SettingRow]:
        """What is in force, sorted by name: what somebody set, or with ``all_settings`` the defaults too."""
        known = broker_settings()
        given = {name for _, layer in self.layers() for name in layer}
        for name in sorted(given | known.keys() if all_settings else given):
            setting = known.get(name) or broker_setting(name)
            text, source = self.text(name)
            if setting is not None and setting.internal and source == DEFAULT:
                continue
            if setting is None or setting.is_sensitive:
                shown = None if text is None else MASK
            else:
                shown = to_text(setting.parse(text)) if text is not None else None
            yield SettingRow(name, shown, self.origin(name, source), setting is not None and setting.used)

    def origin(self, name: str, source: int) -> str:
        """In words: where a value of that source comes from."""
        if source == STATIC:
            return self.origins.get(name) or self.origins.get(family(name)[0]) or "given at start"
        return _ORIGINS[source]


def _parse(name: str, text: str) -> Value:
    setting = broker_setting(name)
    return text if setting is None else setting.parse(text)


def _changeable(configs: Mapping[str, str]) -> Mapping[str, str]:
    kept = {}
    for name, text in configs.items():
        setting = broker_setting(name)
        if setting is None or setting.is_dynamic:
            kept[name] = text
    return MappingProxyType(kept)
