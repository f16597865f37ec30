"""Structured facts: what is rendered reads back, and what is none is refused by name, without a word of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.errors import InputError, LimitExceeded, MalformedEvent
from memsluice.events.facts import FACTS_MAX, Fact, parse, render


def part(chars_max: int) -> st.SearchStrategy[str]:
    """Printable text without a bar, that does not begin or end in space."""
    letters = st.characters(exclude_characters="|", exclude_categories=["C", "Z"])
    return st.text(letters, min_size=1, max_size=chars_max).filter(str.isprintable)


@given(st.lists(st.builds(Fact, part(120), part(60), part(240)), min_size=1, max_size=FACTS_MAX))
def test_what_is_rendered_reads_back(facts: list[Fact]) -> None:
    """Every list of facts within the limits is one text and the same facts again."""
    assert parse(render(facts)) == tuple(facts)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("The ferry leaves at noon.", MalformedEvent),
        ("ferry | leaves at", MalformedEvent),
        ("ferry | leaves | at | noon", MalformedEvent),
        ("ferry |  | noon", MalformedEvent),
        ("ferry | leaves at | noon\n", MalformedEvent),
        ("ferry | leaves\u202eat | noon", MalformedEvent),
        ("ferry | leaves\u2028at | noon", MalformedEvent),
        ("", MalformedEvent),
        ("f" * 121 + " | leaves at | noon", LimitExceeded),
        ("ferry | " + "l" * 61 + " | noon", LimitExceeded),
        ("ferry | leaves at | " + "n" * 241, LimitExceeded),
        ("\n".join(["ferry | leaves at | noon"] * 17), LimitExceeded),
    ],
)
def test_what_is_none_is_refused_and_not_quoted(content: str, error: type[InputError]) -> None:
    """The reason names line and part, never what stands there: verdicts hold no content."""
    with pytest.raises(error) as found:
        parse(content)
    assert not any(word in found.value.reason for word in ("ferry", "noon", "leaves", "lll", "nnn", "fff"))


def test_a_bar_in_a_part_is_refused_when_rendered() -> None:
    """Else a part could pretend to be two."""
    with pytest.raises(MalformedEvent):
        render([Fact("ferry | leaves at", "noon", "x")])
