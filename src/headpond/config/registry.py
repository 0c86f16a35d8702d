"""The registry: every setting of brokers and topics by its name. The rare ones are loaded when they are asked for."""

from __future__ import annotations

from msgspec.structs import replace

from headpond.config.definition import Setting
from headpond.config.known.of_topics import BROKER_NAMES, TOPIC_SETTINGS
from headpond.config.known.used import USED_SETTINGS

LISTENER_PREFIX = "listener.name."

FAMILIES: tuple[tuple[str, ...], ...] = (
    ("node.id", "broker.id"),
    ("log.dirs", "log.dir"),
    *(tuple(each.name for each in names) for names in BROKER_NAMES.values() if len(names) > 1),
)
"""Names of one thing, the strongest first: the first that is set wins."""

_FAMILY: dict[str, tuple[str, ...]] = {name: family for family in FAMILIES for name in family}


def family(name: str) -> tuple[str, ...]:
    """All names that stand for the same thing as ``name``, strongest first."""
    return _FAMILY.get(name, (name,))


def topic_setting(name: str) -> Setting | None:
    return TOPIC_SETTINGS.get(name)


def broker_setting(name: str) -> Setting | None:
    """The setting called ``name``; a listener's own (``listener.name.X.ssl...``) is like the one it overrides."""
    found = USED_SETTINGS.get(name)
    if found is not None:
        return found
    from headpond.config.known.accepted import ACCEPTED_SETTINGS

    found = ACCEPTED_SETTINGS.get(name)
    if found is None and name.startswith(LISTENER_PREFIX):
        base = listener_base(name)
        found = USED_SETTINGS.get(base) or ACCEPTED_SETTINGS.get(base)
        return None if found is None else replace(found, name=name, used=False)
    return found


def listener_base(name: str) -> str:
    """``listener.name.x.ssl.protocol`` -> ``ssl.protocol``; a SASL mechanism in between is left out."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    base = name[len(LISTENER_PREFIX) :].partition(".")[2]
    for ending in (
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.server.callback.handler.class",
        "connections.max.reauth.ms",
    ):
        if base.endswith(ending):
            return ending
    return base


def broker_settings() -> dict[str, Setting]:
    """All of them, by name, sorted."""
    from headpond.config.known.accepted import ACCEPTED_SETTINGS

    return dict(sorted({**ACCEPTED_SETTINGS, **USED_SETTINGS}.items()))
