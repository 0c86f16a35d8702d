"""Named sets of characters, as far as they are in an alphabet."""

from __future__ import annotations

import string
import unicodedata

from penstock.coordination.groups.consumer.regex.tree import WORD

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)
_LOWER = frozenset(string.ascii_lowercase)
_UPPER = frozenset(string.ascii_uppercase)
_PUNCTUATION = frozenset(string.punctuation)
_ASCII = frozenset(map(chr, range(128)))
_SPACE = frozenset("\t\n\f\r ")

ESCAPED = {"d": _DIGITS, "s": _SPACE, "w": WORD}
"""Behind a backslash; in upper case: all others."""

POSIX = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, range(32))) | {"\x7f"},
    "digit": _DIGITS,
    "graph": _LETTERS | _DIGITS | _PUNCTUATION,
    "lower": _LOWER,
    "print": _LETTERS | _DIGITS | _PUNCTUATION | {" "},
    "punct": _PUNCTUATION,
    "space": _SPACE | {"\v"},
    "upper": _UPPER,
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}

_CATEGORIES = frozenset(
    (
        "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
        "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
    )
)  # fmt: skip
_SCRIPTS = frozenset(
    (
        "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali", "Bopomofo", "Brahmi", "Braille",
        "Buginese", "Buhid", "Canadian_Aboriginal", "Carian", "Chakma", "Cham", "Cherokee", "Common", "Coptic",
        "Cuneiform", "Cypriot", "Cyrillic", "Deseret", "Devanagari", "Egyptian_Hieroglyphs", "Ethiopic", "Georgian",
        "Glagolitic", "Gothic", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hebrew", "Hiragana",
        "Imperial_Aramaic", "Inherited", "Inscriptional_Pahlavi", "Inscriptional_Parthian", "Javanese", "Kaithi",
        "Kannada", "Katakana", "Kayah_Li", "Kharoshthi", "Khmer", "Lao", "Latin", "Lepcha", "Limbu", "Linear_B",
        "Lisu", "Lycian", "Lydian", "Malayalam", "Mandaic", "Meetei_Mayek", "Meroitic_Cursive",
        "Meroitic_Hieroglyphs", "Miao", "Mongolian", "Myanmar", "New_Tai_Lue", "Nko", "Ogham", "Ol_Chiki",
        "Old_Italic", "Old_Persian", "Old_South_Arabian", "Old_Turkic", "Oriya", "Osmanya", "Phags_Pa", "Phoenician",
        "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian", "Sinhala", "Sora_Sompeng", "Sundanese",
        "Syloti_Nagri", "Syriac", "Tagalog", "Tagbanwa", "Tai_Le", "Tai_Tham", "Tai_Viet", "Takri", "Tamil", "Telugu",
        "Thaana", "Thai", "Tibetan", "Tifinagh", "Ugaritic", "Vai", "Yi",
    )
)  # fmt: skip


def unicode_class(name: str, alphabet: frozenset[str]) -> frozenset[str] | None:
    """What is in a category or in a script; None: there is none of that name."""
    if name == "Any":
        return alphabet
    if name in _CATEGORIES:
        return frozenset(char for char in alphabet if unicodedata.category(char).startswith(name))
    if name not in _SCRIPTS:
        return None
    return frozenset(char for char in alphabet if _script(char) == name)


_SHARED = ("P", "S", "Z", "C", "N")
_HAN = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI RADICAL")
_BY_LENGTH = sorted(_SCRIPTS, key=len, reverse=True)


def _script(char: str) -> str:
    """By its name, which begins with that of its script; Python's tables have nothing better to offer."""
    name = unicodedata.name(char, "")
    if name.startswith(_HAN):
        return "Han"
    category = unicodedata.category(char)
    if name.startswith("COMBINING") and category.startswith("M"):
        return "Inherited"
    if char in "ªº":
        return "Latin"
    if char.isascii() and not char.isalpha():
        return "Common"
    found = next((script for script in _BY_LENGTH if name.startswith(script.upper().replace("_", " ") + " ")), "")
    return found or ("Common" if category.startswith(_SHARED) else "")


def folded(chars: frozenset[str], alphabet: frozenset[str]) -> frozenset[str]:
    """In upper and in lower case."""
    wanted = frozenset(map(_fold, chars))
    return frozenset(char for char in alphabet if _fold(char) in wanted)


def _fold(char: str) -> str:
    """Character by character, as RE2 does: what becomes longer (the German ß) stays as it is."""
    for same in (char.casefold(), char.lower()):
        if len(same) == 1:
            return same
    return char
