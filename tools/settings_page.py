"""Writes docs/settings.md from the registry: run it after a setting has changed; a test compares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from headpond.config.definition import LONG_MAX, TYPE_NAMES, Setting
from headpond.config.documentation import documentation
from headpond.config.known.of_topics import BROKER_NAMES, TOPIC_SETTINGS
from headpond.config.known.used import OWN_DEFAULTS
from headpond.config.registry import broker_settings
from headpond.config.sources import variable_of
from headpond.config.without_effect import security_reason

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

_HEAD = """# Settings

<!-- Made by tools/settings_page.py: change the registry in src/headpond/config, not this page. -->

Names are Kafka's wherever Kafka has the setting; our own begin with `headpond.`. A value comes from, strongest first:

1. the topic's own settings (dynamic)
2. this broker's dynamic settings
3. the dynamic settings of all brokers
4. the command line: `--listen`, `--advertise`, `--data-dir`, `--broker-id`, `--metrics-listen`, `--log-level`,
   `--set name=value`
5. the environment: `HEADPOND_LISTEN` and so on, `HEADPOND_SET=name=value,...`, or the setting's own variable:
   `HEADPOND_` and the name in capitals with underscores for dots, as in `{variable}`;
   of ours without the second `HEADPOND`, as in `{own_variable}`
6. the file of `--config` or `HEADPOND_CONFIG`: TOML with tables (`[log.segment]`, `bytes = 1`) or quoted names
   (`"log.segment.bytes" = 1`), or Kafka's `server.properties` (`log.segment.bytes=1`)
7. the default

`headpond config` prints what is in force and where it comes from. A wrong name or value is refused at the start;
in a properties file an unknown name is ignored with a warning, as Kafka does it.
Dynamic settings are changed with Kafka's tools and clients while the broker runs: *cluster-wide* ones for one broker or
for all, *per-broker* ones for one broker only, *read-only* ones not at all.
"""


_WITHOUT_EFFECT = """\
Kafka's other settings. Their names and values are checked, so that files and tools made for Kafka work. Given at the
start (command line, environment, file) with a value that is not the default, a security setting is *refused*: the
broker would look secured and be open. The same goes for `listener.name.*`, `super.users` and
`allow.everyone.if.no.acl.found`. The others are *named*: one warning at the start lists them, and `headpond config`
marks them as `no effect`.
"""


def page() -> str:
    known = broker_settings()
    accepted = [setting for setting in known.values() if not setting.used]
    parts = [
        _HEAD.format(variable=variable_of("log.segment.bytes"), own_variable=variable_of("headpond.flush")),
        "## Topics\n",
        "Set when a topic is created or later; the broker's setting gives the default of all topics.\n",
        _table(
            ("setting", "type", "default", "the broker's names", "effect", ""),
            (
                (
                    f"`{each.name}`",
                    TYPE_NAMES[each.type].lower(),
                    _default(each),
                    ", ".join(f"`{name.name}`" for name in BROKER_NAMES.get(each.name, ())),
                    "yes" if each.used else "none",
                    documentation("topic", each.name) or "",
                )
                for each in TOPIC_SETTINGS.values()
            ),
        ),
        "## The broker\n",
        _table(
            ("setting", "type", "default", "change", ""), (_broker_row(each) for each in known.values() if each.used)
        ),
        "Defaults that are not Kafka's:\n",
        "\n".join(f"- `{name}`: {why}" for name, why in OWN_DEFAULTS.items()) + "\n",
        "## Accepted without effect\n",
        _WITHOUT_EFFECT,
        _table(
            ("setting", "type", "default", "change", "another value at the start", ""),
            ((*_broker_row(each)[:4], _at_start(each), _broker_row(each)[4]) for each in accepted),
        ),
    ]
    return "\n".join(parts)


def _broker_row(setting: Setting) -> tuple[str, ...]:
    sentence = documentation("broker", setting.name) or ""
    type_name = TYPE_NAMES[setting.type].lower()
    return (
        f"`{setting.name}`",
        type_name,
        _default(setting),
        setting.mode,
        sentence.replace(": accepted without effect", ""),
    )


def _at_start(setting: Setting) -> str:
    return "named" if security_reason(setting.name) is None else "refused"


def _default(setting: Setting) -> str:
    if setting.default is None:
        return ""
    if setting.default == str(LONG_MAX):
        return "no limit"
    return f"`{setting.default}`" if setting.default else "empty"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
