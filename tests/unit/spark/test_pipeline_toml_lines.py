"""Where each key of a TOML document stands."""

from __future__ import annotations

import textwrap
import tomllib

import pytest

from headpond.spark.pipeline.toml_lines import lines_of

DOCUMENT = textwrap.dedent(
    '''\
    # a comment with a [header] and a key = 1
    name = "x"            # another
    trigger = 'once'

    [source.clicks]
    topic = "cli\\"cks = [1"
    schema = """
      user STRING, # no comment
      "at" = TIMESTAMP
    """
    watermark = { column = "at", delay = "1 minute" }
    options.maxOffsetsPerTrigger = 5
    "quoted key" = true

    [source."with dot.s"]
    topics = [
      "a",   # first
      "b",
    ]
    writer_schemas = { 1 = "a", "2" = "b" }
    [[step]]
    sql = \'\'\'a = 1\'\'\'
    [[step]]
    sql = "b"
    [step.more]
    deep.er = 1
    '''
)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("trigger",), 3),
        (("source",), 5),
        (("source", "clicks"), 5),
        (("source", "clicks", "topic"), 6),
        (("source", "clicks", "schema"), 7),
        (("source", "clicks", "watermark"), 11),
        (("source", "clicks", "watermark", "delay"), 11),
        (("source", "clicks", "options", "maxOffsetsPerTrigger"), 12),
        (("source", "clicks", "quoted key"), 13),
        (("source", "with dot.s"), 15),
        (("source", "with dot.s", "topics", "1"), 18),
        (("source", "with dot.s", "writer_schemas", "2"), 20),
        (("step", "0", "sql"), 22),
        (("step", "1", "sql"), 24),
        (("step", "1", "more", "deep", "er"), 26),
    ],
)
def test_a_key_is_found_on_its_line(path: tuple[str, ...], line: int) -> None:
    assert lines_of(DOCUMENT)[path] == line


def test_every_key_that_the_parser_finds_has_a_line() -> None:
    lines = lines_of(DOCUMENT)

    def walk(value: object, path: tuple[str, ...]) -> None:
        if path:
            assert path in lines, path
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, each in inner:
            walk(each, (*path, str(name)))

    walk(tomllib.loads(DOCUMENT), ())
