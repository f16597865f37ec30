"""The text of a query: what it says, that it comes back as it went, and what it answers to words that mean nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.errors import InvalidArgument
from memsluice.events.models import Tier
from memsluice.operations.held.entries import HeldState
from memsluice.operations.review.query import FIELDS, HeldQuery

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=0, max_size=20)
SCORES = st.none() | st.floats(-2, 2, allow_nan=False)
QUERIES = st.builds(
    HeldQuery,
    **{
        name: st.none() | TEXTS
        for name in ("tenant", "event", "reason", "principal", "session", "source", "assignee", "claimed_by", "model")
    },
    states=st.sets(st.sampled_from(HeldState), min_size=1).map(frozenset),
    tier=st.none() | st.sampled_from(Tier),
    taint=st.none() | st.booleans(),
    appeal=st.none() | st.booleans(),
    score_min=SCORES,
    score_max=SCORES,
    since=st.none() | st.sampled_from(["2h", "7d", "2026-11-21T14:00", "1.5 d"]),
    until=st.none() | st.sampled_from(["30m", "2026-11-21"]),
)


@given(QUERIES)
def test_every_query_comes_back_from_its_text(query: HeldQuery) -> None:
    """A filter that is saved, or goes through an address, is the filter that was made."""
    assert HeldQuery.parse(query.text()) == query


def test_nothing_said_is_what_waits() -> None:
    """The empty text asks for what a person has to decide, and says so by saying nothing."""
    assert HeldQuery.parse(" ") == HeldQuery()
    assert HeldQuery().text() == ""
    assert HeldQuery.parse("state:any").states == frozenset(HeldState)


def test_words_come_in_any_order_and_mean_what_they_say() -> None:
    """One short text holds everything that is asked for."""
    query = HeldQuery.parse('since:2h reason:detect tenant:"acme inc" score:0.2.. tier:5 taint:yes')
    assert (query.since, query.reason, query.tenant, query.score_min) == ("2h", "detect", "acme inc", 0.2)
    assert (query.tier, query.taint, query.score_max) == (Tier.EXTERNAL_WEB, True, None)
    assert query.text() == 'tenant:"acme inc" reason:detect tier:5 taint:yes score:0.2.. since:2h'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reson:detect", "no field reson; did you mean reason?"),
        ("zzz:1", "fields are tenant"),
        ("detect", "write field:value"),
        ('tenant:"acme', "write field:value"),
        ('tenant:"a"b', "write field:value"),
        (r'tenant:"\q"', "quote it as JSON"),
        ("tenant:", "has no value"),
        ("tenant:a tenant:b", "tenant is given twice"),
        ("state:held", "there is no state 'held': states are pending"),
        ("tier:0", "tiers are 1 to 5"),
        ("tier:²", "tiers are 1 to 5"),
        ("taint:maybe", "neither yes nor no"),
        ("score:0.3", "is no range"),
        ("score:..", "is no range"),
        ("score:nan..", "is no range"),
        ("since:yesterday", "is not a time"),
        ("a" * 3_000, "at most 2000 are read"),
        ("\x1b[2J:x", "<U+001B>[2J"),
        ('agent:"\\ud800"', "the value of agent has half a character in it"),
        ("agent:\ud800", "the value of agent has half a character in it"),
        (f'agent:"{chr(0x202E) * 500}"', "written out it has more than 2000 characters"),
    ],
)
def test_what_means_nothing_is_said_in_words(text: str, said: str) -> None:
    """A word that is not understood is an error that names it; it is never left out of the filter."""
    with pytest.raises(InvalidArgument) as refused:
        HeldQuery.parse(text)
    assert said in str(refused.value)


def test_every_field_can_be_asked_for() -> None:
    """No field of a query is without its word."""
    assert {*FIELDS} == {*HeldQuery.__dataclass_fields__} - {"states", "score_min", "score_max"} | {"state", "score"}


def test_two_queries_ask_for_what_both_ask_for() -> None:
    """Fields of both count, one that both name differently is no guess, and a state that nobody named narrows none."""
    first, second = HeldQuery.parse("tenant:acme since:2h"), HeldQuery.parse("reason:rates state:released tenant:acme")
    assert first.also(second).text() == "tenant:acme reason:rates state:released since:2h"
    assert second.also(first) == first.also(second)
    with pytest.raises(InvalidArgument, match="tenant is asked for twice"):
        first.also(HeldQuery.parse("tenant:globex"))
    with pytest.raises(InvalidArgument, match="score is asked for twice"):
        HeldQuery.parse("score:0.2..").also(HeldQuery.parse("score:0.3.."))


@pytest.mark.parametrize("value", ["\u6f22" * 1_900, 'a"b' * 300, "\\" * 600, "\u202ea\u200b", "\x85", "a b\u2028"])
def test_whatever_can_be_asked_for_has_a_text_that_asks_for_it(value: str) -> None:
    """What is kept under a name, or stands in an address, is read again as what it was, whatever a producer chose; and
    nothing in it hides."""
    query = HeldQuery.parse(f"agent:{json.dumps(value, ensure_ascii=False)}")
    assert query.agent == value
    assert HeldQuery.parse(query.text()) == query
    assert query.text().isprintable()
