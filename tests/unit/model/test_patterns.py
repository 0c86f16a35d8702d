"""Clients' regular expressions: RE2's syntax in RE2/J's words, and a bounded cost."""

from __future__ import annotations

import re
import string
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headpond.model import patterns
from headpond.model.pattern_spread import UNBOUNDED, spread
from headpond.model.pattern_syntax import WEIGHT_MAX
from headpond.model.patterns import LENGTH_MAX, InvalidPattern, Pattern, compiled

REFUSED_BY_KAFKA = {
    "a)": "regexp/syntax: internal error",
    "(a": "missing closing )",
    "(?i:": "missing closing )",
    "*a": "missing argument to repetition operator",
    "(*a)": "missing argument to repetition operator",
    "a|+": "missing argument to repetition operator",
    "[z-a]": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    r"\p{foo}": "invalid character class range",
    "(?P<n>a)(?P<n>b)": "duplicate capture group name",
    "(?P<n": "invalid named capture",
    "(?<=a)": "invalid named capture",
    "(?<!a)": "invalid named capture",
    "(?P=n)": "invalid or unsupported Perl syntax",
    "(?=a)": "invalid or unsupported Perl syntax",
    "(?!a)": "invalid or unsupported Perl syntax",
    "(?z)": "invalid or unsupported Perl syntax",
    "(?i": "invalid or unsupported Perl syntax",
    "(?#x)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(?s-)": "invalid or unsupported Perl syntax",
    "(?-)": "invalid or unsupported Perl syntax",
    "a\\": "trailing backslash at end of expression",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "a*+": "invalid nested repetition operator",
    "a{2}{3}": "invalid nested repetition operator",
    "a{2,1}": "invalid repeat count",
    "a{" + "9" * 4_000 + "}": "invalid repeat count",
    "{*": "invalid nested repetition operator",
    "{{2}": "invalid nested repetition operator",
    "(?P<é>a)": "invalid named capture",
    "(?P<>a)": "invalid named capture",
    "(?<n>a)(?P<n>b)": "duplicate capture group name",
    r"\x{110000}": "invalid escape sequence",
    "x{1001}": "invalid repeat count",
    "x{1,1001}": "invalid repeat count",
    "[": "missing closing ]",
    "[a": "missing closing ]",
    "[[:alpha:]": "missing closing ]",
    r"[a-\d]": "invalid escape sequence",
    **dict.fromkeys(
        [r"\1", r"\8", r"\C", r"\xg", r"\Z", r"\G", r"\K", r"\R", r"\X", r"\h", r"\e", r"\c", r"\u0041", r"\N"],
        "invalid escape sequence",
    ),
}
"""With the words of a real broker."""

TAKEN_BY_KAFKA = [
    *["(?P<n>a)", "(?P<1n>a)", "(?<n>a)", "(?i-s:a)", "(?i)(?-i)a", "(?U)a", "(?m)^a$", "a{,2}", "a{2", "a{2}?", "a+?"],
    *[r"\B", r"\07", r"\x41", r"\x{41}", r"\a", r"\_", r"\-", r"\é", "é", "", "|", "()", "(|a)", "a||b", "^*", "$+"],
    *[r"\b*", "x{0}", "x{0,}", r"\Qab", r"\Q*\E*", "(a{2}){2}", ".{1000}", r"\p{Lu}", r"\P{Lu}", r"[\pL]", r"\pZZ"],
    *[
        r"\p{Greek}",
        r"[\d-z]",
        "[]a]",
        "[^]a]",
        "[[:^alpha:]]",
        "[[:word:]]",
        "[a-z&&[^b]]",
        r"\x{1001}",
        r"[\é]",
        "[A-Za-z0-9._-]{1000}",
    ],
    *["[(?P<n>](?P<n>a)", r"\x{61}{2}", "{", "a{01}", "{,2}"],
]


@pytest.mark.parametrize("text", REFUSED_BY_KAFKA)
def test_what_kafka_refuses_is_refused_in_its_words(text: str) -> None:
    with pytest.raises(InvalidPattern, match=f"^{re.escape(REFUSED_BY_KAFKA[text])}$"):
        Pattern(text)


