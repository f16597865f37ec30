"""Payment cards, IBANs and US social security numbers: what has a form of its own, and a checksum or rules.

Sources: ISO/IEC 7812 (issuer ranges, Luhn), ISO 13616 and SWIFT's IBAN registry (lengths, mod 97), SSA's rules for
numbers that were never issued.
"""

import re
from collections.abc import Iterator

from memsluice.gate.sensitive.hints import DIGITS, Search, matches
from memsluice.gate.sensitive.national import luhn
from memsluice.gate.sensitive.span import Span

_THIRTEEN = re.compile(r"[0-9](?:[ \t._-]{0,3}[0-9]){12}")
_RUN = re.compile(r"[0-9]+(?:(?:[ \t-]{1,3}|[._](?=[0-9]{4}(?![0-9])))[0-9]+)*")
_GROUP = re.compile(r"[0-9]+")
_PRINTED = ((4, 4, 4, 4, 3), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 3), (4, 4, 4, 2), (4, 4, 4, 1))
"""How cards are printed, the longest first: a shorter form may be the beginning of a longer one."""
_SIXTEEN = range(16, 20)
_ISSUERS = (
    # first digits: from, to; lengths
    ("34", "34", (15,)), ("37", "37", (15,)),
    ("4", "4", (13, 16)),
    ("51", "55", (16,)), ("2221", "2720", (16,)),
    ("6011", "6011", _SIXTEEN), ("644", "649", _SIXTEEN), ("65", "65", _SIXTEEN),
    ("300", "305", range(14, 20)), ("3095", "3095", range(14, 20)), ("36", "36", range(14, 20)),
    ("38", "39", range(14, 20)),
    ("3528", "3589", _SIXTEEN), ("62", "62", _SIXTEEN), ("2200", "2204", _SIXTEEN),
    ("5018", "5018", range(13, 20)), ("5020", "5020", range(13, 20)), ("5038", "5038", range(13, 20)),
    ("5893", "5893", range(13, 20)), ("6304", "6304", range(13, 20)), ("6759", "6759", range(13, 20)),
    ("6761", "6763", range(13, 20)), ("60", "60", (16,)), ("81", "82", (16,)), ("508", "508", (16,)),
)  # fmt: skip
_CARD_WORD = re.compile(r"card|visa|amex|mastercard|pan\b|karte|carte|tarjeta|cart[aã]|карт|卡|カード", re.IGNORECASE)
_NEAR = 40
_SIGNED = re.compile(
    r"(?<![0-9A-Za-z.,/·-])[0-9]{4}(?P<sep>[/,]|[ ]?[·•][ ]?)[0-9]{4}(?:(?P=sep)[0-9]{4}){2}"
    r"(?![0-9A-Za-z]|[.,/·-][0-9])"
)
_EXPIRY = re.compile(r"exp\w{0,8}[ .:]{0,3}[01]?[0-9][/-]", re.IGNORECASE)
"""What may follow a card's digits without a blank."""

_CODE = re.compile(
    r"[ \t,;|/(]{1,3}(?:(?:exp\w*|valid\w*|gültig\w*|until|bis|thru)[ .:]*){0,2}(?:0?[1-9]"
    r"|1[0-2])[/-](?:20)?[0-9]{2}[ \t,;|/)]{1,3}"
    r"(?:(?:cv[vc]2?|code|and)[ :]*){0,2}([0-9]{3,4})(?![0-9/.-])",
    re.IGNORECASE,
)
_IBAN = re.compile(r"[0-9](?<=[A-Za-z]{2}[0-9])(?<![0-9A-Za-z][A-Za-z]{2}[0-9])[0-9](?:[ .-]?[0-9A-Za-z]{2}){2}")
_IBAN_APART = re.compile(r"(?<![0-9A-Za-z])[A-Z]{2}[ .-][0-9]{2}(?:[ .-]?[0-9A-Z]{2}){2}")
_IBAN_REST = re.compile(r"(?:[ .-]?[0-9A-Za-z]){0,32}")
_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip

