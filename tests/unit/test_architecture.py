"""The architecture, checked: who may import whom, and that everything non-deterministic comes through a port.

Both rules are read from the source with ``ast``; nothing is imported. A failure names file, line, and the reason.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "headpond"

# --- who may import whom ----------------------------------------------------------------------------------------------

EVERYBODY_MAY_IMPORT = ("model", "ports", "config", "telemetry")
BELOW_BROKER = ("coordination", "replication", "storage", "cluster", "client", "protocol")
COMPOSITION_ROOT = "broker.app"  # puts everything together, so that nothing below may lean on it
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "model": (),
    "ports": ("model",),
    "config": ("model", "ports"),
    "telemetry": ("model", "ports", "config"),
    "protocol": EVERYBODY_MAY_IMPORT,
    "runtime": EVERYBODY_MAY_IMPORT,
    "cluster": EVERYBODY_MAY_IMPORT,
    "storage": (*EVERYBODY_MAY_IMPORT, "protocol.records"),
    "replication": (*EVERYBODY_MAY_IMPORT, "storage", "protocol.records", "cluster.image"),
    "coordination": (*EVERYBODY_MAY_IMPORT, "replication", "protocol", "cluster.image"),
    "client": (*EVERYBODY_MAY_IMPORT, "protocol"),
    "broker": (*EVERYBODY_MAY_IMPORT, *BELOW_BROKER),
    "broker.app": (*EVERYBODY_MAY_IMPORT, *BELOW_BROKER, "runtime"),
    "cli": (
        *EVERYBODY_MAY_IMPORT,
        "client",
        "protocol.records",
        "protocol.schema.produce",
        "broker.app",
        "broker.start.adoption",
        "storage",
        "runtime",
        "spark",
    ),
    "testing": (*EVERYBODY_MAY_IMPORT, "client", "protocol", "runtime"),
    "spark": (*EVERYBODY_MAY_IMPORT, "client", "protocol.records", "runtime"),
    "log": (*EVERYBODY_MAY_IMPORT, "storage", "protocol.records", "cluster.names", "runtime"),
    "embedded": (*EVERYBODY_MAY_IMPORT, "broker.app", "storage", "runtime", "testing"),
    "__main__": ("cli",),
}

NAMED_FOR_TYPE_CHECKERS = ("log", "embedded.EmbeddedBroker")
"""What ``headpond`` imports when it is first asked for: a test imports the package and looks what came with it."""

# --- what only runtime/ may touch -------------------------------------------------------------------------------------

PORT_INSTEAD_OF_MODULE = {
    "time": "Clock",
    "random": "Random",
    "secrets": "Random",
    "uuid": "Random",
    "os": "FileSystem, Random, or a helper in runtime/ (paths are joined with '/')",
    "pathlib": "FileSystem (paths are strings)",
    "shutil": "FileSystem",
    "tempfile": "FileSystem",
    "glob": "FileSystem",
    "io": "FileSystem",
    "mmap": "File.map",
    "fcntl": "FileSystem.lock",
    "sqlite3": "MetadataStore",
    "ssl": "Network",
    "socket": "Network",
    "select": "Network",
    "selectors": "Network",
    "subprocess": "Workers",
    "multiprocessing": "Workers",
    "threading": "Workers",
    "concurrent": "Workers",
    "queue": "Workers",
    "signal": "runtime.process",
    "resource": "runtime.process",
    "ctypes": "runtime.posix",
}
PORT_INSTEAD_OF_ASYNCIO = {
    "create_task": "Tasks.spawn",
    "ensure_future": "Tasks.spawn",
    "open_connection": "Network.connect",
    "open_unix_connection": "Network.connect",
    "start_server": "Network.listen",
    "start_unix_server": "Network.listen",
    "to_thread": "Workers.run",
    "create_subprocess_exec": "Workers",
    "create_subprocess_shell": "Workers",
    "new_event_loop": "runtime.process.run",
    "run": "runtime.process.run",
    "Runner": "runtime.process.run",
}
PORT_INSTEAD_OF_METHOD = {
    "create_task": "Tasks.spawn",
    "run_in_executor": "Workers.run",
    "create_connection": "Network.connect",
    "create_server": "Network.listen",
    "add_signal_handler": "runtime.process.on_stop_signals",
    "utcnow": "Clock.now_ms",
}
PURE_NAMES = {"pathlib": {"PurePath", "PurePosixPath"}, "io": {"BytesIO", "StringIO"}}

EXEMPT_FROM_PORTS = {
    "runtime": "the adapters themselves",
    "testing": "runs in the user's test process and starts brokers from outside",
    "spark.java": "looks for a Java on the user's machine",
    "spark.sink.folders": "finds the user's folder for temporary files",
    "spark.session": "prepares the user's process for the Java that Spark starts",
}


def sources() -> list[pathlib.Path]:
    return sorted(SOURCE.rglob("*.py"))


def module_of(path: pathlib.Path) -> str:
    """``broker.app`` for src/headpond/broker/app.py; "" for the package's own __init__."""
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def is_within(module: str, area: str) -> bool:
    return module == area or module.startswith(area + ".")


