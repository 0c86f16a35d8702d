"""The words that parity scripts are written in: plain data that says what is asked, not what is answered.

    Script("a name that a topic has already", each="CreateTopics", steps=[
        topic("t"),                                                     # made, and waited for until it leads
        ask("CreateTopics", topics=[{"name": "${t}", "num_partitions": 1, "replication_factor": 1}]),
        ask("Metadata", versions=ALL, topics=[{"name": "${t}"}]),
    ])

A script is played from its first step to its last on fresh connections; it shares its broker with the other scripts of
its file unless it says ``fresh``. With ``each`` it is played once for every version of that API, whose steps follow;
other steps are asked at their highest version, at the ``versions`` that they name, or at all of them. Fields that a
version does not have are left out, so one step can give both the name and the id of a topic.

``${t}`` is the name of topic ``t`` (which is different for every script and round), ``${t.id}`` its id; ``capture``
names what an answer says, for the steps after it. In the answers, all of these are put back: see ``player.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.batches import Rec, build

ALL: tuple[int, ...] = ()
"""Every version that Kafka serves."""

T0_MS = 1_700_000_000_000
"""The timestamp of records, unless a step says otherwise: the same in every recording."""

Variables = Mapping[str, Any]


@dataclass(frozen=True)
class Ask:
    """One request, and its answer."""

    api: str
    fields: Mapping[str, Any]
    label: str = ""
    versions: Sequence[int] | None = None
    capture: Mapping[str, str] = field(default_factory=dict)
    """Variable -> where it stands in the answer, e.g. ``topics[0].topic_id``."""
    until: Callable[[Any], bool] | None = None
    """Asked again until this holds, where Kafka answers before it has acted; the last answer counts."""
    unordered: Sequence[str] = ()
    """Lists in whose order Kafka's hash maps show; compared sorted."""
    patience_s: float = 30.0
    """No answer within this time is an observation too."""
    answered: bool = True
    """False: acks=0, whose silence shows in the next answer being the next request's."""
    connection: str = "main"
    parked: str = ""
    """Sent and left waiting under this name; the step ``answer(name)`` reads what comes."""
    shown: bool = True
    """False: only to wait ``until`` something is so; how long that takes, and by which answers, is not compared."""


@dataclass(frozen=True)
class Answer:
    """What a request that was parked is answered at last."""

    parked: str
    label: str
    unordered: Sequence[str] = ()
    capture: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Bytes as they are, in a frame or not; ``read_as``: how an answer is read, if not as the bytes say."""

    label: str
    data: bytes
    read_as: tuple[str, int] | None = None


@dataclass(frozen=True)
class MakeTopic:
    """A topic to work with. Its creation is not compared: that has scripts of its own."""

    handle: str
    partitions: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class MakeName:
    """A name that no other script or round uses: of a group, say."""

    handle: str


@dataclass(frozen=True)
class Restart:
    """The broker is stopped politely and started again on its data; only for scripts with a ``fresh`` one."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that are others from here on."""


Step = Ask | Answer | Raw | MakeTopic | MakeName | Restart


@dataclass(frozen=True)
class Script:
    name: str
    steps: Sequence[Step]
    each: str | None = None
    only: Sequence[int] = ALL
    """Of ``each``, where its versions are told apart by more than their fields."""
    fresh: bool = False
    """Needs a broker that nobody has asked for anything yet."""


def ask(
    api: str,
    label: str = "",
    *,
    versions: Sequence[int] | None = None,
    capture: Mapping[str, str] | None = None,
    until: Callable[[Any], bool] | None = None,
    unordered: Sequence[str] = (),
    patience_s: float = 30.0,
    answered: bool = True,
    connection: str = "main",
    parked: str = "",
    shown: bool = True,
    **fields: Any,
) -> Ask:
    return Ask(
        api, fields, label, versions, capture or {}, until, unordered, patience_s, answered, connection, parked, shown
    )


def answer(
    parked: str, label: str = "", *, unordered: Sequence[str] = (), capture: Mapping[str, str] | None = None
) -> Answer:
    return Answer(parked, label or parked, unordered, capture or {})


def name(handle: str) -> MakeName:
    return MakeName(handle)


def topic(handle: str = "t", *, partitions: int = 1, **configs: str) -> MakeTopic:
    """Settings with ``_`` for ``.``. Nothing expires by default: the records' timestamps are of 2023."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return MakeTopic(handle, partitions, {"retention.ms": "-1", **named})


class Late:
    """A field whose value depends on variables."""

    def __init__(self, make: Callable[[Variables], Any]) -> None:
        self.make = make


def batch(*records: Rec | str, **fields: Any) -> Late:
    """Records of a Produce request; the fields are those of ``support.batches.build`` and may be ``"${variables}"``."""
    rows = [Rec(record.encode()) if isinstance(record, str) else record for record in records]

    def make(variables: Variables) -> bytes:
        given = {name: resolve(value, variables) for name, value in fields.items()}
        return build(rows, **{"timestamp_ms": T0_MS, **given})

    return Late(make)


def joined(*parts: Late) -> Late:
    return Late(lambda variables: b"".join(part.make(variables) for part in parts))


def resolve(value: Any, variables: Variables) -> Any:
    """``value`` with its variables filled in, down to the last leaf."""
    if isinstance(value, Late):
        return value.make(variables)
    if isinstance(value, str) and "${" in value:
        for name, known in variables.items():
            if value == f"${{{name}}}":
                return known
            value = value.replace(f"${{{name}}}", str(known))
        assert "${" not in value, f"no such variable: {value}"
        return value
    if isinstance(value, Mapping):
        return {key: resolve(each, variables) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(each, variables) for each in value]
    return value
