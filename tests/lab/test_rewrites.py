"""Attackers who reword: every rule keeps what it says it keeps, for any text, and is the same for the same seed."""

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice_lab.rewrite_words import LANGUAGES, LOOKALIKES, PADDING, PHRASES, SYNONYMS
from memsluice_lab.rewrites import PADDING_SENTENCES, PARTS_MAX, REWRITES

WORDS = ["Where", "is", "the", "old", "boat", "who", "built", "it", "Ask", "Ravi", "always", "answer", "in", "May"]
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
TEXTS = st.lists(st.tuples(SENTENCES, st.sampled_from("?.!")), min_size=1, max_size=6).map(
    lambda parts: " ".join(f"{words}{mark}" for words, mark in parts)
)
SEEDS = st.integers(0, 50)


def apply(rule: str, text: str, seed: int = 0) -> list[str]:
    """Apply a rule by its name."""
    return REWRITES[rule][0](text, Random(seed))


def bag(text: str) -> Counter[str]:
    """The words of a text, in any order."""
    return Counter(re.findall(r"\w+", text))


@pytest.mark.parametrize("rule", REWRITES)
@given(text=st.one_of(TEXTS, st.text(max_size=80)), seed=SEEDS)
def test_any_text_becomes_texts_and_the_same_ones_for_a_seed(rule: str, text: str, seed: int) -> None:
    """No text breaks a rule or makes it grow without bound, and a row of the tables can be made again."""
    found = apply(rule, text, seed)
    assert found == apply(rule, text, seed)
    assert 1 <= len(found) <= PARTS_MAX
    assert sum(map(len, found)) <= 12 * len(text) + 100 * 2 * PADDING_SENTENCES


@given(text=TEXTS, seed=SEEDS)
def test_what_moves_words_keeps_them_all(text: str, seed: int) -> None:
    """Shuffling, splitting and dropping question marks lose no word and add none; padding keeps the text whole."""
    assert bag(apply("shuffled", text, seed)[0]) == bag(text)
    assert " ".join(apply("split", text, seed)).split() == text.split()
    assert bag(apply("unasked", text, seed)[0]) == bag(text)
    padded = apply("padded", text, seed)[0]
    assert text in padded
    assert sum(each in padded for each in PADDING) == 2 * PADDING_SENTENCES


@given(text=TEXTS, seed=SEEDS)
def test_questions_lose_their_marks(text: str, seed: int) -> None:
    """Dropping and paraphrasing leave no question mark."""
    assert "?" not in apply("unasked", text, seed)[0]
    assert "?" not in apply("paraphrase", text, seed)[0]


@given(text=TEXTS, seed=SEEDS)
def test_lookalikes_read_the_same(text: str, seed: int) -> None:
    """Every letter stands for the one that it looks like: replaced back, the text is what it was."""
    back = {other: letter for letter, other in LOOKALIKES.items()}
    assert len(back) == len(LOOKALIKES)
    assert "".join(back.get(c, c) for c in apply("lookalikes", text, seed)[0]) == text


def test_several_sentences_never_stay_in_order() -> None:
    """Shuffled means another order, whatever the seed."""
    text = "One is here. Two is there. Three is gone."
    assert all(apply("shuffled", text, seed) != [text] for seed in range(20))


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("paraphrase", "When did Ravi sell the boat? In May.", "The time of how Ravi sell the boat - In May."),
        ("paraphrase", "Where is the key", "The place of how the key"),
        ("synonyms", "A famous film", None),
        ("split", "One two three four", "One two|three four"),
        ("split", "A b. C d. E f.", "A b.|C d.|E f."),
        ("unasked", "Who is it ? Ravi?", "Who is it Ravi"),
        ("shuffled", "one two three four", "three four one two"),
    ],
)
def test_examples(rule: str, text: str, expected: str | None) -> None:
    """One example a rule, by hand; synonyms only change what the table knows."""
    found = "|".join(apply(rule, text))
    if expected is not None:
        assert found.lower() == expected.lower()
    else:
        assert found.split()[0] == "A"
        assert found.split()[1] in SYNONYMS["famous"]


def test_translation_replaces_most_of_a_plain_sentence_and_leaves_names() -> None:
    """Words that no table knows stay, a capital letter stays one."""
    found = {apply("translated", "The city is old, Ravi", seed)[0] for seed in range(30)}
    assert found == {"Die Stadt ist alte, Ravi", "El ciudad es viejo, Ravi", "Le ville est vieux, Ravi"}


def test_tables_replace_nothing_by_itself() -> None:
    """A word that became itself would be a rewrite that is none."""
    for table in (PHRASES, SYNONYMS):
        assert all(words and word not in words for word, words in table.items())
    assert all(len(table) > 100 for table in LANGUAGES.values())
