"""Regular expressions that clients send, matched as Kafka matches them: RE2's syntax, linear in time and memory.

    pattern = compiled("orders-.*")     # raises InvalidPattern, with RE2/J's words
    pattern.matches("orders-eu")        # the whole text

What one costs is bounded: the length of the expression, what it weighs (``pattern_syntax``), the memory of what it is
compiled to (``MEMORY_BYTES_MAX``), and the steps of one match (``STEPS_MAX``): each instruction of its program, for
each character at which it can be there (``pattern_spread``). A match may still take a second, where an expression is
made for it and the text is long: match many texts, or long ones, in a worker. RE2 releases the interpreter lock while
it works, and can't be interrupted.

RE2 is imported when the first expression comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from headpond.model.libraries import library
from headpond.model.pattern_spread import spread
from headpond.model.pattern_syntax import InvalidPattern, for_re2

__all__ = ["InvalidPattern", "Pattern", "compiled"]

LENGTH_MAX = 4_096
"""Characters: a list of some hundred topics."""
MEMORY_BYTES_MAX = 1 << 20
"""Of one expression: its program, and what is remembered of the texts that went through it."""
COMPILED_MAX = 32
"""Expressions that are kept."""
STEPS_MAX = 1 << 26
"""Of one match, at worst: a second. A program of a usual expression has less than 100 instructions, so the text could
have 600 KB; that of one which matches texts of one length, any text."""
TEXTS_AT_ONCE = 1_000
"""Matched at a stretch: 3 ms, with a usual expression."""
STEPS_AT_ONCE = 1 << 22
"""Matched at a stretch, at worst: 0.1 s."""
BYTES_PER_CHARACTER = 4
"""At most, in UTF-8."""


class Pattern:
    """Safe to use from several threads."""

    __slots__ = ("_find", "_program_length", "_reach_bytes")

    def __init__(self, text: str) -> None:
        """Raises ``InvalidPattern``."""
        found = _compile(text)
        self._find = found.fullmatch
        self._program_length: int = found.programsize
        self._reach_bytes = BYTES_PER_CHARACTER * (1 + spread(text))

    def matches(self, text: str) -> bool:
        """The whole of it. Raises ``InvalidPattern``: the expression is too large for a text of this length."""
        encoded = text.encode()
        if self._steps(len(encoded)) > STEPS_MAX:
            raise InvalidPattern("expression too large")
        return self._find(encoded) is not None

    def matching(self, texts: Iterable[str]) -> list[str]:
        """Those that match. Raises as ``matches`` does."""
        return list(filter(self.matches, texts))

    def portions(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        """``texts`` in pieces, each for one stretch of work."""
        steps, start = 0, 0
        for at, text in enumerate(texts):
            if at > start and (steps >= STEPS_AT_ONCE or at - start >= TEXTS_AT_ONCE):
                yield texts[start:at]
                steps, start = 0, at
            steps += self._steps(len(text) if text.isascii() else BYTES_PER_CHARACTER * len(text))
        if start < len(texts):
            yield texts[start:]

    def _steps(self, size_bytes: int) -> int:
        """At worst: the program, for each byte of the text at which it can be at the same instruction."""
        return self._program_length * min(size_bytes, self._reach_bytes)


@lru_cache(maxsize=COMPILED_MAX)
def compiled(text: str) -> Pattern:
    """Raises ``InvalidPattern``."""
    return Pattern(text)


_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""From RE2's words, which an example may follow, to RE2/J's. Those that are not here are the same."""


def _compile(text: str) -> Any:
    if len(text) > LENGTH_MAX:
        raise InvalidPattern("expression too large")
    rewritten = for_re2(text).encode()
    re2 = library("re2")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_BYTES_MAX
    try:
        return re2.compile(rewritten, options)
    except re2.error as refused:
        (reason,) = refused.args
        words = (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)).partition(": ")[0]
        raise InvalidPattern(_WORDS.get(words, words)) from None
    finally:
        re2.purge()  # its own cache would keep 128 more of them
