"""Where the static settings come from: command line, environment, file; and the sentence when one of them is wrong.

    --listen/--advertise/--data-dir/--broker-id/--metrics-listen/--log-level and --set name=value   the strongest
    HEADPOND_LISTEN, ..., HEADPOND_SET="a=1,b=2", HEADPOND_LOG_SEGMENT_BYTES (dots become underscores)
    the file of --config or HEADPOND_CONFIG: TOML or Kafka's server.properties (``settings_file.py``)

Pure but for ``read_file``, which is passed in. Every name and value is checked here, before anything is started.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from headpond.config.definition import ConfigError, InvalidValue
from headpond.config.effective import Effective
from headpond.config.registry import broker_setting, broker_settings, family, topic_setting
from headpond.config.without_effect import OF_AUTHORIZERS, did_you_mean, refusal

PREFIX = "HEADPOND_"
OWN = "headpond."

SHORT_FORMS = {
    "listen": "listeners",
    "advertise": "advertised.listeners",
    "data-dir": "log.dirs",
    "broker-id": "node.id",
    "metrics-listen": "headpond.metrics.listen",
    "log-level": "headpond.log.level",
}
"""What the flags stand for; the environment (HEADPOND_DATA_DIR) and the file (data-dir) know them too."""


_FIRST_LISTENER = "*"
"""Stands, until everything is merged, for the name of the listener that ``--advertise`` is about."""


class Given(NamedTuple):
    """One setting as somebody wrote it. ``where`` names the flag, variable or file; stronger sources come first."""

    name: str
    text: str
    where: str
    strength: int
    may_be_unknown: bool = False
    """It comes from a file that was written for Kafka, which leaves alone what it does not know."""
    spelling: str = ""
    """The short form, where it was given by that."""


def load(
    flags: Mapping[str, str | None],
    sets: Sequence[str],
    environ: Mapping[str, str],
    read_file: Callable[[str], bytes],
    *,
    hostname: str = "localhost",
    other_variables: Collection[str] = (),
) -> Effective:
    """Collect, check and merge. ``flags``: the short forms and config (None: not given);
    ``other_variables``: names that begin with HEADPOND_ and are no settings. Raises ``ConfigError``, one sentence; the
    settings are parsed before it returns, so ``Effective.settings`` cannot fail."""
    present = {name.replace("_", "-"): text for name, text in flags.items() if text is not None}
    given = [*_from_flags(present), *_from_sets(sets), *_from_environment(environ, other_variables)]
    path = present.get("config") or environ.get(PREFIX + "CONFIG")
    if path:
        given += _from_file(path, read_file)
    for each in given:
        _check(each)
    static, origins = _merge(given)
    if (sentence := refusal(static, origins)) is not None:
        raise ConfigError(sentence)
    if static.get("advertised.listeners", "").startswith(_FIRST_LISTENER):
        first = static.get("listeners", "PLAINTEXT://").partition("://")[0]
        static["advertised.listeners"] = first + static["advertised.listeners"][len(_FIRST_LISTENER) :]
    effective = Effective(static, origins, hostname=hostname)
    _ = effective.settings
    return effective


# --- the sources ------------------------------------------------------------------------------------------------------


def _from_flags(flags: Mapping[str, str]) -> Iterator[Given]:
    for short in SHORT_FORMS:
        if short in flags:
            yield _from_short(short, flags[short], f"--{short}", 0)


def _from_sets(sets: Sequence[str]) -> Iterator[Given]:
    for pair in sets:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair}: it should be name=value")
        yield Given(name.strip(), text.strip(), "--set", 0)


def _from_environment(environ: Mapping[str, str], others: Collection[str]) -> Iterator[Given]:
    """A variable that is set to nothing counts as not set: that is how container files leave one out."""
    names: dict[str, str] = {}
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or variable == PREFIX + "CONFIG" or variable in others or not text.strip():
            continue
        short = variable[len(PREFIX) :].lower().replace("_", "-")
        if short in SHORT_FORMS:
            yield _from_short(short, text, variable, 1)
        elif short == "set":
            for name, value in _pairs(text):
                yield Given(name, value, variable, 1)
        else:
            names = names or {variable_of(name): name for name in (*broker_settings(), *OF_AUTHORIZERS)}
            if variable not in names:
                short_forms = [PREFIX + form.upper().replace("-", "_") for form in (*SHORT_FORMS, "config", "set")]
                raise ConfigError(f"unknown variable {variable}{did_you_mean(variable, [*short_forms, *names])}")
            yield Given(names[variable], text.strip(), variable, 1)


def variable_of(name: str) -> str:
    """The environment variable of a setting: ``log.segment.bytes`` -> HEADPOND_LOG_SEGMENT_BYTES."""
    return PREFIX + name.removeprefix(OWN).replace(".", "_").replace("-", "_").upper()


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """``a=1,b=x,y`` is a: ``1`` and b: ``x,y``: a comma ends a value only where a name and an equals sign follow."""
    name, value = "", ""
    for part in text.replace("\n", ",").split(","):
        head, equals, tail = part.partition("=")
        if equals and (head.strip().replace(".", "").replace("-", "").replace("_", "").isalnum()):
            if name:
                yield name, value.strip()
            name, value = head.strip(), tail
        elif not name:
            raise ConfigError(f"{PREFIX}SET: '{part}' should be name=value")
        else:
            value += "," + part
    yield name, value.strip(" ,")


def _from_file(path: str, read_file: Callable[[str], bytes]) -> Iterator[Given]:
    from headpond.config.settings_file import settings_in

    found = settings_in(path, read_file)
    for name, text in found.pairs:
        if name in SHORT_FORMS:
            yield _from_short(name, text, path, 2)
        else:
            yield Given(name, text, path, 2, may_be_unknown=found.is_kafkas)


def _from_short(short: str, text: str, where: str, strength: int) -> Given:
    """``--listen HOST:PORT`` is a PLAINTEXT listener; a whole list (NAME://HOST:PORT,...) is taken as it is."""
    if short in ("listen", "advertise") and "://" not in text:
        from headpond.config.listeners import parse_address

        try:
            parse_address(text)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        text = f"PLAINTEXT://{text.strip()}" if short == "listen" else f"{_FIRST_LISTENER}://{text.strip()}"
    return Given(SHORT_FORMS[short], text.strip(), where, strength, spelling=short)


# --- checking and merging ---------------------------------------------------------------------------------------------


def _check(given: Given) -> None:
    setting = broker_setting(given.name)
    is_kafkas = not given.name.startswith(OWN)
    if setting is None and ((given.may_be_unknown and is_kafkas) or given.name in OF_AUTHORIZERS):
        return
    if setting is None:
        raise ConfigError(_unknown(given))
    try:
        setting.parse(given.text)
    except InvalidValue as error:
        sentence = str(error) if not setting.is_sensitive else f"Invalid value for configuration {given.name}"
        raise ConfigError(f"{sentence} (from {given.where})") from None


def _unknown(given: Given) -> str:
    from headpond.config.known.of_topics import BROKER_NAMES

    if topic_setting(given.name) is not None:
        names = BROKER_NAMES.get(given.name)
        hint = f": the broker's default for it is {names[0].name}" if names else ""
        return f"{given.name} (from {given.where}) is a setting of topics, not of the broker{hint}"
    near = did_you_mean(given.name, [*broker_settings(), *SHORT_FORMS])
    return f"unknown setting {given.name} (from {given.where}){near}"


def _merge(given: Sequence[Given]) -> tuple[dict[str, str], dict[str, str]]:
    """The strongest source of a thing wins, under whichever of its names: hours on the command line beat milliseconds
    in the file. Within one source two names are Kafka's business, the same name twice a mistake."""
    strongest: dict[tuple[str, ...], int] = {}
    for each in given:
        names = family(each.name)
        strongest[names] = min(each.strength, strongest.get(names, each.strength))
    taken: dict[str, Given] = {}
    for each in given:
        if each.strength != strongest[family(each.name)]:
            continue
        if each.name in taken and taken[each.name].text != each.text:
            raise ConfigError(_twice(taken[each.name], each))
        taken[each.name] = each
    static = {name: each.text for name, each in taken.items()}
    origins = {name: each.where for name, each in taken.items()}
    if "broker.id" in static:
        if static.get("node.id", static["broker.id"]) != static["broker.id"]:
            raise ConfigError(f"node.id ({static['node.id']}) and broker.id ({static['broker.id']}) must be the same")
        static["node.id"], origins["node.id"] = static["broker.id"], origins["broker.id"]
    return static, origins


def _twice(first: Given, second: Given) -> str:
    if first.where != second.where:
        return f"{first.name} is given twice: by {first.where} and by {second.where}"
    spellings = [each.spelling or each.name for each in (first, second)]
    both = f": as {spellings[0]} and as {spellings[1]}" if spellings[0] != spellings[1] else ""
    return f"{first.name} is given twice by {first.where}{both}"
