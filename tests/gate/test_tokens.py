"""What compiled code reads in a text's letters, held against the plain words of the rule."""

import random
import re
from collections import Counter
from io import BytesIO
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest

from memsluice.errors import StateError
from memsluice.gate.detectors.wording import shipped, text, tokens
from memsluice.gate.detectors.wording.tokens import BITS, REPEATED_MAX, REPEATED_MIN, WORDS_MAX
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
    for size in (0, 1, 6, 12, 13, 20, 119, 120, 121, 400):
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
        ('He said "go." Then left.', ['He said "go."', "Then left."]),
        ("Really?! Yes. ok", ["Really?!", "Yes."]),
        ("one line\n\nanother line", ["one line", "another line"]),
        ("A list (of two.) Items", ["A list (of two.)", "Items"]),
        ("Version 3.5 is out", ["Version 3.5 is out"]),
        ("a. b. c.", ["a. b. c."]),
    ],
)
def test_a_sentence_ends_at_a_stop_before_a_blank_and_at_a_lines_end(said: str, units: list[str]) -> None:
    """The stop is the sentence's, and so are closing quotes; what has fewer than three letters is no unit."""
    assert text.units(said) == ([said] if len(units) > 1 else []) + units


PARTS = ["", "?", "Boats go.", "Boats go, and boats go home.", "a b c d e f g", "Élan über alles; naïve caches!"]


def plain_buckets(said: str) -> list[int]:
    """The buckets of one text's n-grams: of each word's end one to three words, then of each byte three to five."""

    def bucket(code: int) -> int:
        code &= 0xFFFFFFFF
        return ((code ^ code >> 15) * 0x2C1B3C6D & 0xFFFFFFFF) >> 32 - BITS

    found, codes = plain_words(said), [crc32(word.encode()) for word in plain_words(said)]
    buckets = []
    for at, code in enumerate(codes):
        buckets.append(bucket(code))
        if at >= 1:
            buckets.append(bucket((codes[at - 1] * 31 + code) * 0x9E3779B1 + 1))
        if at >= 2:
            before = codes[at - 2] * 31 + codes[at - 1]
            buckets.append(bucket((before * 31 + code) * 0x85EBCA6B + 2))
    letters = f" {' '.join(found)} ".encode() if found else b" "
    for at in range(len(letters)):
        code = letters[at]
        for width in range(2, min(5, len(letters) - at) + 1):
            code = code * 0x01000193 & 0xFFFFFFFF ^ letters[at + width - 1]
            if width >= 3:
                buckets.append(bucket(code * 0xC2B2AE35 + width))
    return buckets


def test_texts_are_split_one_behind_the_other() -> None:
    """A blank stands before each text's words and behind each word; an empty text is one blank."""
    letters, ends = tokens.split(text.letters_of(["one two", "", "three"]))
    assert (letters.tobytes(), ends.tolist()) == (b" one two  " + b" three ", [9, 10, 17])


def test_n_grams_are_of_one_to_three_words_and_three_to_five_characters() -> None:
    """As the rule says them, text by text: a text's n-grams are the same whatever stands beside it."""
    some = [*PARTS, *texts(40)]
    buckets, ends = tokens.grams(text.letters_of(some))
    firsts = [0, *ends.tolist()[:-1]]
    for said, first, end in zip(some, firsts, ends.tolist(), strict=True):
        assert buckets[first:end].tolist() == plain_buckets(said), said


def test_a_texts_log_odds_are_the_mean_by_the_root_of_its_n_grams_within_bounds() -> None:
    """``bias + sum / sqrt(n)``, clipped at either end; the worst is the first of the highest."""
    weights = np.random.default_rng(7).normal(size=1 << BITS).astype(np.float32)
    some = [said for said in [*PARTS, *texts(40)] if said]
    plain = [
        0.25 + sum(float(weights[at]) for at in plain_buckets(said)) / max(len(plain_buckets(said)), 1) ** 0.5
        for said in some
    ]
    letters = text.letters_of(some)
    assert tokens.logits(letters, weights, 0.25, 99.0).tolist() == pytest.approx(plain)
    assert tokens.logits(letters, weights, 0.25, 0.3).tolist() == pytest.approx([min(max(x, -0.3), 0.3) for x in plain])
    assert min(plain) < -0.3 < 0.3 < max(plain)
    assert tokens.worst(letters, weights, 0.25, 99.0)[1] == plain.index(max(plain))
    assert tokens.worst(text.letters_of(["boats", "boats"]), weights, 0.25, 99.0)[1] == 0


def test_a_unit_has_three_letters_and_a_question_may_be_a_mark_alone() -> None:
    """Three letters are judged by themselves; a question mark says what no question word does."""
    assert text.units("Yes.\nTake the early train.") == ["Yes.\nTake the early train.", "Yes.", "Take the early train."]
    assert text.units("No.\nTake the early train.") == ["Take the early train."]
    assert text.carries_question("You take the train?")
    assert not text.carries_question("You take the train.")


def test_a_model_of_another_size_is_refused() -> None:
    """Weights for other buckets than a text is hashed into would say something about every text, and nothing true."""
    data = BytesIO()
    parts = {"scale": 1.0, "bias": 0.0, "mix": np.zeros(4), "shares": np.zeros(2)}
    np.savez(data, weights=np.zeros(3, np.int8), tail=np.zeros(2), tail_alone=np.zeros(2), **parts)
    with pytest.raises(StateError, match=rf"3.*{1 << BITS}"):
        shipped.read(data.getvalue())


def test_a_model_of_before_is_refused() -> None:
    """A file that does not say how its numbers are weighed and how rare they are would be guessed at."""
    data = BytesIO()
    np.savez(data, weights=np.zeros(1 << BITS, np.int8), scale=1.0, bias=0.0)
    with pytest.raises(StateError, match="cannot be read"):
        shipped.read(data.getvalue())