_SSN_RULES = r"(?!000|666|9)[0-9]{3}{gap}(?!00)[0-9]{2}{gap}(?!0000)[0-9]{4}(?![0-9A-Za-z-])"
_SSN = re.compile(r"[0-9](?<![0-9A-Za-z-][0-9])(?<=[0-8])[0-9]{2}-[0-9]{2}-[0-9]{4}(?![0-9A-Za-z-])")
_SSN_NUMBER = re.compile(_SSN_RULES.replace("{gap}", "-"))
_SSN_LOOSE = re.compile(_SSN_RULES.replace("{gap}", "[ .-]?"))
_OF_A_THING = re.compile(
    r"(?<![a-z])(?:part|item|article|catalog(?:ue)?|model|serial|sku|product|batch|lot|stock|order|invoice|artikel|teile?)"
    r"(?:[ -]?(?:no\.?|nr\.?|number|nummer|num\.?|id|code|#))?[ :=#]{0,3}\Z",
    re.IGNORECASE,
)
"""What stands right before a number that has an SSN's form by chance."""
_SSN_BEFORE = re.compile(
    r"(?<![0-9A-Za-z-])([0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4})(?:,? (?:is|=)? ?(?:my|his|her|the|their)?"
    r"|[ ]?\() ?(?:\S{1,15} )?\Z"
)
_SSN_WORD = re.compile(
    r"(?<![A-Za-z])(?:ssn|social[ -]security(?:[ -](?:number|no\.?|nr\.?|card))?)(?![A-Za-z])"
    r"[ \t:=#\"'(-]{0,4}(?:(?:number|no\.?|is|was|ist|es|of [^\n0-9]{1,30} is)[ \t:=#\"'(-]{0,4}){0,3}",
    re.IGNORECASE,
)


def _cards(text: str, _: str) -> Iterator[Span]:
    first = _THIRTEEN.search(text)
    if first is None:
        return
    for run in _RUN.finditer(text, first.start()):
        if run.end() - run.start() >= 13:
            for card in _cards_of(text, run.start(), run.end()):
                yield card
                beside = _CODE.match(text, card.end)
                if beside is not None:
                    yield Span("pin", *beside.span(1))


