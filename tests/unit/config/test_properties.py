"""Properties files, as Java reads them."""

from __future__ import annotations

import pytest

from headpond.config.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc:3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# x=1\n  ! y=2\n\n\r\na=1", {"a": "1"}),
        ("a=one \\\n   two\\\n\tthree", {"a": "one twothree"}),
        (r"a\=b\ c=d", {"a=b c": "d"}),
        (r"a=C:\\x\ttab\u00e4\q", {"a": "C:\\x\ttabäq"}),
        ("a=b=c # no comment", {"a": "b=c # no comment"}),
        ("a=\nb", {"a": "", "b": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ('jaas=a.B required \\\n  password="p\\\\"q";', {"jaas": 'a.B required password="p\\"q";'}),
    ],
)
def test_names_values_comments_continued_lines_and_escapes(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected
