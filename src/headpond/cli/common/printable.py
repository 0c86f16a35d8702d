"""Text from elsewhere on a line of ours: names of groups, clients and transactions may hold anything.

A line end would make two rows of one, and an escape sequence would be the terminal's to obey: what is no printable
character stands as Python writes it, ``\\n`` or ``\\x1b``; in JSON as ``\\u001b``, so that it is the same document.
"""

from __future__ import annotations


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)


def printable_json(document: str) -> str:
    """A JSON document in which all strings are printable. Its own line ends stay."""
    if document.isprintable():
        return document
    import json

    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in document)


def display_width(text: str) -> int:
    """How many columns of a terminal it takes: none for an accent on the letter before, two for a Chinese sign."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(each) in ("Mn", "Me") else 2 if east_asian_width(each) in ("W", "F") else 1 for each in text
    )
