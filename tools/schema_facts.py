"""Carry the field facts of a Kafka release over into our schema notation, or check ours against them.

    python tools/schema_facts.py FOLDER            rewrite src/headpond/protocol/schema from Kafka's message JSONs
    python tools/schema_facts.py FOLDER --check    compare the schema with them; exit 1 on a difference

FOLDER holds the JSON resources of Kafka's jars, one sub-folder per jar (clients, group-coordinator,
transaction-coordinator, share-coordinator, storage). Only facts are taken: names, types, versions, defaults. After a
rewrite, run `ruff format` on the folder and bring `protocol/apis.py` up to date (a test says where it differs).
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parent.parent / "src" / "headpond" / "protocol" / "schema"
sys.path.insert(0, str(SCHEMA.parent.parent.parent))

# Keys spoken only between Kafka's own brokers and controllers: we have a metadata store instead.
INTERNAL_KEYS = {4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}

# Messages that are no request or response, by the module that holds them.
RECORD_MODULES = {
    "consumer_protocol": ["clients/ConsumerProtocolSubscription", "clients/ConsumerProtocolAssignment"],
    "end_txn_marker": ["clients/EndTxnMarker"],
    "default_principal_data": ["clients/DefaultPrincipalData"],
    "producer_snapshot": ["storage/ProducerSnapshot"],
    "classic_group_records": [f"group-coordinator/{name}" for name in ("*OffsetCommit*", "GroupMetadata*")],
    "consumer_group_records": ["group-coordinator/ConsumerGroup*"],
    "share_group_records": ["group-coordinator/ShareGroup*"],
    "streams_group_records": ["group-coordinator/StreamsGroup*"],
    "transaction_records": ["transaction-coordinator/*"],
    "share_state_records": ["share-coordinator/*"],
}
RECORD_TITLES = {
    "consumer_protocol": "What classic consumers put into JoinGroup and SyncGroup as opaque bytes.",
    "end_txn_marker": "The value of the control record that ends a transaction.",
    "default_principal_data": "A principal as a delegation token or a forwarded request carries it.",
    "producer_snapshot": "The producer state snapshot beside a log's segments.",
    "classic_group_records": "Records in __consumer_offsets: offsets and classic groups. KEY is the record type.",
    "consumer_group_records": "Records in __consumer_offsets: consumer groups (KIP-848). KEY is the record type.",
    "share_group_records": "Records in __consumer_offsets: share groups (KIP-932). KEY is the record type.",
    "streams_group_records": "Records in __consumer_offsets: streams groups (KIP-1071). KEY is the record type.",
    "transaction_records": "Keys and values of the records in __transaction_state.",
    "share_state_records": "Keys and values of the records in __share_group_state.",
}

WIRE = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16", "uint32": "u32",
    "float64": "float", "string": "str", "bytes": "bytes", "uuid": "Uuid", "records": "Records",
}  # fmt: skip

EMPTY = range(0)


@dataclass
class FieldJson:
    """One field, its versions clipped to those in which its parent exists."""

    name: str
    wire: str  # a key of WIRE, or the name of a struct
    is_list: bool
    versions: range
    nullable: range
    tag: int | None
    default: Any
    ignorable: bool

    @property
    def is_struct(self) -> bool:
        return self.wire not in WIRE


@dataclass
class StructJson:
    name: str
    versions: range
    fields: list[FieldJson] = field(default_factory=list)


@dataclass
class MessageJson:
    name: str
    key: int
    versions: range
    flexible: int | None
    unstable: bool
    fields: list[FieldJson]
    structs: dict[str, StructJson]


# ---- reading Kafka's JSON


def load(path: Path) -> MessageJson | None:
    """The facts of one file; None for a message that this release no longer speaks."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
    raw = json.loads(text)
    valid = versions_of(raw["validVersions"], range(32768))
    if not valid:
        return None
    flexible = versions_of(raw.get("flexibleVersions", "none"), valid)
    message = MessageJson(
        name=raw["name"],
        key=raw.get("apiKey", -1),
        versions=valid,
        flexible=flexible.start if flexible else None,
        unstable=bool(raw.get("latestVersionUnstable", False)),
        fields=[],
        structs={},
    )
    commons = {common["name"]: common["fields"] for common in raw.get("commonStructs", [])}
    message.fields = list(fields_of(raw["fields"], valid, message, commons))
    return message


