"""What stands in a settings file: TOML, or the ``server.properties`` of a Kafka. Pure but for ``read_file``.

The name says which (``.toml``, ``.properties``). A file with another name is TOML if it can be read as that, and
properties if all its names look like names of Kafka's settings and none of its values is written as TOML writes text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from headpond.config.definition import ConfigError
from headpond.config.properties import NotProperties, read_properties

_SETTING_NAME = re.compile(r"listeners|[\w-]+(\.[\w-]+)+", re.ASCII)
"""Kafka's names have a dot, all but one."""


_QUOTED = re.compile(r"""\[?\s*(["']).*\1[\s,\]]*(#.*)?""", re.S)
"""A text as TOML writes it, or a list of these, with or without a comment."""


class FileSettings(NamedTuple):
    pairs: tuple[tuple[str, str], ...]
    is_kafkas: bool
    """It is a properties file: it may name settings of Kafka's plugins, or of releases long gone."""


def settings_in(path: str, read_file: Callable[[str], bytes]) -> FileSettings:
    """The settings in the file, by the names that it gives them. Raises ``ConfigError``."""
    try:
        data = read_file(path)
    except OSError as error:
        raise ConfigError(f"the settings file {path} cannot be read: {error.strerror or error}") from None
    if path.endswith(".properties"):
        return _properties(data, path)
    try:
        return _toml(data, path)
    except _NotToml as error:
        if not path.endswith(".toml"):
            found = _properties(data, path)
            if all(_SETTING_NAME.fullmatch(name) for name, _ in found.pairs):
                _refuse_quoted(found, path, error)
                return found
        raise ConfigError(f"the settings file {path} is not TOML: {error}") from None


def _refuse_quoted(found: FileSettings, path: str, error: _NotToml) -> None:
    """One wrong line does not turn a TOML file into properties, where quotes are part of a value."""
    for name, text in found.pairs:
        if _QUOTED.fullmatch(text):
            why_not_properties = f"as properties the value of {name} would keep its quotes"
            raise ConfigError(f"the settings file {path} is not TOML: {error}; {why_not_properties}")


class _NotToml(Exception):
    pass


def _properties(data: bytes, path: str) -> FileSettings:
    try:
        return FileSettings(tuple(read_properties(data).items()), is_kafkas=True)
    except NotProperties as error:
        raise ConfigError(f"the settings file {path} is {error}") from None


def _toml(data: bytes, path: str) -> FileSettings:
    import tomllib

    try:
        table = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # the reader's own, and what Python says of a number that is too long
        raise _NotToml(str(error)) from None
    return FileSettings(tuple(_flat(table, "", path)), is_kafkas=False)


def _flat(table: Mapping[str, Any], prefix: str, path: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flat(value, name + ".", path)
        elif isinstance(value, list):
            yield name, ",".join(_scalar(name, each, path) for each in value)
        else:
            yield name, _scalar(name, value, path)


def _scalar(name: str, value: object, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(f"{name} in {path} should be a text, a number, true or false, or a list of these")
