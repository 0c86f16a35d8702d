"""From a document to a pipeline: every key, its type and its default. What belongs together is checked in ``checks``.

The keys are the same in TOML, in YAML and as arguments of the Python form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from headpond.client.security_settings import is_secret
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.kafka.option_names import KAFKA
from headpond.spark.pipeline.document import Document
from headpond.spark.pipeline.files import Files
from headpond.spark.pipeline.format_keys import read_format
from headpond.spark.pipeline.mistakes import Mistakes, Place
from headpond.spark.pipeline.model import BadRecords, Format, Mode, Pipeline, Reading, Sink, Source, Step, Watermark
from headpond.spark.pipeline.options import check_shared
from headpond.spark.pipeline.table import Table, seconds_of

ONCE = "once"
REFRESH_DEFAULT = "10 minutes"
READINGS: tuple[Reading, ...] = ("stream", "latest", "table")
MODES: tuple[Mode, ...] = ("append", "update", "complete")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Declaration:
    """Reads one document. ``pipeline`` is what is left when there were no mistakes."""

    def __init__(self, document: Document, mistakes: Mistakes, variables: Mapping[str, str]) -> None:
        self._document = document
        self._mistakes = mistakes
        self._variables = variables
        self._files = Files(document.file)
        self._secrets: set[str] = set()

    def read(self) -> Pipeline:
        root = Table(self._document, (), self._document.values, self._mistakes, "")
        name = root.text("name", is_needed=True) or ""
        if name and not _NAME.fullmatch(name):
            root.wrong("name", f"name is {name!r}: letters, digits, dot, dash and underscore, up to 100")
        trigger = self._trigger(root)
        refresh = root.duration("refresh") or REFRESH_DEFAULT
        folder = self._path(root, "folder") or f".pipelines/{name}"
        bootstrap, kafka = self._broker(root)
        bad_records = self._bad_records(root, name)
        spark = self._filled(root, "spark")
        sources = tuple(self._source(*one) for one in self._named(root, "source", _VIEW))
        steps = tuple(self._step(*one) for one in self._named(root, "step", _VIEW))
        sinks = tuple(self._sink(*one) for one in self._named(root, "sink", _NAME))
        root.end()
        for kind, found in (("source", sources), ("sink", sinks)):
            if not found and not root.has(kind):
                root.wrong(None, f"there is no {kind}: [{kind}.NAME] declares one")
        return Pipeline(
            name=name,
            file=self._document.file,
            place=root.place,
            folder=self._files.lasting(folder),
            bootstrap=bootstrap,
            kafka=kafka,
            sources=sources,
            steps=steps,
            sinks=sinks,
            bad_records=bad_records,
            trigger=trigger,
            refresh_s=seconds_of(refresh) or 0.0,
            spark=spark,
            secrets=frozenset(self._secrets),
        )

    # --- the parts ----------------------------------------------------------------------------------------------------

    def _trigger(self, root: Table) -> str | None:
        text = root.text("trigger")
        if text is None or text == ONCE:
            return None
        if seconds_of(text) is None:
            root.wrong("trigger", f"trigger is {text!r}, and should be 'once' or how often, such as '10 seconds'")
        return text

    def _broker(self, root: Table) -> tuple[str | None, dict[str, str]]:
        table = root.table("broker", "broker: ")
        if table is None:
            return None, {}
        text = table.text("bootstrap")
        bootstrap = None if text is None else self._with_variables(table, "bootstrap", text, is_kept_secret=False)
        if bootstrap is not None and not _is_bootstrap(table, bootstrap, is_whole=self._has_variables(text)):
            bootstrap = None
        kafka: dict[str, str] = {}
        for name, value in self._filled(table, "options").items():
            setting = KAFKA + name.lower().removeprefix(KAFKA)
            try:
                check_shared(setting, value)
            except WrongOption as error:
                table.wrong_setting("options", name, str(error))
            else:
                kafka[setting] = value
        table.end()
        return bootstrap, kafka

    def _bad_records(self, root: Table, name: str) -> BadRecords:
        table = root.table("bad_records", "bad_records: ")
        if table is None:
            return BadRecords()
        known: tuple[Literal["fail", "dead-letter"], ...] = ("fail", "dead-letter")
        action = table.choice("action", known, "fail")
        topic = table.text("topic")
        if topic is not None and action == "fail":
            table.wrong("topic", "topic has no effect unless action is 'dead-letter'")
        table.end()
        return BadRecords(action, topic or f"{name}-dead-letters")

    def _source(self, name: str, table: Table) -> Source:
        topics = (*table.texts("topic"), *table.texts("topics"))
        pattern = table.text("pattern")
        if topics and pattern is not None:
            table.wrong("pattern", "topic and pattern contradict each other: give one of them")
        if not any(map(table.has, ("topic", "topics", "pattern"))):
            table.wrong(None, "topic is missing (or topics, or pattern)")
        known_keys: tuple[Literal["string", "binary"], ...] = ("string", "binary")
        source = Source(
            name=name,
            place=table.place,
            topics=topics,
            pattern=pattern,
            reading=table.choice("read", READINGS, "stream"),
            format=read_format(table, self._files, is_source=True),
            key=table.choice("key", known_keys, "string"),
            start=table.choice("start", ("earliest", "latest"), "earliest"),
            with_headers=table.truth("headers"),
            watermark=self._watermark(table),
            options=self._filled(table, "options"),
        )
        table.end()
        return source

    def _step(self, name: str, table: Table) -> Step:
        sql = table.text("sql")
        sql_file = table.text("sql_file")
        python: Any = table.raw("python")
        given = [key for key in ("sql", "sql_file", "python") if table.has(key)]
        if len(given) != 1:
            told = (
                "sql is missing (or sql_file, or python)" if not given else f"{' and '.join(given)}: give one of them"
            )
            table.wrong(given[1] if given else None, told)
        sql_place = table.place_of_text("sql")
        if sql_file is not None:
            sql = self._files.text(table, "sql_file", sql_file)
            sql_place = Place(self._files.beside(sql_file), 1)
        function, python_file, python_name = self._python(table, python)
        step = Step(
            name=name,
            place=table.place,
            sql=None if sql is None else sql.strip().removesuffix(";"),
            sql_place=None if sql is None else sql_place.below(_blank_lines(sql)),
            function=function,
            python_file=python_file,
            python_name=python_name,
            watermark=self._watermark(table),
        )
        table.end()
        return step

    def _python(self, table: Table, given: Any) -> tuple[Callable[..., Any] | None, str | None, str]:
        if given is None:
            return None, None, ""
        if callable(given):
            return given, None, getattr(given, "__name__", "")
        file, _, function = str(given).rpartition(":")
        if not isinstance(given, str) or not file.endswith(".py") or not function.isidentifier():
            table.wrong("python", f"python is {given!r}, and should be FILE.py:FUNCTION")
            return None, None, ""
        self._files.check_function(table, "python", file, function)
        return None, self._files.beside(file), function

    def _sink(self, name: str, table: Table) -> Sink:
        given = [key for key in ("topic", "parquet", "console") if table.has(key)]
        if len(given) != 1:
            told = (
                "topic is missing (or parquet, or console)" if not given else f"{' and '.join(given)}: give one of them"
            )
            table.wrong(given[1] if given else None, told)
        topic, parquet, console = table.text("topic"), self._path(table, "parquet"), table.truth("console")
        is_topic = topic is not None or "topic" in given
        is_table = not is_topic and (parquet is not None or "parquet" in given)
        upsert = table.texts("upsert") if is_table else ()
        default_mode: Mode = "update" if upsert else "append"
        sink = Sink(
            name=name,
            place=table.place,
            input=table.text("from", is_needed=True) or "",
            kind="topic" if is_topic else "parquet" if is_table else "console",
            mode=table.choice("mode", MODES, default_mode),
            target=topic or (self._files.lasting(parquet) if parquet else "console" if console else ""),
            topic_partitions=table.whole_number("partitions") if is_topic else None,
            format=read_format(table, self._files, is_source=False) if is_topic else Format("json"),
            key=table.text("key") if is_topic else None,
            timestamp=table.text("timestamp") if is_topic else None,
            headers=table.text("headers") if is_topic else None,
            partition_by=table.texts("partition_by") if is_table else (),
            upsert=upsert,
            order_by=table.text("order_by") if is_table else None,
            delete_when=table.text("delete_when") if is_table else None,
            rows_max=(table.whole_number("rows") or 20) if not (is_topic or is_table) else 20,
            options=self._filled(table, "options"),
        )
        table.end()
        return sink

    def _watermark(self, table: Table) -> Watermark | None:
        inner = table.table("watermark")
        if inner is None:
            return None
        column = inner.text("column", is_needed=True)
        delay = inner.duration("delay")
        if not inner.has("delay"):
            inner.wrong(None, "delay is missing")
        inner.end()
        return Watermark(column, delay) if column and delay else None

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _named(self, root: Table, kind: str, pattern: re.Pattern[str]) -> list[tuple[str, Table]]:
        found = root.tables(kind)
        for name, table in found:
            if not pattern.fullmatch(name):
                table.wrong(None, f"{name!r} is no name for a {kind}: letters, digits and underscore")
        return found

    def _path(self, table: Table, key: str) -> str | None:
        """As it is written: a folder of the name ``${NAME}`` is not what was meant."""
        text = table.text(key)
        if text is not None and _VARIABLE.search(text):
            table.wrong(key, f"{key} is {text!r}: variables are replaced in broker, options and spark only")
        if text is not None and not text.isprintable():
            table.wrong(key, f"{key} is {text!r}: a path has no such characters")
        return text

    def _filled(self, table: Table, key: str) -> dict[str, str]:
        """Settings, with ``${NAME}`` replaced by the variable of the environment."""
        found = table.settings(key)
        for name, value in found.items():
            found[name] = self._with_variables(table, key, value, is_kept_secret=is_secret(name))
        return found

    def _has_variables(self, text: str | None) -> bool:
        return all(name in self._variables for name in _VARIABLE.findall(text or ""))

    def _with_variables(self, table: Table, key: str, value: str, *, is_kept_secret: bool) -> str:
        def replaced(match: re.Match[str]) -> str:
            known = self._variables.get(match[1])
            if known is None:
                table.wrong(key, f"the environment has no variable {match[1]}")
            return known or ""

        if "${" in _VARIABLE.sub("", value):
            table.wrong(key, f"{key} has a ${{ without a }}")
        filled = _VARIABLE.sub(replaced, value)
        if is_kept_secret and filled:
            self._secrets.add(filled)
            self._secrets.update(self._variables.get(name, "") for name in _VARIABLE.findall(value))
            self._secrets.discard("")
        return filled


def _is_bootstrap(table: Table, text: str, *, is_whole: bool) -> bool:
    """``is_whole``: no variable is missing in it, of which was told already."""
    from headpond.client.bootstrap import parse_bootstrap

    try:
        parse_bootstrap(text)
    except ValueError as error:
        if is_whole:
            table.wrong("bootstrap", str(error))
        return False
    return True


def _blank_lines(sql: str) -> int:
    """Lines before the first that has something: Spark is given the text without them."""
    return sql[: len(sql) - len(sql.lstrip())].count("\n")