def fields_of(raw: list[Any], parent: range, message: MessageJson, commons: dict[str, Any]) -> Iterator[FieldJson]:
    for one in raw:
        tagged = one.get("taggedVersions", "none")
        versions = versions_of(one.get("versions", tagged), parent)
        if not versions:
            continue
        wire = one["type"].removeprefix("[]")
        is_list = one["type"].startswith("[]")
        if wire not in WIRE:
            add_struct(wire, one.get("fields") or commons[wire], versions, message, commons)
        nullable = versions_of(one.get("nullableVersions", "none"), versions)
        yield FieldJson(
            name=snake(one["name"]),
            wire=wire,
            is_list=is_list,
            versions=versions,
            nullable=nullable,
            tag=one["tag"] if versions_of(tagged, versions) else None,
            default=default_of(wire, is_list, one.get("default")),
            ignorable=bool(one.get("ignorable", False)) and versions != parent,
        )


def add_struct(name: str, raw: list[Any], versions: range, message: MessageJson, commons: dict[str, Any]) -> None:
    struct = message.structs.get(name)
    if struct is None:
        struct = message.structs[name] = StructJson(name, versions)
    else:  # a common struct, used in several places: it exists wherever one of them does
        struct.versions = range(min(struct.versions.start, versions.start), max(struct.versions.stop, versions.stop))
    struct.fields = list(fields_of(raw, struct.versions, message, commons))


def versions_of(text: str, within: range) -> range:
    """``"3+"``, ``"2-5"``, ``"4"`` or ``"none"``, cut down to the versions in ``within``."""
    if text == "none":
        return EMPTY
    low, _, high = text.partition("-")
    start = int(low.removesuffix("+"))
    stop = within.stop if text.endswith("+") else int(high or low) + 1
    clipped = range(max(start, within.start), min(stop, within.stop))
    return clipped if clipped else EMPTY


def default_of(wire: str, is_list: bool, text: Any) -> Any:
    text = "" if text is None else str(text)
    if text == "null" or wire == "records":
        return None
    if is_list:
        return []
    if wire == "bool":
        return text.lower() == "true"
    if wire == "float64":
        return float(text or 0)
    if wire in ("string", "bytes", "uuid"):
        return {"string": text, "bytes": b"", "uuid": bytes(16)}[wire]
    if wire in WIRE:
        return int(text or "0", 0)
    return ...  # a fresh struct


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def modules(folder: Path) -> dict[str, list[MessageJson]]:
    """Our modules and the messages in each, from the files of one release."""
    found: dict[str, list[MessageJson]] = {}
    for path in sorted((folder / "clients").glob("*Request.json")):
        request, response = load(path), load(path.with_name(path.name.replace("Request", "Response")))
        if request and response and request.key not in INTERNAL_KEYS:
            found[snake(request.name.removesuffix("Request"))] = [request, response]
    for module, patterns in RECORD_MODULES.items():
        paths = [path for pattern in patterns for path in sorted(folder.glob(pattern + ".json"))]
        found[module] = [message for path in paths if (message := load(path)) is not None]
    return found


# ---- writing our notation


def write_module(name: str, messages: list[MessageJson]) -> str:
    body = "\n\n\n".join(write_message(message) for message in messages)
    words = re.sub(r'"[^"]*"', "", body)
    used = [word for word in ("Annotated",) if re.search(rf"\b{word}\b", words)]
    ours = [w for w in ("ZERO_UUID", "Message", "Records", "Struct", "Uuid") if re.search(rf"\b{w}\b", words)]
    ours += [w for w in ("i8", "i16", "i32", "i64", "u16", "u32", "versions") if re.search(rf"\b{w}\b", words)]
    lines = [f'"""{title(name, messages)}"""', "", "from __future__ import annotations", ""]
    if used:
        lines += ["from typing import Annotated", ""]
    if "fresh(" in words:
        lines += ["from msgspec import field as fresh", ""]
    lines += [f"from headpond.protocol.types import {', '.join(ours)}", "", "", body, ""]
    return "\n".join(lines).replace("fresh(", "field(").replace("import field as fresh", "import field")


def title(name: str, messages: list[MessageJson]) -> str:
    if name in RECORD_TITLES:
        return RECORD_TITLES[name]
    request = messages[0]
    versions = (
        f"v{request.versions.start}-{request.versions[-1]}" if len(request.versions) > 1 else f"v{request.versions[0]}"
    )
    unstable = f", v{request.versions[-1]} not stable yet" if request.unstable else ""
    return f"{request.name.removesuffix('Request')} (API key {request.key}): {versions}{unstable}."


