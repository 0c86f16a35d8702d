"""How ``log dump`` prints what it finds: aligned lines for people, or one JSON object per line."""

from __future__ import annotations

import sys
from typing import Any

from headpond.cli.common.failures import in_words
from headpond.cli.common.output import json_line, print_line, time_in_words
from headpond.cli.log.files import BATCHES, Item, Kind

TEXT_CHARS_MAX = 120
"""A key or value is cut there; JSON shows it whole."""
_BATCH_HEAD = (
    f"  {'offsets':<23} {'position':>11} {'bytes':>9} {'records':>8} {'codec':<6} {'epoch':>5} {'time':<24} more"
)


class TextPrinter:
    def __init__(self) -> None:
        self.faults = 0
        self.is_terminal = sys.stdout.isatty()
        self._is_empty = True
        self._is_first = True

    def file(self, path: str, kind: Kind) -> None:
        if not self._is_first:
            self._end_file()
            print()
        self._is_first, self._is_empty = False, True
        print_line(path)
        if kind.suffix == BATCHES:
            print_line(_BATCH_HEAD)

    def item(self, item: Item) -> None:
        self._is_empty = False
        if item.kind == "batch":
            print_line(_batch_line(item.facts))
        elif item.kind == "record":
            print_line(_record_line(item.facts))
        elif item.kind == "note":
            print_line(f"  ({item.facts['text']})")
        elif item.facts:
            print_line("  " + "  ".join(f"{name.replace('_', ' ')} {value}" for name, value in item.facts.items()))
        for fault in item.faults:
            self.faults += 1
            print_line(f"  !! {fault}")

    def unreadable(self, error: OSError) -> None:
        self.item(Item("fault", {}, (in_words(error),)))

    def finish(self) -> None:
        self._end_file()

    def _end_file(self) -> None:
        if self._is_empty:
            print("  (empty)")


class JsonPrinter:
    is_terminal = False

    def __init__(self) -> None:
        self.faults = 0
        self.is_terminal = sys.stdout.isatty()
        self._path = ""

    def file(self, path: str, kind: Kind) -> None:
        self._path = path

    def item(self, item: Item) -> None:
        self.faults += len(item.faults)
        faults: dict[str, Any] = {"faults": item.faults} if item.faults else {}
        sys.stdout.write(json_line({"file": self._path, "kind": item.kind, **item.facts, **faults}))

    def unreadable(self, error: OSError) -> None:
        self.item(Item("fault", {}, (in_words(error),)))

    def finish(self) -> None:
        pass


def _batch_line(facts: dict[str, Any]) -> str:
    more = []
    if facts["producer_id"] >= 0:
        more.append(f"producer {facts['producer_id']}/{facts['producer_epoch']} from {facts['base_sequence']}")
    flags = [name for name in ("transactional", "control") if facts[name]]
    if facts["timestamp_type"] == "LogAppendTime":
        flags.append("append time")
    if facts["delete_horizon"]:
        flags.append("delete horizon")
    offsets = f"{facts['base_offset']}-{facts['last_offset']}"
    return (
        f"  {offsets:<23} {facts['position']:>11} {facts['size_bytes']:>9} {facts['records']:>8} {facts['codec']:<6} "
        f"{facts['leader_epoch']:>5} {time_in_words(facts['max_timestamp']):<24} {', '.join(more + flags)}"
    ).rstrip()


def _record_line(facts: dict[str, Any]) -> str:
    if "marker" in facts:
        return f"    {facts['offset']}  {facts['marker']} marker, coordinator epoch {facts['coordinator_epoch']}"
    parts = [str(facts["offset"]), f"key {_text(facts, 'key')}", f"value {_text(facts, 'value')}"]
    parts += [f"{_text(header, 'key')}={_text(header, 'value')}" for header in facts.get("headers", ())]
    return "    " + "  ".join(parts)


def _text(facts: dict[str, Any], name: str) -> str:
    """Quoted text, ``null``, or base64 for what is no UTF-8."""
    if f"{name}_base64" in facts:
        return _cut("base64:" + facts[f"{name}_base64"])
    text = facts.get(name)
    return "null" if text is None else _cut(json_line(text).rstrip("\n"))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}... ({len(text)} characters)"
