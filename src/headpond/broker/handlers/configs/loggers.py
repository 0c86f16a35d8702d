"""The broker's loggers as a config resource: their levels can be read and changed while it runs, and are not kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headpond.model import BrokerError, ErrorCode

ROOT = "root"
_OURS = "headpond"
_TRACE = 5
_LEVELS = {"TRACE": _TRACE, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """The root logger and ours, by name, with the level in force."""
    names = sorted(name for name in logging.root.manager.loggerDict if name.split(".")[0] == _OURS)
    found = {ROOT: _name_of(logging.root.level)}
    found.update({name: _name_of(logging.getLogger(name).getEffectiveLevel()) for name in names})
    return found


def check_level(logger: str, level: str) -> None:
    if level not in _LEVELS:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(_LEVELS))}",
        )


def check_logger(logger: str) -> None:
    if logger not in levels():
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")


def change(levels_by_logger: Sequence[tuple[str, str | None]]) -> None:
    """Set levels; None gives a logger back to its parent."""
    for name, level in levels_by_logger:
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])


def _name_of(number: int) -> str:
    return next((name for name, bound in _LEVELS.items() if number <= bound), "FATAL")