def write_message(message: MessageJson) -> str:
    lines = [f"class {message.name}(Message):"]
    if message.key >= 0:
        lines.append(f"    KEY = {message.key}")
    lines.append(f"    VERSIONS = versions({message.versions.start}, {message.versions[-1]})")
    if message.flexible is not None:
        lines.append(f"    FLEXIBLE = {message.flexible}")
    for struct in message.structs.values():
        lines += ["", f"    class {struct.name}(Struct):"]
        lines += [write_field(f, message, struct.versions, nested=True) for f in struct.fields] or ["        pass"]
    if message.fields:
        lines += ["", *(write_field(f, message, message.versions, nested=False) for f in message.fields)]
    return "\n".join(lines)


def write_field(f: FieldJson, message: MessageJson, parent: range, *, nested: bool) -> str:
    scope = f"{message.name}." if nested else ""
    kind = scope + f.wire if f.is_struct else WIRE[f.wire]
    if f.is_list:
        kind = f"list[{kind}]"
    if f.nullable or f.default is None:
        kind += " | None"
    facts = []
    if f.versions != parent:
        facts.append(versions_text(f.versions, message.versions))
    if f.nullable != (f.versions if kind.endswith("None") else EMPTY):
        facts.append("null " + (versions_text(f.nullable, message.versions) if f.nullable else "never"))
    if f.tag is not None:
        facts.append(f"tag {f.tag}")
    if f.ignorable:
        facts.append("ignorable")
    if facts:
        kind = f'Annotated[{kind}, "{" ".join(facts)}"]'
    indent = "        " if nested else "    "
    return f"{indent}{f.name}: {kind} = {default_text(f, message, nested=nested)}"


def versions_text(versions: range, valid: range) -> str:
    if versions.stop == valid.stop:
        return f"{versions.start}+"
    return f"{versions.start}-{versions[-1]}" if len(versions) > 1 else f"{versions.start}"


def default_text(f: FieldJson, message: MessageJson, *, nested: bool) -> str:
    if f.default is ...:
        # A class body does not see the names of the class around it, hence the detour for nested structs.
        factory = f"lambda: {message.name}.{f.wire}()" if nested else f.wire
        return f"fresh(default_factory={factory})"
    if f.wire == "uuid" and f.default == bytes(16):
        return "ZERO_UUID"
    if isinstance(f.default, int) and abs(f.default) >= 0x7FFFFFFF:
        return f"{f.default:_}"
    return repr(f.default).replace("'", '"')


# ---- checking what we have


def differences(name: str, messages: list[MessageJson]) -> Iterator[str]:
    from headpond.protocol import facts

    module = importlib.import_module(f"headpond.protocol.schema.{name}")
    for message in messages:
        ours = facts.message_facts(getattr(module, message.name))
        for what, theirs, mine in (
            ("key", message.key, ours.key),
            ("versions", message.versions, ours.versions),
            ("flexible", message.flexible, ours.flexible),
        ):
            if theirs != mine:
                yield f"{message.name}: {what} is {mine}, Kafka says {theirs}"
        yield from field_differences(message.name, message.versions, message.fields, ours.fields)
        for struct in message.structs.values():
            owner = getattr(getattr(module, message.name), struct.name)
            mine_fields = facts.struct_fields(owner, getattr(module, message.name))
            yield from field_differences(f"{message.name}.{struct.name}", struct.versions, struct.fields, mine_fields)


def field_differences(where: str, parent: range, theirs: list[FieldJson], ours: Any) -> Iterator[str]:
    if [f.name for f in theirs] != [f.name for f in ours]:
        yield f"{where}: fields are {[f.name for f in ours]}, Kafka says {[f.name for f in theirs]}"
        return
    for their, our in zip(theirs, ours, strict=True):
        for version in parent:
            kafka = (version in their.versions, version in their.nullable, their.wire, their.is_list, their.tag)
            wire = our.struct.__name__ if our.struct else our.wire
            present = version in our.versions
            mine = (present, present and version in our.nullable, wire, our.is_list, our.tag)
            if kafka != mine:
                yield f"{where}.{their.name} v{version}: we have {mine}, Kafka says {kafka}"
        if their.default is not ... and their.default != our.default:
            yield f"{where}.{their.name}: default is {our.default!r}, Kafka says {their.default!r}"
        if their.ignorable != our.ignorable:
            yield f"{where}.{their.name}: ignorable is {our.ignorable}, Kafka says {their.ignorable}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = modules(options.folder)
    if options.check:
        lines = [line for name, messages in found.items() for line in differences(name, messages)]
        print("\n".join(lines) or f"{len(found)} modules agree")
        return 1 if lines else 0
    for name, messages in found.items():
        (SCHEMA / f"{name}.py").write_text(write_module(name, messages))
    print(f"{len(found)} modules written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