@pytest.mark.parametrize("text", TAKEN_BY_KAFKA)
def test_what_kafka_takes_is_taken(text: str) -> None:
    Pattern(text)


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("orders", ["orders"], ["order", "orders2", "xorders"]),
        ("orders|pay.*", ["orders", "pay", "payments"], ["ordersx"]),
        (r"(?i)ORD\.ers", ["ord.ers", "OrD.Ers"], ["ordxers"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        ("(a(?i)b)c", ["abc", "aBc"], ["Abc", "abC"]),
        (r"\d+", ["0", "42"], ["", "4a"]),
        (r"\D\W\S", ["a-b", "_.x"], ["1-b", "aab"]),
        (r"[[:alpha:]]{2}", ["ab"], ["a1", "abc"]),
        (r"[[:^digit:]\d]", ["a", "1"], ["ab"]),
        (r"[^a-c]", ["d", "A", "-"], ["a", "b"]),
        (r"\p{Lu}\p{Ll}\pN", ["Ab1"], ["ab1", "AB1"]),
        (r"\p{Latin}\P{Latin}", ["a1"], ["aa"]),
        (r"\pP", ["-", ".", "_"], ["a"]),
        (r"\Qa.b\E", ["a.b"], ["axb"]),
        (r"\x61\x{62}\143", ["abc"], ["abC"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,2}", ["a", "aa"], ["", "aaa"]),
        ("a{2", [], ["a", "aa", "a2"]),
        ("x{300}", [], ["x" * 249]),
        ("x{0,300}", ["", "x" * 249], []),
        (r"\bab\b-\Bc", [], ["ab-c"]),
        (r"\bab\b-\bc", ["ab-c"], ["abc"]),
        (r"a\Bb", ["ab"], ["a"]),
        ("^a$", ["a"], ["ab"]),
        (r"\Aa\z", ["a"], ["ba"]),
        ("(^a|b)c", ["ac", "bc"], ["c"]),
        ("é|a", ["a"], ["b"]),
        ("(a|b)*c", ["c", "abbac"], ["abd"]),
        ("(a*)*", ["", "aaa"], ["b"]),
        ("()+", [""], ["a"]),
    ],
)
def test_names_match_as_a_whole(text: str, matching: list[str], others: list[str]) -> None:
    regex = Pattern(text)
    assert [name for name in matching if not regex.matches(name)] == []
    assert [name for name in others if regex.matches(name)] == []


_pieces = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "^", "$", r"\b", r"\B", "-"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"({both[0]}|{both[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map(lambda it: f"(?:{it[0]}){it[1]}"),
    ),
    max_leaves=6,
)


@given(_pieces, st.lists(st.text("ab-1", min_size=1, max_size=6), max_size=8))
def test_names_match_as_they_do_elsewhere(text: str, names: list[str]) -> None:
    ours, pythons = Pattern(text), re.compile(text, re.ASCII)
    assert [ours.matches(name) for name in names] == [pythons.fullmatch(name) is not None for name in names]


@given(st.text(string.printable, max_size=12))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        Pattern(text).matches("orders")
    except InvalidPattern:
        pass


def test_an_expression_that_makes_others_backtrack_forever_costs_nothing_here() -> None:
    name = "a" * 240
    for text in ("(a+)+b", "(a|a)*b", "(.*)*(.*)*b", "(a?){100}a{100}b"):
        assert not Pattern(text).matches(name)  # elsewhere it would take longer than the universe has existed


@pytest.mark.parametrize(
    "text",
    [
        "(((((((){200}){200}){200}){200}){200}){200})",
        "((a{0,200}b){0,200}c){0,200}",
        "(?:a{500}){500}",
        r"\pL{1000}",
        r"(?i)[^\pL]" * 500,
        "(?i)" + "[\x00-\U0010ffff]" * 800,
        "a?" * 2_000,
        ".{1000}" * 500,
        "a" * (LENGTH_MAX + 1),
    ],
    ids=lambda text: text[:24],
)
def test_an_expression_that_takes_long_to_compile_is_refused_before_it_is(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "MEMORY_BYTES_MAX", 1 << 30)  # RE2's own limit comes too late
    with pytest.raises(InvalidPattern, match=r"too large|invalid repeat count"):
        Pattern(text)


