"""The code's structure, checked: no import cycle between rooms, no long functions, no large files.

A room is a folder of src/headpond, two levels deep: ``storage/log``, ``broker/net``. What counts as an import is what
runs: imports inside functions count, and so do those of modules that are named in strings (``named_in_strings``).
Imports for annotations only (under ``TYPE_CHECKING``) do not: they never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

import pytest

from headpond.broker.requests.routes import handler_name
from headpond.broker.start.later import MODULES
from headpond.cli.main import COMMANDS
from headpond.cli.pipeline.command import ACTIONS
from headpond.protocol.apis import APIS, SERVED
from unit.test_architecture import SOURCE, imported_modules, module_of, sources

FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 8
FILE_LINES_MAX = 500

LONG_FUNCTIONS = {
    "client.consumer.Reader.__init__": "each parameter is a setting that users may give",
    "client.producer.Producer.__init__": "each parameter is a setting that users may give",
    "protocol.records.builder.build_batch": "each parameter is a field of a batch",
    "protocol.records.builder.assemble": "each parameter is a field of a batch",
    "protocol.records.skim.skim": "one loop over the bytes of records: a call in it for each would double its time",
    "spark.codec.pack.pack": "a compiled kernel takes arrays, not objects",
    "spark.codec.unpack.scan": "a compiled kernel takes arrays, not objects, and is one loop",
    "storage.compaction.keys.read_keys": "one loop over the bytes of records, as skim",
    "storage.recovery.scan.scan": "one loop over the batches of a segment, and what a start waits for",
}
"""At most ten, each with its reason."""
FOREIGN_NAMES = {"murmur2_random", "pyspark_headpond", "sd_notify", "conftest.py", "json.py"}
"""Of others' code, in our docstrings."""
LARGE_FILES = {"storage/log/log.py": "the log and its state; how it is cut is decided with replication"}


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2]) if module.count(".") > 1 else module.partition(".")[0]


