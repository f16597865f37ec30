"""The world of facts: what is known never changes, what is fresh stands in the context alone, and lessons say so."""

import numpy as np
import pytest

from memsluice_lab.facts import world as facts
from memsluice_lab.facts.world import SLOT, SLOTS, TOKEN, WORDS, World, encode, prompted


def slots(row: np.ndarray) -> list[list[str]]:
    """Return the words of a lesson, an entry or a question with its answer each."""
    return [[WORDS[token] for token in row[at : at + SLOT]] for at in range(0, SLOTS * SLOT, SLOT)]


def test_a_known_name_has_one_answer_and_a_fresh_one_that_of_its_context() -> None:
    """Over a thousand lessons: one value of a known name, whatever an entry says; a fresh one's is what it was told."""
    tokens, learned = World(1).lessons(1_000)
    by_name, contradicted = dict[str, set[tuple[str, ...]]](), 0
    for row in tokens:
        said = {words[1]: tuple(words[2:4]) for words in slots(row) if words[0] == facts.TOLD}
        for word, name, *value, end in slots(row):
            assert end == facts.END
            if word == facts.TOLD:
                continue
            if name in facts.KNOWN_NAMES:
                by_name.setdefault(name, set()).add(tuple(value))
                contradicted += name in said and said[name] != tuple(value)
            else:
                assert said[name] == tuple(value)
    assert all(len(values) == 1 for values in by_name.values())
    assert contradicted > 100
    assert len(by_name) > facts.KNOWN / 2
    assert tokens.shape == learned.shape == (1_000, SLOTS * SLOT)


def test_answers_alone_are_learned_and_the_other_word_never_without_context() -> None:
    """Of an entry nothing is learned, of a question its answer and end; without entries there is no other word."""
    tokens, learned = World(2).lessons(200)
    for row, marks in zip(tokens, learned, strict=True):
        words = slots(row)
        for (word, *_), mark in zip(words, marks.reshape(SLOTS, SLOT).tolist(), strict=True):
            assert mark == [False, False, *[word != facts.TOLD] * 3]
        if words[0][0] != facts.TOLD:
            assert {word for word, *_ in words} == {facts.ASK}


def test_a_drill_says_its_words_again_and_asks_for_what_came_before() -> None:
    """What is learned of a drill stood earlier in it, behind the same word; no word of a run comes twice in it."""
    tokens, learned = World(6).drills(100)
    assert tokens.shape == learned.shape == (100, SLOTS * SLOT)
    for row, marks in zip(tokens.tolist(), learned.tolist(), strict=True):
        follows = dict[int, int]()
        for before, token, mark in zip(row, row[1:], marks[1:], strict=False):
            assert mark == (before in follows)
            assert follows.setdefault(before, token) == token


def test_known_names_come_the_less_the_higher_their_rank() -> None:
    """The first tenth of the known names is asked about several times as often as the last half."""
    tokens, _ = World(3).lessons(500)
    asked = [name for row in tokens for word, name, *_ in slots(row) if word == facts.ASK]
    ranks = [facts.KNOWN_NAMES.index(name) for name in asked if name in facts.KNOWN_NAMES]
    assert sum(rank < facts.KNOWN / 10 for rank in ranks) > 3 * sum(rank >= facts.KNOWN / 2 for rank in ranks) > 0


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("times", [1, 2])
def test_a_question_is_told_as_often_as_asked_for(known: bool, times: int) -> None:
    """So many entries say the true value, the others are about other names, and every word has a token."""
    world = World(4)
    for _ in range(20):
        asked = world.ask(known=known, times=times)
        about = [at for at, entry in enumerate(asked.entries) if entry.split()[1] == asked.name]
        assert tuple(about) == asked.about
        assert len(about) == times
        assert {asked.entries[at] for at in about} == {facts.told(asked.name, asked.value)}
        assert len(encode(prompted(asked.question, asked.entries))) == SLOT * facts.ENTRIES + 2


def test_an_intervention_changes_what_is_said_of_the_name_and_nothing_else() -> None:
    """Contradicted: another value in its entries, which counts as true; reworded: another word in the question."""
    asked = World(5).ask(known=False)
    other = asked.contradicted(("value0", "value1"))
    (at,) = asked.about
    assert other.value == ("value0", "value1")
    assert other.entries[at] == facts.told(asked.name, other.value)
    assert [*other.entries[:at], *other.entries[at + 1 :]] == [*asked.entries[:at], *asked.entries[at + 1 :]]
    assert asked.reworded().question.split() == [facts.WHICH, asked.name]
    assert asked.reworded().entries == asked.entries


def test_a_seed_is_a_world() -> None:
    """The same seed gives the same values and lessons, another one others."""
    first, second, third = (World(seed).lessons(4)[0].tolist() for seed in (1, 1, 2))
    assert first == second != third
    assert TOKEN[facts.END] == 0
