"""Settings that are given and change nothing here.

A security setting is refused: a broker that took it would look secured and be open. All others are taken, so that files
made for Kafka work, and named: one line at the start, and a mark in ``headpond config``. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headpond.config.definition import Setting
from headpond.config.registry import LISTENER_PREFIX, broker_setting, broker_settings
from headpond.model.nearest import LIKENESS_MIN, nearest

VERY_LIKE = 0.85
"""In a file made for Kafka an unknown name is rarely a mistyped one."""

_NO_AUTHORIZER = "this broker has no authorizer, and every client may do everything"
_NO_AUTHENTICATION = "this broker serves PLAINTEXT listeners only, without authentication or encryption"
_NO_CLASSES = "this broker can't load Java classes, so nothing would be checked"

OF_AUTHORIZERS: tuple[str, ...] = ("allow.everyone.if.no.acl.found", "super.users")
"""Read by Kafka's authorizer and not by its broker, which does not list them among its settings."""

_REASONS: tuple[tuple[str, str], ...] = (
    ("authorizer.", _NO_AUTHORIZER),
    *((name, _NO_AUTHORIZER) for name in OF_AUTHORIZERS),
    ("sasl.", _NO_AUTHENTICATION),
    ("ssl.", _NO_AUTHENTICATION),
    ("security.", _NO_AUTHENTICATION),
    (LISTENER_PREFIX, "listeners have no settings of their own here"),
    ("connections.max.reauth.ms", _NO_AUTHENTICATION),
    ("principal.builder.class", _NO_AUTHENTICATION),
    ("delegation.token.", "this broker has no delegation tokens"),
    ("alter.config.policy.class.name", _NO_CLASSES),
    ("client.quota.callback.class", _NO_CLASSES),
    ("create.topic.policy.class.name", _NO_CLASSES),
)


def security_reason(name: str) -> str | None:
    """Why the setting called ``name`` does not secure anything here; None: it is not about security, or it works."""
    setting = broker_setting(name)
    if setting is not None and setting.used:
        return None
    return next((reason for start, reason in _REASONS if name.startswith(start)), None)


def refusal(static: Mapping[str, str], origins: Mapping[str, str]) -> str | None:
    """The sentence that refuses the security settings among ``static`` whose value is not Kafka's default. Values are
    not shown: they may be secrets."""
    for name in sorted(static):
        reason = security_reason(name)
        if reason is not None and _differs(broker_setting(name), static[name]):
            where = origins.get(name, "given at start")
            return f"{name} (from {where}) would have no effect: {reason}; leave it out to start without it"
    return None


def without_effect(static: Mapping[str, str]) -> list[str]:
    """The names, sorted, of what was given a value that is not the default and means nothing here."""
    found = []
    for name in sorted(static):
        setting = broker_setting(name)
        if setting is not None and not setting.used and _differs(setting, static[name]):
            found.append(name)
    return found


def unknown(static: Mapping[str, str]) -> list[str]:
    """What is neither Kafka's nor ours, sorted, each with the name that may have been meant. Only a properties file may
    give it: Kafka takes such files as they are, and says so."""
    names = [name for name in sorted(static) if broker_setting(name) is None]
    return [name + did_you_mean(name, broker_settings(), VERY_LIKE) for name in names]


def did_you_mean(name: str, known: Collection[str], likeness: float = LIKENESS_MIN) -> str:
    """``, did you mean X?`` where one of ``known`` is like it, else nothing."""
    near = nearest(name, known, likeness)
    return "" if near is None else f", did you mean {near}?"


def _differs(setting: Setting | None, text: str) -> bool:
    return setting is None or setting.parse(text) != setting.default_value()
