"""What compiled code reads in a text's letters, held against the plain words of the rule."""

import random
import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

import pytest

from memsluice.gate.detectors.wording import text
from memsluice.gate.detectors.wording.tokens import REPEATED_MAX, REPEATED_MIN, WORDS_MAX
from memsluice.gate.unicode import normalise

PIECES = [
    *("boats", "harbours", "parking", "parked", "caches", "ring", "being", "ease", "trees", "e", "es", "x1", "don't"),
    *("über", "Übers", "naïve", "ﬁshing", "日本語", "élèves", "ночь", "a\u0301ed", "caf\u00e9s", "\u2014", "\u2026"),
    *("_", "snake_case", "3,5", "e-mails", "\u200b", "ze\u200bro", "\x00", "a\x07b", "’", "\u3000", "½", "²"),
]
SPACES = [" ", "  ", "\n", "\t", ". ", "? ", "", "\u00a0", "\u2028"]


def texts(number: int) -> list[str]:
    """Texts of odd pieces, from none to so many."""
    rng = random.Random(number)
    return [
        "".join(rng.choice(PIECES) + rng.choice(SPACES) for _ in range(rng.randint(0, rng.choice((4, 40, 150)))))
        for _ in range(number)
    ]


def plain_words(said: str) -> list[str]:
    """Runs of letters and digits of the normalised text."""
    return re.findall(r"[^\W_]+", normalise(said))[:WORDS_MAX]


def plain_stem(word: str) -> str:
    """The word without one plain ending and without a last ``e``; of four characters or less, the word."""
    if len(word) <= 4:
        return word
    ending = next((end for end in ("ing", "ed", "es", "s") if word.endswith(end) and len(word) - len(end) >= 3), "")
    return word.removesuffix(ending).removesuffix("e")


def plain_repetition(found: list[str]) -> float:
    """The share of words in a pair of neighbours, one of more than three letters, that occurs more than once."""
    if not REPEATED_MIN <= len(found) <= REPEATED_MAX:
        return 0.0
    pairs = list(pairwise(found))
    seen = Counter(pairs)
    some = [at for at, pair in enumerate(pairs) if seen[pair] > 1 and max(map(len, pair)) > 3]
    return len({*some, *(at + 1 for at in some)}) / len(found)


def test_words_are_runs_of_letters_and_digits_in_any_script() -> None:
    """As a regular expression finds them in the normalised text, and at most WORDS_MAX of them."""
    for said in [*texts(2_000), "ab " * 500]:
        assert text.words(said) == plain_words(said), said


def test_stems_are_of_the_words_characters() -> None:
    """By the rule on characters, not on bytes: an accented word of four letters is short."""
    assert [plain_stem(word) for word in ("parks", "parking", "trees", "being", "ease", "caches")] == [
        *("park", "park", "tr", "being", "ease", "cach")
    ]
    for said in texts(2_000):
        assert text.stems(said).tolist() == [crc32(plain_stem(word).encode()) for word in plain_words(said)], said


def test_repetition_is_that_of_pairs_of_words() -> None:
    """As it is counted pair by pair, with the stems beside it, at either end of the lengths that say something."""
    rng = random.Random(4)
    shown = 0
    for size in (0, 1, 5, 6, 7, 20, 119, 120, 121, 400):
        for _ in range(100):
            said = " ".join(rng.choices(["boats", "go", "so", "élan", "été", "harbour", "x"], k=size))
            stems, share = text.read(said)
            assert share == plain_repetition(plain_words(said)), said
            assert stems.tolist() == text.stems(said).tolist()
            shown += 0 < share < 1
    assert shown > 100


@pytest.mark.parametrize(
    ("said", "units"),
    [
        ('He said "go." Then left.', ['He said "go.', "Then left."]),
        ("Really?! Yes. ok", ["Really?!", "Yes."]),
        ("one line\n\nanother line", ["one line", "another line"]),
        ("A list (of two.) Items", ["A list (of two.", "Items"]),
        ("Version 3.5 is out", ["Version 3.5 is out"]),
        ("a. b. c.", ["a. b. c."]),
    ],
)
def test_a_sentence_ends_at_a_stop_before_a_blank_and_at_a_lines_end(said: str, units: list[str]) -> None:
    """The stop is the sentence's, closing quotes are nobody's, and what has less than three characters is no unit."""
    assert text.units(said) == ([said] if len(units) > 1 else []) + units
