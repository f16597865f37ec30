"""Self-written texts of mixed length and script for the encoder's tests."""

_FIRST = "harbour ledger kettle Tuesday invoice garden the of and moved booked prefers Ines orchard twelve quietly"
_SECOND = "late report window because under train cheaper whenever blue answer café naïve 7:40 €2,000 re-read"
WORDS = f"{_FIRST} {_SECOND}".split()


def sentence(number: int, words: int) -> str:
    """Return a text of a given number of words, another one for each number."""
    return " ".join(WORDS[(number * 7 + at * at + at * number) % len(WORDS)] for at in range(words))


MIXED = [sentence(number, 1 + (number * 13) % 70) for number in range(60)]
ODD = [
    "",
    " ",
    "\n\t",
    ".",
    "x" * 10_000,
    sentence(3, 2_000),
    "日本語の短い文です。",
    "北京" * 400,
    "مرحبا، القطار يغادر عند الظهر.",
    "שלום עולם",
    "👨‍👩‍👧 ❤️ 🚂 🚂 🚂",
    "नमस्ते दुनिया",
    "a\u0301\u0302\u0303 combining",
    "nul \x00 and bell \x07",
    "[CLS] [SEP] [PAD] [MASK] [UNK]",
    "zero\u200bwidth and \u202ereversed\u202c",
]
ALL = MIXED + ODD
