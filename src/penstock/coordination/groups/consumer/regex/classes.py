"""Named sets of characters."""

from __future__ import annotations

import string
import unicodedata

from penstock.coordination.groups.consumer.regex.tree import ALPHABET, WORD

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters)
_LOWER = frozenset(string.ascii_lowercase)
_UPPER = frozenset(string.ascii_uppercase)
_PUNCTUATION = frozenset(string.punctuation)
_NONE: frozenset[str] = frozenset()

ESCAPED = {"d": _DIGITS, "s": _NONE, "w": WORD}
"""Behind a backslash; in upper case: all others."""

POSIX = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": ALPHABET,
    "blank": _NONE,
    "cntrl": _NONE,
    "digit": _DIGITS,
    "graph": ALPHABET,
    "lower": _LOWER,
    "print": ALPHABET,
    "punct": _PUNCTUATION & ALPHABET,
    "space": _NONE,
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


def unicode_class(name: str) -> frozenset[str] | None:
    """What is in a category or in a script; None: there is none of that name."""
    if name == "Any":
        return ALPHABET
    if name in _CATEGORIES:
        return frozenset(char for char in ALPHABET if unicodedata.category(char).startswith(name))
    if name not in _SCRIPTS:
        return None
    if name == "Latin":
        return _LETTERS
    return ALPHABET - _LETTERS if name == "Common" else _NONE


def folded(chars: frozenset[str]) -> frozenset[str]:
    """In upper and in lower case."""
    return chars | {char.swapcase() for char in chars}
