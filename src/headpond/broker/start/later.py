"""What a start leaves out is imported once the broker serves.

A start pays for nothing that may never be asked for. When it is, the files of a module may be out of reach: there is no
descriptor left, or an update has put another version in their place. So they are all imported soon after the start, one
in each slice: a request waits for one of them at most, or, if it is the first of its API and comes before its modules
are there, for those that it needs. Only two libraries of megabytes each are left to those who need them
(``model.libraries``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from importlib import import_module

from headpond.broker.requests.routes import handler_name
from headpond.coordination.slices import Work
from headpond.ports import CodeFiles
from headpond.protocol.apis import SERVED

log = logging.getLogger("headpond.broker")

AFTER_S = 0.1
"""Those who have waited for the start are answered first."""

MODULES = (  # each after all that it imports
    "headpond.protocol.source",
    "headpond.protocol.decoding",
    "headpond.protocol.encoding",
    *(api.module for api in SERVED.values()),
    "headpond.broker.security.acl_codes",  # what several handlers use
    "headpond.broker.handlers.configs.loggers",
    "headpond.broker.handlers.configs.resources",
    "headpond.broker.handlers.topics.assignments",
    "headpond.broker.handlers.topics.topic_answers",
    "headpond.broker.handlers.transactions.common",
    *(handler_name(key) for key in SERVED),
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
