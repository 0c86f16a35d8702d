"""Properties files, as Java reads them."""

from __future__ import annotations

import pytest

from headpond.config.properties import NotProperties, parse_properties, read_properties


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
        ("a=1\\\\\\\n\\\n2", {"a": "1\\2"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a\xa0b=1\nc\vd=2", {"a\xa0b": "1", "c\vd": "2"}),  # neither ends a name
        ("a\\\n\nb=1\n\\\n#c=2", {"a": "", "b": "1"}),  # an empty line ends what is continued
        ("a=1\\\n   #2\nb   =  3  \n=4\nc=5\\", {"a": "1#2", "b": "3  ", "": "4", "c": "5"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
        ('jaas=a.B required \\\n  password="p\\\\"q";', {"jaas": 'a.B required password="p\\"q";'}),
    ],
)
def test_names_values_comments_continued_lines_and_escapes(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_value_may_be_continued_over_very_many_lines() -> None:
    """In time that grows with their number, not with its square: that would be minutes."""
    lines = 50_000
    assert parse_properties("a=" + ("x" * 200 + "\\\n") * lines) == {"a": "x" * 200 * lines}


@pytest.mark.parametrize(
    ("data", "value"), [("ä€".encode(), "ä€"), ("ä".encode("latin-1"), "ä"), (b"\\u00e4", "ä"), (b"a\xff\xfe", "aÿþ")]
)
def test_a_file_is_utf_8_or_else_what_java_reads(data: bytes, value: str) -> None:
    assert read_properties(b"# a comment\nname=" + data) == {"name": value}
    assert read_properties(b"\xef\xbb\xbfname=1") == {"name": "1"}, "an editor's mark is not part of a name"


@pytest.mark.parametrize("data", [b"a=\\u12", b"a=\\uxyzw", b"\\u=1", b"a=\\ud83d", b"a=\\ude00\\ud83d", b"\x00\x01"])
def test_what_java_does_not_read_either_is_refused(data: bytes) -> None:
    with pytest.raises(NotProperties, match=r"^not a "):
        read_properties(data)
