"""What a person sees: nothing that an entry contains acts on the terminal, or hides in it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.escaping import visible
from memsluice.recall.show import WITHHELD_WORDS, duration, left
from memsluice.recall.withheld import Withheld


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本語, עברית", "plain, naïve, 日本語, עברית"),
        ("\x1b[2Jgone", "<U+001B>[2Jgone"),
        ("safe\u202etxt.exe", "safe<U+202E>txt.exe"),
        ("zero\u200bwidth\ufeff", "zero<U+200B>width<U+FEFF>"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("selector\ufe0f\U000e0100", "selector<U+FE0F><U+E0100>"),
        ("filler\u3164", "filler<U+3164>"),
        ("two\nlines\r\u2028", "two ⏎ lines<U+000D><U+2028>"),
        ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + "<U+0301>" * 2),
    ],
)
def test_what_is_not_seen_is_spelled_out(text, shown) -> None:
    """Escape sequences, bidi controls, zero width, tags, selectors, fillers, piled marks."""
    assert visible(text) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    """A dump does not fill the screen, and nobody takes the part for the whole."""
    assert visible("x" * 700, 600) == "x" * 600 + " … (100 more characters)"


@given(st.text())
def test_nothing_that_acts_is_left(text) -> None:
    """Whatever the text: no control, format, private or unassigned character reaches the terminal."""
    left_over = {unicodedata.category(character) for character in visible(text)}
    assert left_over.isdisjoint({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


@pytest.mark.parametrize(
    ("length_ms", "words"), [(999, "now"), (61_000, "1 min"), (7_300_000, "2 h"), (90_000_000, "1 d"), (-5, "now")]
)
def test_times_are_short(length_ms, words) -> None:
    """Ages are read at a glance."""
    assert duration(length_ms) == words


def test_what_never_expires_says_so() -> None:
    """Of an entry without an end it is said that it never expires."""
    assert (left(None, 5), left(65_000, 5_000)) == ("never", "1 min")


def test_every_reason_has_words() -> None:
    """Nobody has to look up why an entry was withheld."""
    assert set(WITHHELD_WORDS) == set(Withheld)


def test_reasons_are_told_in_plain_words() -> None:
    """Of what is over the word is that; every reason has words of its own."""
    assert WITHHELD_WORDS[Withheld.EXPIRED] == "expired"
    assert len(set(WITHHELD_WORDS.values())) == len(WITHHELD_WORDS)
