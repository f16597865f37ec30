"""Keys of crypto wallets: seed phrases that are announced as such, WIF and extended private keys (BIP 32, 39)."""

import re
from collections.abc import Iterator
from hashlib import sha256

from memsluice.gate.sensitive.hints import LONGER, Search, matches
from memsluice.gate.sensitive.span import Span

_ANNOUNCED = re.compile(
    r"(?:(?:seed|recovery|mnemonic|backup|wallet|secret)[ _-]?(?:recovery[ _-]?)?(?:phrases?|words?|seed)"
    r"|mnemonic|seed)(?![a-z])"
    r"[^\n:=.]{0,40}?(?:[:=]|[ ](?:is|are|was|ist|lautet|reads))[\s\"'`\[(-]{0,6}",
    re.IGNORECASE,
)
_OF_A_GAME = re.compile(
    r"words?\b[^\n]{0,20}\bfor\b[^\n]{0,24}\b(?:workshop|game|class|lesson|exercise|quiz|puzzle|brainstorming|training)\b",
    re.IGNORECASE,
)
_HINTS = ("seed", "recovery", "mnemonic", "backup", "wallet", "secret")
_WORDS = re.compile(r"(?:(?:[0-9]{1,2}[.):]?[ ]?)?[\"']?[A-Za-z]{3,8}[\"']?(?:[ ,\t\n-]{1,3}|(?=[^A-Za-z]|\Z))){12,24}")
_WORD = re.compile(r"[a-z]+")
_LENGTHS = (24, 21, 18, 15, 12)
_OF_SENTENCES = frozenset(
    [
        "the",
        "and",
        "for",
        "your",
        "not",
        "has",
        "have",
        "had",
        "was",
        "were",
        "from",
        "must",
        "should",
        "are",
        "its",
        "our",
        "their",
        "his",
        "her",
        "been",
    ]
)
"""Words that sentences have and BIP 39's lists have not."""
_WIF = re.compile(
    r"[5KLxyzt](?<![A-Za-z0-9].)(?:(?<=[5KL])[1-9A-HJ-NP-Za-km-z]{50,51}|(?<=[xyzt])prv[1-9A-HJ-NP-Za-km-z]{107,108})(?![A-Za-z0-9])"
)
_BASE_58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_CHECKSUM_BYTES = 4


def _phrases(text: str, lower: str) -> Iterator[Span]:
    for announced in matches(_ANNOUNCED, text, lower, _HINTS):
        some = _WORDS.match(text, announced.end())
        if some is None or _OF_A_GAME.search(announced[0]):
            continue
        words = list(_WORD.finditer(lower, some.start(), some.end()))
        count = next((one for one in _LENGTHS if one <= len(words)), 0)
        if count and not _OF_SENTENCES.intersection(word[0] for word in words[:count]):
            yield Span("seed_phrase", some.start(), words[count - 1].end())


def _keys(text: str, _: str) -> Iterator[Span]:
    yield from (Span("private_key", *one.span()) for one in _WIF.finditer(text) if _checked(one[0]))


def _checked(value: str) -> bool:
    """Whether the last four bytes are the digest of the rest: Base58Check."""
    number = 0
    for letter in value:
        number = number * 58 + _BASE_58.index(letter)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return sha256(sha256(data[:-_CHECKSUM_BYTES]).digest()).digest()[:_CHECKSUM_BYTES] == data[-_CHECKSUM_BYTES:]


SEARCHES = (
    Search(("phrase", "seed", "mnemonic", "words"), _phrases),
    Search((), _keys, LONGER),
)
