"""What one setting is: its Kafka name, type, default and valid values, and how a text becomes its value.

Pure. The sentences in ``InvalidValue`` are the ones that Kafka's clients know: tools and tests look for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec

# Kafka's type ids, as DescribeConfigs sends them.
UNKNOWN, BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(10)
TYPE_NAMES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")

INT_MAX = 2_147_483_647
LONG_MAX = 9_223_372_036_854_775_807
_WHOLE_MAX = {INT: INT_MAX, SHORT: 32_767, LONG: LONG_MAX}

READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"

Value = bool | int | float | str | tuple[str, ...] | None


class ConfigError(ValueError):
    """The settings cannot be used as they are. The message is one sentence that says what to change."""


class InvalidValue(ConfigError):
    """A value that its setting does not take; the message names the setting."""


VALUE_SHOWN_MAX = 200
"""Of a value in a sentence: whoever sends megabytes need not get them back, nor find them in the log."""


def shortened(value: object) -> str:
    text = str(value)
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[:VALUE_SHOWN_MAX]}..."


def invalid(name: str, value: object, why: str) -> InvalidValue:
    return InvalidValue(f"Invalid value {shortened(value)} for configuration {name}: {why}")


Check = Callable[[str, Value], None]
"""Takes the setting's name and a parsed value; raises ``InvalidValue``."""


class Setting(msgspec.Struct, frozen=True):
    name: str
    type: int
    default: str | None
    check: Check | None = None
    mode: str = READ_ONLY
    used: bool = True
    """False: known and checked, so that Kafka's files and tools work, but it changes nothing here."""
    internal: bool = False
    """Not shown unless it was set."""

    @property
    def is_sensitive(self) -> bool:
        return self.type == PASSWORD

    @property
    def is_dynamic(self) -> bool:
        return self.mode != READ_ONLY

    def parse(self, text: str | None) -> Value:
        """The value of ``text``; None stays None. Raises ``InvalidValue``."""
        value = None if text is None else _CONVERT[self.type](self.name, text)
        if self.check is not None and (value is not None or self.default is not None):
            self.check(self.name, value)
        return value

    def default_value(self) -> Value:
        return None if self.default is None else _CONVERT[self.type](self.name, self.default)


def to_text(value: Value) -> str | None:
    """How Kafka writes a value: the inverse of parsing, in one form for each value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def java_double(value: float) -> str:
    """Java's form of a double: an exponent below 10^-3 and from 10^7 on."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits, _, exponent = f"{value:.16e}".partition("e")
        digits = repr(float(digits))
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


# --- valid values -----------------------------------------------------------------------------------------------------


def between(low: float | None, high: float | None = None) -> Check:
    def check(name: str, value: Value) -> None:
        if value is None:
            raise invalid(name, "null", "Value must be non-null")
        assert isinstance(value, int | float)
        if low is not None and value < low:
            raise invalid(name, to_text(value), f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid(name, to_text(value), f"Value must be no more than {high}")

    return check


def one_of(*choices: str) -> Check:
    def check(name: str, value: Value) -> None:
        for word in value if isinstance(value, tuple) else (value,):
            if word not in choices:
                raise invalid(name, word, f"String must be one of: {', '.join(choices)}")

    return check


def one_of_any_case(*choices: str) -> Check:
    def check(name: str, value: Value) -> None:
        if not isinstance(value, str) or value.upper() not in choices:
            raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(choices)}")

    return check


def not_empty(name: str, value: Value) -> None:
    if value == "":
        raise invalid(name, "", "String must be non-empty")


def gzip_level(name: str, value: Value) -> None:
    if not isinstance(value, int) or not (value == -1 or 1 <= value <= 9):
        raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def throttled_replicas(name: str, value: Value) -> None:
    """``*`` or a list of partition:broker."""
    assert isinstance(value, tuple)
    if value == ("*",) or all(_is_replica(word) for word in value):
        return
    raise invalid(
        name,
        f"[{', '.join(value)}]",
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )


def _is_replica(word: str) -> bool:
    partition, colon, broker = word.partition(":")
    return bool(colon) and all(part.isascii() and part.isdigit() for part in (partition.strip(), broker.strip()))


# --- text to value ----------------------------------------------------------------------------------------------------


def trimmed(text: str) -> str:
    """As Java trims: everything up to the space goes, and no other white space."""
    return text.strip(_UP_TO_SPACE)


_UP_TO_SPACE = "".join(map(chr, range(33)))
_AROUND_COMMAS = " \t\n\v\f\r"
# Each reads a text once, however long it is and wherever it goes wrong.
_WHOLE = re.compile(r"([+-]?)(?=\d)0*+(\d{0,40})")
_DECIMAL = re.compile(r"([+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX]([0-9a-fA-F]++(\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?[0-9]+)[fFdD]?")
_NOT_FINITE = re.compile(r"[+-]?(NaN|Infinity)")


def whole_number(text: str, most: int) -> int | None:
    """What Java's ``parseInt`` and ``parseLong`` take (digits of any script, but not "1_000"), from ``-most - 1`` to
    ``most``; None for everything else, however long it is."""
    found = _WHOLE.fullmatch(text)
    if found is None or max(text) > "\uffff":  # Java looks at 16 bits at a time
        return None
    value = int(found[1] + (found[2] or "0"))
    return value if -most - 1 <= value <= most else None


def _boolean(name: str, text: str) -> Value:
    word = trimmed(text).lower()
    if word not in ("true", "false"):
        raise invalid(name, text, "Expected value to be either true or false")
    return word == "true"


def _string(name: str, text: str) -> Value:
    return trimmed(text)


def _whole(type_: int) -> Callable[[str, str], Value]:
    most = _WHOLE_MAX[type_]

    def convert(name: str, text: str) -> Value:
        value = whole_number(trimmed(text), most)
        if value is None:
            raise invalid(name, text, f"Not a number of type {TYPE_NAMES[type_]}")
        return value

    return convert


def _double(name: str, text: str) -> Value:
    """What Java's ``parseDouble`` takes, if it is finite. Kafka takes NaN too, which no range keeps out."""
    word = trimmed(text)
    try:
        if found := _DECIMAL.fullmatch(word):
            value = float(found[1])
        elif found := _HEXADECIMAL.fullmatch(word):
            value = float.fromhex(found[1])
        elif _NOT_FINITE.fullmatch(word):
            value = math.inf
        else:
            raise invalid(name, text, "Not a number of type DOUBLE")
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise invalid(name, text, "Value must be a finite number")
    return value


def _list(name: str, text: str) -> Value:
    whole = trimmed(text)
    if not whole:
        return ()
    words = tuple(dict.fromkeys(word.strip(_AROUND_COMMAS) for word in whole.split(",")))  # doubles say nothing new
    if "" in words:
        raise InvalidValue(f"Configuration '{name}' values must not be empty.")
    return words


_CONVERT: dict[int, Callable[[str, str], Value]] = {
    BOOLEAN: _boolean,
    STRING: _string,
    INT: _whole(INT),
    SHORT: _whole(SHORT),
    LONG: _whole(LONG),
    DOUBLE: _double,
    LIST: _list,
    CLASS: _string,
    PASSWORD: _string,
}
