"""National numbers of persons: those whose check digits and form leave little to chance, or that are named.

Sources: the issuers' rules, as collected in the OECD's TIN database and in python-stdnum's documentation.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from memsluice.gate.sensitive.hints import ANY, DIGITS, LONG, Search, matches
from memsluice.gate.sensitive.span import Span

_KIND = "national_id"


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def luhn(digits: str) -> bool:
    """Whether the last digit is that of ISO/IEC 7812."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)[value] for value in values[1::2])) % 10 == 0


def _cpf(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    first = _weighted(digits, tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _weighted(digits, tuple(range(11, 1, -1))) * 10 % 11 % 10
    return len({*digits}) > 1 and digits[9:] == f"{first}{second}"


def _ahv(value: str) -> bool:
    return _weighted(re.sub(r"\D", "", value), (1, 3) * 6 + (1,)) % 10 == 0


def _chinese(value: str) -> bool:
    month, day = int(value[10:12]), int(value[12:14])
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    last = "10X98765432"[_weighted(value[:17], weights) % 11]
    return value[6:8] in ("19", "20") and 1 <= month <= 12 and 1 <= day <= 31 and value[17].upper() == last


def _korean(value: str) -> bool:
    digits = value.replace("-", "")
    dated = 1 <= int(digits[2:4]) <= 12 and 1 <= int(digits[4:6]) <= 31
    return dated and (11 - _weighted(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10 == int(digits[12])


def _finnish(value: str) -> bool:
    dated = 1 <= int(value[:2]) <= 31 and 1 <= int(value[2:4]) <= 12
    return dated and value[10].upper() == "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[7:10]) % 31]


def _belgian(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    return int(digits[9:]) in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


def _french(value: str) -> bool:
    digits = re.sub(r"\s", "", value).upper().replace("2A", "19").replace("2B", "18")
    return digits.isdecimal() and len(digits) == 15 and 97 - int(digits[:13]) % 97 == int(digits[13:])


_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12,
                14,
                 16, 10, 22, 25, 24, 23), strict=True))  # fmt: skip


def _italian(value: str) -> bool:
    letters = value.upper()
    even = sum(int(one) if one.isdecimal() else ord(one) - 65 for one in letters[1:15:2])
    return (sum(_ODD[one] for one in letters[:15:2]) + even) % 26 == ord(letters[15]) - 65


def _spanish(value: str) -> bool:
    letters = re.sub(r"[ .-]", "", value).upper()
    number = letters[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == letters[-1]


def _eleven(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    return _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _nhs(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    return (11 - _weighted(digits, tuple(range(10, 1, -1))) % 11) % 11 == int(digits[9])


def _pesel(value: str) -> bool:
    return _weighted(value, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _german(value: str) -> bool:
    digits, product = re.sub(r"\D", "", value), 10
    for digit in digits[:10]:
        product = (((int(digit) + product) % 10 or 10) * 2) % 11
    return (11 - product) % 10 == int(digits[10])


def _sin(value: str) -> bool:
    return luhn(re.sub(r"\D", "", value))


_D = [[(a + b) % 5 if a < 5 and b < 5 else (a + b) % 5 + 5 if a < 5 else (a - b) % 5 + 5 if b < 5 else (a - b) % 5
       for b in range(10)] for a in range(10)]  # fmt: skip
"""The dihedral group of ten, which Verhoeff's digits are made in."""
_P = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _verhoeff(value: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(re.sub(r"\D", "", value))):
        number = int(digit)
        for _ in range(place % 8):
            number = _P[number]
        check = _D[check][number]
    return check == 0


def _any(_: str) -> bool:
    return True


class _Named(NamedTuple):
    """A number that counts only behind one of its names."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    valid: Callable[[str], bool]
    needs: int


_BETWEEN = (
    r"(?![a-z])[^\n0-9]{0,12}?(?:(?:number|no\.?|nr\.?|nummer|is|ist|code|es|é)[ :=#]{1,3}){0,2}[ \t:=#(\"']{0,3}"
)


def _named(hints: tuple[str, ...], name: str, number: str, valid: Callable[[str], bool], needs: int = DIGITS) -> _Named:
    whole = rf"(?<![a-z])(?:{name}){_BETWEEN}(?<![0-9A-Za-z])({number})(?![0-9A-Za-z])"
    return _Named(hints, re.compile(whole, re.IGNORECASE), valid, needs)


_NAMED = (
    _named(("dni", "nie", "nif"), r"dni|nie|nif", r"[0-9XYZ][ .-]?[0-9]{1,3}[.]?[0-9]{3}[.]?[0-9]{1,3}[ -]?[A-Z]",
    _spanish, ANY),
    _named(("bsn", "burgerservice"), r"bsn|burgerservicenummer", r"[0-9]{4}[. ]?[0-9]{2}[. ]?[0-9]{3}", _eleven),
    _named(("nhs",), r"nhs", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", _nhs),
    _named(("pesel",), r"pesel\w{0,3}", r"[0-9]{11}", _pesel),
    _named(("steuer", "idnr", "tax id"), r"steuer-?(?:id|identifikations)\w*|idnr\.?|(?:german )?tax id",
           r"[1-9][0-9](?: ?[0-9]{3}){3}", _german),
    _named(("sin ", "sin:", "social insurance"), r"sin|social insurance", r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _sin),
    _named(("aadhaar", "aadhar"), r"aadh?aa?r", r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}", _verhoeff),
    _named(("cpf",), r"cpf", r"[0-9]{11}", _cpf),
    _named(("ni n", "nino", "national insurance"), r"ni|nino|national insurance",
           r"[A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", _any,
        ANY),
    _named(("personnummer", "cpr"), r"personnummer|cpr(?:-n\w+)?", r"(?:[0-9]{2})?[0-9]{6}[-+ ]?[0-9]{4,5}", _any),
    _named(("itin",), r"itin", r"9[0-9]{2}[ -]?[5-9][0-9][ -]?[0-9]{4}", _any),
    _named(("passport", "reisepass"), r"passport|reisepass(?:nummer)?", r"(?=[A-Z0-9]{0,3}[0-9]{4})[A-Z0-9]{8,9}",
    _any, ANY),
    _named(("driver", "driving", "führerschein"), r"driv(?:er['’]?s?|ing) licen[cs]e|führerschein(?:nummer)?",
           r"(?=[A-Z0-9]{0,5}[0-9]{4})[A-Z0-9]{7,16}", _any, ANY),
)  # fmt: skip
_FORMED = re.compile(
    r"[0-9](?<![\w.-][0-9])(?:"
    r"(?P<cpf>[0-9]{2}\.[0-9]{3}\.[0-9]{3}-[0-9]{2})|(?P<ahv>(?<=7)56\.[0-9]{4}\.[0-9]{4}\.[0-9]{2})"
    r"|(?P<chinese>[0-9]{16}[0-9Xx])|(?P<korean>[0-9]{5}-[1-8][0-9]{6})|(?P<finnish>[0-9]{5}[-+A][0-9]{3}[0-9A-Y])"
    r"|(?P<belgian>[0-9]\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2})"
    r"|(?P<french>(?<=[12])[ ]?[0-9]{2}[ ]?[0-9]{2}[ ]?[0-9][0-9AB][ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{2}))(?![\w-])"
)
_VALID = {
    "cpf": _cpf, "ahv": _ahv, "chinese": _chinese, "korean": _korean, "finnish": _finnish, "belgian": _belgian,
    "french": _french,
}  # fmt: skip
_FISCAL = re.compile(
    r"[0-9](?<=[A-Z]{6}[0-9])(?<![A-Z0-9][A-Z]{6}[0-9])[0-9][A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z](?![A-Z0-9])",
    re.IGNORECASE,
)
_BEFORE = 6
"""Letters of a codice fiscale before its first digit, which is what is looked for."""


def _behind(named: _Named, text: str, lower: str) -> Iterator[Span]:
    for match in matches(named.pattern, text, lower, named.hints):
        if named.valid(match[1]):
            yield Span(_KIND, *match.span(1))


def _formed(text: str, _: str) -> Iterator[Span]:
    for match in _FORMED.finditer(text):
        if match.lastgroup is not None and _VALID[match.lastgroup](match[0]):
            yield Span(_KIND, *match.span())


def _fiscal(text: str, _: str) -> Iterator[Span]:
    for match in _FISCAL.finditer(text):
        start = match.start() - _BEFORE
        if _italian(text[start : match.end()]):
            yield Span(_KIND, start, match.end())


SEARCHES = (
    *(Search(one.hints, partial(_behind, one), one.needs) for one in _NAMED),
    Search((), _formed, DIGITS),
    Search((), _fiscal, LONG),
)
