"""Text from elsewhere on a line of ours: names of groups, clients and transactions may hold anything.

A line end would make two rows of one, and an escape sequence would be the terminal's to obey: what is no printable
character stands as Python writes it, ``\\n`` or ``\\x1b``. JSON has escapes of its own.
"""

from __future__ import annotations


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def display_width(text: str) -> int:
    """How many columns of a terminal it takes: none for an accent on the letter before, two for a Chinese sign."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(each) in ("Mn", "Me") else 2 if east_asian_width(each) in ("W", "F") else 1 for each in text
    )