def _cards_of(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the cards in a run of groups of digits: a table's row may hold many, one behind the other."""
    groups = [(match.start(), match.end()) for match in _GROUP.finditer(text, start, end)]
    if _grown(text, start - 1, -1):
        groups[0] = (groups[0][0], groups[0][0])  # of length 0: no part of a card
    if _grown(text, end, 1):
        groups[-1] = (groups[-1][1], groups[-1][1])
    sizes = tuple(stop - first for first, stop in groups)
    if _spaced(text, groups, sizes):
        yield Span("card", start, end)
        return
    at = 0
    while at < len(groups):
        taken = _card_at(text, groups, sizes, at)
        if taken:
            yield Span("card", groups[at][0], groups[at + taken - 1][1])
        at += taken or 1


def _apart(text: str, _: str) -> Iterator[Span]:
    """Yield cards in four groups of four with signs between them that also divide the items of a list."""
    for match in _SIGNED.finditer(text):
        said = match["sep"] != "," or _CARD_WORD.search(text, max(0, match.start() - _NEAR), match.start())
        if said and _is_card(re.sub(r"\D", "", match[0])):
            yield Span("card", *match.span())


def _spaced(text: str, groups: list[tuple[int, int]], sizes: tuple[int, ...]) -> bool:
    """Whether all of the groups are one card in a form that none is printed in, behind a word that says so."""
    if len(sizes) < 2 or not 13 <= sum(sizes) <= 19 or 0 in sizes:
        return False
    first = groups[0][0]
    digits = "".join(text[one:stop] for one, stop in groups)
    return _CARD_WORD.search(text, max(0, first - _NEAR), first) is not None and _is_card(digits)


def _grown(text: str, at: int, step: int) -> bool:
    """Whether the run goes on beyond its end: a letter or digit, or a decimal point and a digit."""
    if not 0 <= at < len(text):
        return False
    if step > 0 and _EXPIRY.match(text, at):
        return False
    if text[at].isascii() and text[at].isalnum():
        return True
    return text[at] in ".," and 0 <= at + step < len(text) and text[at + step].isdecimal()


def _card_at(text: str, groups: list[tuple[int, int]], sizes: tuple[int, ...], at: int) -> int:
    """Return of how many groups a card consists that begins with this one; 0 where none does."""
    if sizes[at] >= 13:
        first, stop = groups[at]
        near = stop - first > 13 or _CARD_WORD.search(text, max(0, first - _NEAR), first)  # 13 digits are EANs, too
        return 1 if near and _bounded(text, groups, at, 1) and _is_card(text[first:stop]) else 0
    if sizes[at] != 4:
        return 0
    for printed in _PRINTED:
        count = len(printed)
        if sizes[at : at + count] != printed or not _bounded(text, groups, at, count):
            continue
        gaps = {text[groups[n][1] : groups[n + 1][0]] for n in range(at, at + count - 1)}
        digits = "".join(text[first:stop] for first, stop in groups[at : at + count])
        if len(gaps) == 1 and _is_card(digits):
            return count
    return 0


def _bounded(text: str, groups: list[tuple[int, int]], at: int, count: int) -> bool:
    """Whether no dash ties the groups to what stands before or behind them, as in an identifier."""
    before = at > 0 and "-" in text[groups[at - 1][1] : groups[at][0]]
    behind = at + count < len(groups) and "-" in text[groups[at + count - 1][1] : groups[at + count][0]]
    return not before and not behind


def _is_card(digits: str) -> bool:
    issued = any(first <= digits[: len(first)] <= last and len(digits) in lengths for first, last, lengths in _ISSUERS)
    return issued and luhn(digits)


def _ibans(text: str, _: str) -> Iterator[Span]:
    starts = (*(match.start() - 2 for match in _IBAN.finditer(text)), *map(re.Match.start, _IBAN_APART.finditer(text)))
    for start in starts:
        length = _LENGTHS.get(text[start : start + 2].upper())
        rest = _IBAN_REST.match(text, start + 2)
        if length is None or rest is None:
            continue
        letters, end = [], start
        for at in range(start, rest.end()):
            if text[at].isalnum():
                letters.append(text[at].upper())
                end = at + 1
                if len(letters) == length:
                    break
        grown = end < len(text) and text[end].isascii() and text[end].isalnum()
        if len(letters) == length and not grown and _mod_97("".join(letters)) == 1:
            yield Span("iban", start, end)


def _mod_97(iban: str) -> int:
    return int("".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])) % 97


def _formed(text: str, _: str) -> Iterator[Span]:
    for match in _SSN.finditer(text):
        of_a_thing = _OF_A_THING.search(text, max(0, match.start() - _NEAR), match.start())
        if _SSN_NUMBER.match(text, match.start()) and of_a_thing is None:
            yield Span("ssn", match.start(), match.end())


def _social(text: str, lower: str) -> Iterator[Span]:
    """Yield what is said to be one, before it or behind it."""
    for word in matches(_SSN_WORD, text, lower, ("ssn", "social")):
        number = _SSN_LOOSE.match(text, word.end())
        if number is not None:
            yield Span("ssn", number.start(), number.end())
        for before in _SSN_BEFORE.finditer(text, max(0, word.start() - 40), word.start()):
            number = _SSN_LOOSE.match(text, before.start())
            if number is not None and number.end() == before.end(1):
                yield Span("ssn", number.start(), number.end())


SEARCHES = (
    Search((), _cards, DIGITS),
    Search((), _apart, DIGITS),
    Search(("·", "•"), _apart),
    Search((), _ibans, DIGITS),
    Search((), _formed, DIGITS),
    Search(("ssn", "social"), _social, DIGITS),
)
