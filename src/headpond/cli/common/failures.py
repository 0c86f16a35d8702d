"""How a command ends without success: one sentence for a person, and an exit code.

0    done
1    it failed: the sentence on stderr says what to do
2    the command line or a setting is wrong: nothing was tried
130  Ctrl-C
143  SIGTERM, from a command that talks to a broker: it has cleared up
129  SIGHUP, the same: its terminal was closed
"""

from __future__ import annotations

from collections.abc import Iterable

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130
TERMINATED = 143
HUNG_UP = 129

EXIT_CODES = "exit codes: 0 done · 1 failed · 2 wrong command line · 130 stopped by Ctrl-C"


class CommandFailed(Exception):
    """The message is one sentence that says what is wrong and, where that is not plain, what to do."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


class WrongUsage(CommandFailed):
    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE)


def in_words(error: BaseException) -> str:
    """One sentence; an error of the system without its number, and with the file that it is about."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)``, or nothing when nothing is near; fit for a terminal."""
    from headpond.cli.common.printable import printable  # for those who mistype
    from headpond.model import nearest

    return printable(nearest.did_you_mean(name, known))


def counted(count: int, noun: str) -> str:
    """``1 record``, ``2 records``, ``1,000 batches``."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and not noun.endswith("ey"):
        plural = noun[:-1] + "ies"
    else:
        plural = noun + ("es" if noun.endswith(("ch", "x", "s")) else "s")
    return f"{count:,} {plural}"
