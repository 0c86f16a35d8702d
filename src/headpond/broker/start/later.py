"""What a start leaves out is imported once the broker serves.

A start pays for nothing that may never be asked for. When it is, the files of a module may be out of reach: there is no
descriptor left, or an update has put another version in their place. So they are all imported soon after the start, one
in each slice, and no request waits for more than one of them. Only two libraries of megabytes each are left to those
who need them (``model.libraries``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from importlib import import_module

from headpond.broker.requests.routes import HANDLERS
from headpond.coordination.slices import Work
from headpond.ports import CodeFiles

log = logging.getLogger("headpond.broker")

AFTER_S = 0.1
"""Those who have waited for the start are answered first."""

MODULES = (
    "headpond.protocol.decoding",
    "headpond.protocol.encoding",
    *(f"headpond.broker.handlers.{name}" for name in HANDLERS.values()),
    "headpond.config.known.others",
    "headpond.config.known.accepted",
    "headpond.config.documentation",
    "encodings.utf_16_be",  # the order of names, and their lengths
    "encodings.utf_16_le",
)


def imported(names: Iterable[str], files: CodeFiles | None = None) -> Work[None]:
    try:
        for name in names:
            try:
                with files.within_reach() if files is not None else nullcontext():
                    import_module(name)
            except Exception as error:  # also from a file that is half replaced; it is tried again when it is needed
                log.warning("%s can't be imported: %s", name, error)
            yield None
    finally:
        if files is not None:
            files.all_read()
    log.debug("everything is imported")