def test_a_list_of_topics_of_the_greatest_length_is_taken() -> None:
    names = [f"topic-{number:06}" for number in range(LENGTH_MAX // 13)]
    assert LENGTH_MAX < WEIGHT_MAX
    pattern = Pattern("|".join(names))
    assert pattern.matching([*names, "topic-x"]) == names


def test_a_match_of_too_many_steps_is_refused() -> None:
    pattern = Pattern("(?:a?){500}a*")
    assert pattern.matches("a" * 500)
    with pytest.raises(InvalidPattern, match="too large"):
        pattern.matches("a" * 100_000)
    assert not Pattern("a.*b").matches("a" * 100_000)  # a usual one is small enough for any text


def test_an_expression_that_can_be_at_few_places_at_once_is_matched_however_large_it_and_the_text_are() -> None:
    chinese = "".join(chr(0x4E00 + number) for number in range(10_000))
    for text in (
        "." * 3_000,
        r"\x{4e00}" + "." * 2_999,
        ".{1000}" * 3,
        "a.{2,5}" + "." * 2_990,
        "|".join(["." * 500] * 5),
    ):
        pattern = Pattern(text)
        assert not pattern.matches(chinese) and not pattern.matches("b" * 32_767)
    assert Pattern("." * 3_000).matches(chinese[:3_000])
    with pytest.raises(InvalidPattern, match="too large"):
        Pattern(".*" + "." * 3_000).matches(chinese)  # it can be at each of its dots, at each character


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("abc", 0),
        ("a?", 1),
        ("ab?c{2,5}", 4),
        ("ab{3}", 0),
        ("a{2,5}?", 3),
        ("a??", 1),
        ("(a|bcd)", 2),
        ("(a|bcd){3}", 6),
        ("(a|bcd){0,3}", 9),
        ("a||bcd", 3),
        ("^a$|\\Ab\\z|\\bc\\B", 0),
        (r"\Qa.b\E?", 1),
        (r"\Qabc", 0),
        (r"\x41|\x{42}|\101|\07|\.|\pL|\p{Lu}|[^a-z]|\d", 0),
        (r"\x41{0,7}", 7),
        ("(?i)a(?-i:b)(?P<n>c)|xyz", 0),
        ("{|}", 0),
    ],
)
def test_the_spread_of_an_expression_is_the_longest_match_minus_the_shortest(text: str, expected: int) -> None:
    Pattern(text)
    assert spread(text) == expected


@pytest.mark.parametrize("text", ["a*", "a+", "x(ab){2,}", "(a|b*)c", "(a?)*", "(?:|a+){3}"])
def test_behind_an_unbounded_repetition_the_spread_is_unbounded(text: str) -> None:
    assert spread(text) == UNBOUNDED
    assert spread("(^|$)*") == 0


@given(_pieces, st.lists(st.text("ab-1", max_size=12), max_size=8))
def test_no_two_texts_that_match_differ_by_more_than_the_spread(text: str, names: list[str]) -> None:
    lengths = [len(name) for name in names if Pattern(text).matches(name)]
    assert not lengths or max(lengths) - min(lengths) <= spread(text)


def test_many_texts_are_matched_in_portions_whatever_the_expression() -> None:
    names = [f"{number:0240b}".translate({48: "a", 49: "b"}) for number in range(3_000)]
    usual, mean = Pattern("a.*b"), Pattern(".*a.{200}b")
    assert [len(portion) for portion in usual.portions(names)] == [1_000, 1_000, 1_000]
    portions = list(mean.portions(names))
    assert [name for portion in portions for name in portion] == names
    assert max(map(len, portions)) * 240 * mean._program_length < 2 * patterns.STEPS_AT_ONCE
    assert list(usual.portions([])) == []


def test_few_compiled_expressions_are_kept() -> None:
    import re2

    for number in range(100):
        compiled(f"orders-{number}")
    assert compiled.cache_info().currsize == patterns.COMPILED_MAX
    assert re2._Regexp._make.cache_info().currsize == 0


def test_re2_is_imported_with_the_first_expression() -> None:
    program = (
        "import sys; import headpond.broker.app; from headpond.model.patterns import compiled; "
        "assert 're2' not in sys.modules; compiled('a'); assert 're2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