def without_annotations_only(tree: ast.Module) -> ast.Module:
    class Cut(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST:
            self.generic_visit(node)
            is_never_run = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return ast.If(ast.Constant(False), [ast.Pass()], node.orelse) if is_never_run else node

    return Cut().visit(tree)  # type: ignore[no-any-return]


def imports_of(texts: Mapping[str, str], packages: Iterable[str] = ()) -> dict[str, list[str]]:
    """By module: the modules that it imports when it runs, sooner or later."""
    found: dict[str, list[str]] = {}
    for module, text in texts.items():
        tree = without_annotations_only(ast.parse(text))
        named = [name for _, name in imported_modules(tree, module, is_package=module in packages)]
        modules = [name if name in texts else name.rpartition(".")[0] for name in named]
        found[module] = sorted({name for name in modules if name in texts and name != module})
    return found


def named_in_strings() -> dict[str, list[str]]:
    """By module: the modules that it imports by their names. (Functions that ``cli.common.arguments`` imports are named
    by the commands, each in its own folder.)"""
    named = {
        "broker.requests.routes": [handler_name(key) for key in SERVED],
        "broker.start.later": list(MODULES),
        "cli.main": [f"headpond.cli.{command.name}.command" for command in COMMANDS],
        "cli.pipeline.command": [f"headpond.cli.pipeline.{action.name}" for action in ACTIONS],
        "protocol.apis": [api.module for api in APIS.values()],
    }
    return {
        module: [name.removeprefix("headpond.") for name in names if name.startswith("headpond.")]
        for module, names in named.items()
    }


def cycles(imports: Mapping[str, list[str]]) -> list[list[str]]:
    """Modules that lead to each other, in sets as large as possible (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for other in imports[module]:
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in path:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            at = path.index(module)
            if len(path) - at > 1:
                found.append(sorted(path[at:]))
            del path[at:]

    for module in imports:
        if module not in order:
            visit(module)
    return found


def between_rooms(found: list[list[str]]) -> list[list[str]]:
    return [cycle for cycle in found if len({room_of(module) for module in cycle}) > 1]


def test_no_modules_of_different_rooms_import_each_other() -> None:
    texts = {module_of(path): path.read_text() for path in sources()}
    imports = imports_of(texts, {module_of(path) for path in sources() if path.name == "__init__.py"})
    for module, named in named_in_strings().items():
        assert set(named) <= imports.keys(), module
        imports[module] += named
    assert between_rooms(cycles(imports)) == []


@pytest.mark.parametrize(
    ("texts", "is_found"),
    [
        ({"a.b.c": "from headpond.d.e import f", "d.e.f": "from headpond.a.b.c import x"}, True),
        ({"a.b.c": "from headpond.d.e import f", "d.e.f": "def late():\n    from headpond.a.b import c"}, True),
        ({"a.b.c": "from headpond.a.e import f", "a.e.f": "import headpond.a.b.c"}, True),
        ({"a.b.c": "from headpond.a.b import f", "a.b.f": "from headpond.a.b import c"}, False),
        ({"a.b.c": "from headpond.d.e import f", "d.e.f": "import headpond.d.e.g", "d.e.g": ""}, False),
        ({"a.b.c": "import headpond.d.e.f", "d.e.f": "if TYPE_CHECKING:\n    import headpond.a.b.c"}, False),
    ],
    ids=["two rooms", "late", "below one folder", "one room", "one way", "annotations only"],
)
def test_a_cycle_between_rooms_is_found(texts: dict[str, str], is_found: bool) -> None:
    assert bool(between_rooms(cycles(imports_of(texts)))) is is_found


def functions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}.{inner.name}", inner
            yield from functions(inner, f"{name}.{inner.name}")
        elif isinstance(inner, ast.ClassDef):
            yield from functions(inner, f"{name}.{inner.name}")
        else:
            yield from functions(inner, name)


def is_long(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    named = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in ("self", "cls")]
    parameters = len(named) + (given.vararg is not None) + (given.kwarg is not None)
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1 > FUNCTION_LINES_MAX or parameters > PARAMETERS_MAX


def test_functions_are_short_and_take_few_parameters() -> None:
    long = {
        name
        for path in sources()
        for name, function in functions(ast.parse(path.read_text()), module_of(path))
        if is_long(function)
    }
    assert long == LONG_FUNCTIONS.keys(), "cut it along its steps; bundle parameters that belong together"
    assert len(LONG_FUNCTIONS) <= 10


def test_files_are_small() -> None:
    large = {
        path.relative_to(SOURCE).as_posix() for path in sources() if len(path.read_text().splitlines()) > FILE_LINES_MAX
    }
    assert large == LARGE_FILES.keys()


def test_names_in_docstrings_are_those_of_the_code() -> None:
    """Of ``some_name`` and ``some/file.py``: one that was renamed leaves no trace in the words."""
    files = ["/" + path.relative_to(SOURCE).as_posix() for path in sources()]
    files += ["/" + path.relative_to(SOURCE.parents[1]).as_posix() for path in SOURCE.parents[1].glob("tools/*.py")]
    known = {part for path in sources() for part in (path.stem, path.parent.name)}
    named: list[tuple[str, str]] = []
    for path in sources():
        text = path.read_text()
        named += [(name, module_of(path)) for name in re.findall(r"``([a-z]\w*_\w+|[\w/]+\.py)``", text)]
        known.update(re.findall(r"\w+", re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)))
    strangers = [
        (name, module)
        for name, module in named
        if name not in FOREIGN_NAMES
        and not (any(file.endswith("/" + name) for file in files) if name.endswith(".py") else name in known)
    ]
    assert strangers == []


def test_the_page_about_the_architecture_names_files_that_are_there() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    named = sorted(set(re.findall(r"`([\w/]+\.py)`", page)))
    files = {path.relative_to(SOURCE).as_posix() for path in sources()}
    names = {path.name for path in sources()}  # short ones stand in a sentence that names their folder
    missing = [
        one for one in named if one not in (files if "/" in one else names) and not (SOURCE.parents[1] / one).exists()
    ]
    assert missing == []


def test_the_page_about_the_architecture_shows_every_room() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    plan = page[page.index("```") : page.rindex("```")]
    rooms = [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()]
    of_two = [
        path.name
        for top in ("storage", "broker")
        for path in (SOURCE / top).iterdir()
        if (path / "__init__.py").exists()
    ]
    assert [name for name in (*rooms, *of_two) if f"{name}/" not in plan] == []