def imported_modules(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, module of ours without "headpond.") of each import of ours, those inside functions included. ``from a
    import b`` gives ``a.b``: whether b is a module or a name in a does not matter to the rules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_within(alias.name, "headpond"):
                    yield node.lineno, alias.name.removeprefix("headpond").removeprefix(".")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = ["headpond", *module.split(".")] if module else ["headpond"]
                kept = here[: len(here) - node.level + (1 if is_package else 0)]
                base = ".".join([*kept, *([base] if base else [])])
            if is_within(base, "headpond"):
                for alias in node.names:
                    yield node.lineno, f"{base}.{alias.name}".removeprefix("headpond.")


def wrong_imports(text: str, module: str, *, is_package: bool = False) -> list[str]:
    own_area = module.partition(".")[0]
    allowed = MAY_IMPORT.get(module) or MAY_IMPORT.get(own_area)
    if own_area == "":
        allowed = NAMED_FOR_TYPE_CHECKERS  # headpond/__init__.py: everybody pays for what it imports
    if allowed is None:
        return [f"1: {own_area} is new: say in MAY_IMPORT what it may import"]
    found = []
    for line, imported in imported_modules(ast.parse(text), module, is_package=is_package):
        area = imported.partition(".")[0]
        is_own = area == own_area and not (is_within(imported, COMPOSITION_ROOT) and module != COMPOSITION_ROOT)
        if area in MAY_IMPORT and not is_own and not any(is_within(imported, one) for one in allowed):
            found.append(f"{line}: {module} imports {imported}, but may import only {', '.join(allowed) or 'nothing'}")
    return found


def forbidden_calls(text: str) -> list[str]:
    found: list[tuple[int, str]] = []
    asyncio_names = {"asyncio"}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    root = alias.name.partition(".")[0]
                    if root in PORT_INSTEAD_OF_MODULE:
                        found.append((node.lineno, f"import {alias.name}: use {PORT_INSTEAD_OF_MODULE[root]}"))
                    if alias.name == "asyncio" and alias.asname:
                        asyncio_names.add(alias.asname)
            case ast.ImportFrom(module=str(name), level=0):
                root = name.partition(".")[0]
                for alias in node.names:
                    if root in PORT_INSTEAD_OF_MODULE and alias.name not in PURE_NAMES.get(name, ()):
                        hint = PORT_INSTEAD_OF_MODULE[root]
                        found.append((node.lineno, f"from {name} import {alias.name}: use {hint}"))
                    if root == "asyncio" and alias.name in PORT_INSTEAD_OF_ASYNCIO:
                        hint = PORT_INSTEAD_OF_ASYNCIO[alias.name]
                        found.append((node.lineno, f"from asyncio import {alias.name}: use {hint}"))
            case ast.Call(func=ast.Name(id="open")):
                found.append((node.lineno, "open(): use FileSystem.open"))
            case ast.Call(func=ast.Name(id="__import__")):
                found.append((node.lineno, "__import__(): hides what it imports"))
            case ast.Attribute(value=ast.Name(id=base), attr=name) if base in asyncio_names:
                if name in PORT_INSTEAD_OF_ASYNCIO:
                    found.append((node.lineno, f"asyncio.{name}: use {PORT_INSTEAD_OF_ASYNCIO[name]}"))
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                if name in PORT_INSTEAD_OF_METHOD:
                    found.append((node.lineno, f".{name}(): use {PORT_INSTEAD_OF_METHOD[name]}"))
                elif name in ("now", "today") and _name_of(owner) in ("datetime", "date"):
                    found.append((node.lineno, f"{_name_of(owner)}.{name}(): use Clock.now_ms"))
                elif name == "time" and "loop" in _name_of(owner):
                    found.append((node.lineno, "loop.time(): use Clock.monotonic"))
    return [f"{line}: {what}" for line, what in sorted(set(found))]


