"""What a topic may be called, with Kafka's words for what it may not."""

from __future__ import annotations

import re

from headpond.model import BrokerError, ErrorCode

NAME_CHARACTERS_MAX = 249
"""Leaves room for ``-<partition>`` and a suffix in a folder name of 255 bytes."""

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def name_problem(name: str) -> str | None:
    """Why ``name`` is refused; None: it is fine."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_CHARACTERS_MAX}"
    if not _LEGAL.match(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def is_valid(name: str) -> bool:
    return name_problem(name) is None


def check_name(name: str) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def may_clash(name: str) -> bool:
    return "." in name or "_" in name


def clash_name(name: str) -> str:
    """Names with the same clash name would become the same metric, so only one of them may exist."""
    return name.replace(".", "_")
