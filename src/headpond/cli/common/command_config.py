"""``--command-config FILE``, as Kafka's own tools have it: how to be let in by a broker that asks.

Only ``security.*``, ``ssl.*`` and ``sasl.*`` mean something here. A file for other tools may hold more: that is left
alone, as they do. What is in the file is never shown.
"""

from __future__ import annotations

import argparse

from headpond.cli.common.arguments import COMMAND_CONFIG_VARIABLE
from headpond.cli.common.failures import WrongUsage
from headpond.client.security import PLAINTEXT, Security
from headpond.client.security_settings import SecurityMistake, is_security, parse_security
from headpond.config.properties import NotProperties, read_properties
from headpond.runtime import environment

KAFKA = "kafka."
"""Before the names of a client's settings, where they are options of Spark's."""


def security_of(options: argparse.Namespace) -> Security:
    """For a client of this process."""
    path, _ = _file_of(options)
    return PLAINTEXT if path is None else _checked(path)[1]


def kafka_options(options: argparse.Namespace) -> dict[str, str]:
    """For Spark's source and sink."""
    path, _ = _file_of(options)
    return {} if path is None else options_in(path)


def options_in(path: str) -> dict[str, str]:
    return {KAFKA + name: value for name, value in _checked(path)[0].items()}


def is_asked_for(options: argparse.Namespace) -> bool:
    """By the option, which is stronger than what a file declares; the variable is weaker."""
    return _file_of(options)[1]


def _file_of(options: argparse.Namespace) -> tuple[str | None, bool]:
    if options.command_config is not None:
        return options.command_config, True
    return environment.variables().get(COMMAND_CONFIG_VARIABLE, "").strip() or None, False


def _checked(path: str) -> tuple[dict[str, str], Security]:
    try:
        given = read_properties(environment.read_file(path))
    except OSError as error:
        raise WrongUsage(f"{path} can't be read: {error.strerror or 'no reason given'}") from None
    except NotProperties as error:
        raise WrongUsage(f"{path} is {error}: write properties, as in security.protocol=SASL_SSL") from None
    settings = {name: value for name, value in given.items() if is_security(name)}
    try:
        return settings, parse_security(settings, environment.read_file)
    except SecurityMistake as error:
        raise WrongUsage(f"{path}: {error}") from None