def _name_of(node: ast.expr) -> str:
    """The last word of what a method is called on: ``loop`` for self.loop and for get_running_loop()."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _name_of(function)
    return ""


def test_imports_go_in_the_agreed_directions() -> None:
    wrong = [
        f"{path.relative_to(SOURCE.parents[1])}:{what}"
        for path in sources()
        for what in wrong_imports(path.read_text(), module_of(path), is_package=path.name == "__init__.py")
    ]
    assert not wrong, "imports against the architecture:\n" + "\n".join(wrong)


def test_nothing_outside_runtime_touches_clock_chance_disk_network_or_threads() -> None:
    wrong = [
        f"{path.relative_to(SOURCE.parents[1])}:{what}"
        for path in sources()
        if not any(is_within(module_of(path), exempt) for exempt in EXEMPT_FROM_PORTS)
        for what in forbidden_calls(path.read_text())
    ]
    assert not wrong, "non-determinism that must come through a port (ports.py):\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("storage.log.log", "from headpond.protocol.codec import decoder"),
        ("storage.log.log", "from headpond.runtime.files import DiskFileSystem"),
        ("storage.log.log", "import headpond.broker.app"),
        ("storage.log.log", "def late():\n    from headpond import broker"),
        ("storage.log.log", "from ...cluster import image"),
        ("protocol.codec", "from headpond.storage import log"),
        ("cluster.controller", "from headpond.protocol.records import header"),
        ("replication.partition", "from headpond.cluster.metadata_writer import MetadataWriter"),
        ("broker.requests.dispatch", "from headpond.runtime.clock import SystemClock"),
        ("broker.handlers.fetch.fetch", "from headpond.broker import app"),
        ("cli.serve.run", "from headpond.broker.requests.dispatch import Dispatcher"),
        ("model.errors", "from headpond import ports"),
        ("spark.source.batch", "from headpond.broker import app"),
        ("spark.source.batch", "from headpond.storage import log"),
        ("client.consumer", "from headpond.spark import codec"),
        ("attic.box", "import headpond.model"),
        ("", "from headpond import cli"),
    ],
)
def test_an_import_against_the_direction_is_found(module: str, text: str) -> None:
    assert wrong_imports(text, module)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            "storage.log.log",
            "from headpond.protocol.records import header\nfrom headpond.storage.log.segment import Segment",
        ),
        ("storage.log.log", "from headpond.model import invariant\nfrom headpond.ports import Clock\nimport os"),
        ("storage.log.log", "from .segment import Segment\nfrom . import index"),
        ("replication.partition", "from headpond.cluster.image import MetadataImage"),
        ("replication.partition", "from headpond.cluster import image"),
        (
            "broker.app",
            "from headpond.runtime.clock import SystemClock\nfrom headpond.broker.requests.dispatch import X",
        ),
        ("spark.source.batch", "from headpond.client import Client\nfrom headpond.runtime.clock import SystemClock"),
        (
            "broker.net.server",
            "from headpond.broker.requests.context import Context\nfrom headpond.protocol import codec",
        ),
        ("cli.serve.run", "from headpond.broker.app import App\nfrom headpond.broker import app\nimport headpond"),
    ],
)
def test_an_import_in_the_direction_is_fine(module: str, text: str) -> None:
    assert wrong_imports(text, module) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import os.path",
        "from os import path",
        "from pathlib import Path",
        "from concurrent.futures import ThreadPoolExecutor",
        "def f():\n    import random",
        "open('x')",
        "import asyncio\nasyncio.create_task(f())",
        "import asyncio as aio\naio.to_thread(f)",
        "from asyncio import start_server",
        "loop.run_in_executor(None, f)",
        "self._loop.time()",
        "asyncio.get_running_loop().time()",
        "asyncio.get_running_loop().create_task(f())",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now(tz)",
        "datetime.date.today()",
    ],
)
def test_a_way_around_the_ports_is_found(text: str) -> None:
    assert forbidden_calls(text)


@pytest.mark.parametrize(
    "text",
    [
        "clock.now_ms()",
        "fs.open('x')",
        "from pathlib import PurePosixPath",
        "import asyncio\nawait_me = asyncio.Future",
        "from datetime import datetime, timezone\ndatetime.fromtimestamp(0, timezone.utc)",
        "request.time()",
        "workers.run(f)",
    ],
)
def test_the_use_of_ports_is_fine(text: str) -> None:
    assert forbidden_calls(text) == []
