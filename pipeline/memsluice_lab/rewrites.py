"""How an adaptive attacker rewords one attack: pure functions from a text to the texts that are written instead.

All of them are crude and of our own making: small tables and rules, no language model, no record of any benchmark. A
real attacker paraphrases better; what these show is which signal hangs on which surface. Meaning is kept as far as a
table can: paraphrases and the word-by-word translations are clumsy, and a passage in another script's letters still
reads the same to people.
"""

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

from memsluice_lab.rewrite_words import LANGUAGES, LOOKALIKES, PADDING, PHRASES, SYNONYMS

Rewrite = Callable[[str, Random], list[str]]
"""From a text and a source of randomness to the writes that take its place, at least one."""

PARTS_MAX = 4
PADDING_SENTENCES = 4
"""Sentences put before a text, and as many behind it: some 90 words in all."""
LOOKALIKE_SHARE = 0.35
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_MARKS = re.compile(r"\s*[?\uff1f\u037e\u061f\u00bf]")
_AUXILIARY = r"(?:did|does|do|is|are|was|were|has|have|had|can|could|will|would|should)"
_NOUN_FORMS = (
    # a question as a noun phrase: the words stay, what marks them as a question goes
    (re.compile(r"\bwhom?\b", re.IGNORECASE), "the one who"),
    (re.compile(rf"\bwhen\s+{_AUXILIARY}\b", re.IGNORECASE), "the time of how"),
    (re.compile(rf"\bwhere\s+{_AUXILIARY}\b", re.IGNORECASE), "the place of how"),
    (re.compile(rf"\bwhy\s+{_AUXILIARY}\b", re.IGNORECASE), "the reason that"),
    (re.compile(r"\bhow\s+many\b", re.IGNORECASE), "the number of"),
    (re.compile(r"\bhow\s+much\b", re.IGNORECASE), "the amount of"),
    (re.compile(r"\bhow\s+long\b", re.IGNORECASE), "the duration over which"),
    (re.compile(rf"\bhow\s+{_AUXILIARY}\b", re.IGNORECASE), "the way in which"),
    (re.compile(r"\bwhat\s+(?:is|are|was|were)\b", re.IGNORECASE), "the identity of"),
    (re.compile(rf"\bwhat\s+{_AUXILIARY}\b", re.IGNORECASE), "the thing that"),
    (re.compile(r"\bwhat\s+(?=\w)", re.IGNORECASE), "the particular "),
    (re.compile(r"\bwhich\s+(?=\w)", re.IGNORECASE), "the particular "),
)


def same(text: str, rng: Random) -> list[str]:
    """Return the text itself."""
    return [text]


def paraphrase(text: str, rng: Random) -> list[str]:
    """Turn questions into noun phrases without a mark, and replace set phrases by others that say the same."""
    for pattern, instead in _NOUN_FORMS:
        text = pattern.sub(instead, text)
    text = _QUESTION_MARKS.sub(" -", text)
    return [_replaced(text, PHRASES, rng, 1.0)]


def synonyms(text: str, rng: Random) -> list[str]:
    """Replace every word that the table knows by another of about its meaning."""
    return [_replaced(text, SYNONYMS, rng, 1.0)]


def unasked(text: str, rng: Random) -> list[str]:
    """Drop question marks."""
    return [_QUESTION_MARKS.sub("", text)]


def shuffled(text: str, rng: Random) -> list[str]:
    """Put the sentences in another order; of a single sentence, the parts between commas; else its two halves."""
    parts = sentences(text)
    joint = " "
    if len(parts) < 2:
        parts, joint = [part.strip() for part in text.split(",") if part.strip()], ", "
    if len(parts) < 2:
        words, joint = text.split(), " "
        parts = [" ".join(words[len(words) // 2 :]), " ".join(words[: len(words) // 2])] if len(words) > 1 else [text]
        return [joint.join(part for part in parts if part)]
    order = list(range(len(parts)))
    while order == sorted(order):
        rng.shuffle(order)
    return [joint.join(parts[at] for at in order)]


def split(text: str, rng: Random) -> list[str]:
    """Spread a text over two to four writes: by sentences, and a single sentence by words."""
    parts, joint = sentences(text), " "
    if len(parts) < 2:
        parts = text.split()
    count = min(PARTS_MAX, len(parts)) if len(sentences(text)) > 1 else min(2, len(parts))
    cuts = [round(number * len(parts) / count) for number in range(count + 1)] if count else []
    return [joint.join(parts[a:b]) for a, b in pairwise(cuts)] or [text]


def padded(text: str, rng: Random) -> list[str]:
    """Put honest small talk before and behind the text."""
    chosen = rng.sample(PADDING, 2 * PADDING_SENTENCES)
    return [" ".join((*chosen[:PADDING_SENTENCES], text, *chosen[PADDING_SENTENCES:]))]


def lookalikes(text: str, rng: Random) -> list[str]:
    """Replace about a third of the letters by letters of other scripts that look alike."""
    return [
        "".join(LOOKALIKES[c] if c in LOOKALIKES and rng.random() < LOOKALIKE_SHARE else c for c in text),
    ]


def translated(text: str, rng: Random) -> list[str]:
    """Replace the words that a small dictionary knows by German, Spanish or French ones, in the English order."""
    language = rng.choice(sorted(LANGUAGES))
    mark = re.sub(r"\?", " ?", text) if language == "fr" else text
    return [_replaced(mark, LANGUAGES[language], rng, 1.0)]


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def _replaced(text: str, table: Mapping[str, tuple[str, ...]], rng: Random, share: float) -> str:
    """Replace single words, and phrases of up to three words, longest first; a capital letter stays one."""
    found = list(_WORD.finditer(text))
    out, end, at = [], 0, 0
    while at < len(found):
        size = next((n for n in (3, 2, 1) if _phrase(text, found, at, n) in table), 0)
        if size and rng.random() < share:
            words = rng.choice(table[_phrase(text, found, at, size)])
            words = words[:1].upper() + words[1:] if found[at].group()[:1].isupper() else words
            out += [text[end : found[at].start()], words]
            end = found[at + size - 1].end()
        at += max(size, 1)
    return "".join((*out, text[end:]))


def _phrase(text: str, found: list[re.Match[str]], at: int, size: int) -> str:
    """Return ``size`` words in lower case, or nothing where more than a space lies between them."""
    if at + size > len(found):
        return ""
    piece = text[found[at].start() : found[at + size - 1].end()].lower()
    return piece if len(piece.split(" ")) == size else ""


REWRITES: dict[str, tuple[Rewrite, str]] = {
    "paraphrase": (paraphrase, "paraphrase by rule: questions become noun phrases"),
    "synonyms": (synonyms, "synonyms from a small table"),
    "unasked": (unasked, "question marks dropped"),
    "shuffled": (shuffled, "sentences, clauses or halves in another order"),
    "split": (split, "split over two to four writes"),
    "padded": (padded, "padded with eight honest sentences"),
    "lookalikes": (lookalikes, "a third of the letters from other scripts"),
    "translated": (translated, "word by word into German, Spanish or French"),
}
