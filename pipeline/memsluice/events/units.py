"""The units of a text that wording is judged by: sentences, lines, cells, the words of a tag, the values of a record.

An order hides in one line of a page. So markup and JSON are taken apart wherever they occur, comments and attributes
included, and nothing is left out: whatever stands between two breaks is a unit, however far behind it stands.
"""

import re

Span = tuple[int, int]
"""First character of a unit, and the one behind its last."""

CHARACTERS_MAX = 400
"""Longer units are cut, between words where there are any."""
SPANS_MAX = 1_000
"""Beyond so many, units are pieces of CHARACTERS_MAX, whatever stands in them. One has three letters or digits."""

_TAGS = (
    "a|abbr|address|article|aside|audio|b|base|blockquote|body|br|button|caption|center|code|col|dd|del|details|div|dl|dt"
    "|em|embed|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|map"
    "|mark|meta|nav|noscript|object|ol|option|p|param|picture|pre|q|s|script|section|select|small|source|span|strong"
    "|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|u|ul|var|video"
)
_MARK = re.compile(r"[.!?…]+|[。！？｡।؟۔]+|[\r\n\t\u2028\u2029\\<>\"'{\[}\]|&=,(/*#-]")
"""What a break may begin with: whether one does is asked at these characters alone."""
_BREAK = re.compile(
    r"(?P<own>[.!?…]+[\"'”’»)\]*_]*)\s+"  # a full stop is its sentence's
    r"|(?P<full>[。！？｡।؟۔]+[\"'”’»」』）)\]]*)\s*"
    r"|[\r\n\u2028\u2029]\s*|\t+"
    r"|(?:\\[rnt])+"  # of an encoded text
    r"|<!--|-->|<!\[CDATA\[|\]\]>"
    rf"|</?(?:{_TAGS})\b(?:\s*/?>)?"  # its attributes are read
    r"|</?(?=[A-Za-z][\w:.-]{0,40}[\s/>])|(?<=[\w\"'/?])>"  # what is called otherwise may be no tag: its name is read
    r"|=\s?\\?[\"']|[\"'](?=\s+[\w:-]{1,40}=)"  # an attribute's value, a setting's
    r"|\\?\"\s*[:,]\s*(?:\\?\")?|,\\?\"|[{\[]\s*\\?\"|\\?\"\s*[}\])]"  # a record's keys and values, a row's
    r"|[(,]\s?'(?=\w)|'\s?[,);](?!\w)"  # a statement's
    r"|/\*+|\*+/|\"{3}|'{3}|(?<=\s)(?://|#)(?=\s)"  # a program's remarks
    r"|\|\s?|&[lg]t;|&quot;"
)
_LETTERS = re.compile(r"[^\W_][\W_]*+[^\W_][\W_]*+[^\W_]")
_WIDE = re.compile(r"[\u2e80-\ud7ff\uf900-\ufaff]{2}")
"""Two characters of a script in which they are words."""
_BLANK = re.compile(r"\s")


def spans(text: str) -> list[Span]:
    """Return the units of a text, in order; its first CHARACTERS_MAX characters where nothing in it is one."""
    found, at = list[Span](), 0
    for mark in _MARK.finditer(text):
        gap = _BREAK.match(text, mark.start()) if mark.start() >= at else None
        if gap is None:
            continue
        end = gap.end(gap.lastgroup) if gap.lastgroup else gap.start()
        _take(found, text, at, end)
        at = gap.end()
        if len(found) >= SPANS_MAX:
            break
    _take(found, text, at, len(text))
    return found or [(0, min(len(text), CHARACTERS_MAX))]


def _take(found: list[Span], text: str, first: int, end: int) -> None:
    """Take what stands there as a unit, or as several where it is long."""
    while end - first > CHARACTERS_MAX:
        cut = first + CHARACTERS_MAX
        blanks = list(_BLANK.finditer(text, first + CHARACTERS_MAX // 2, cut))
        cut = blanks[-1].end() if blanks else cut
        _add(found, text, first, cut)
        first = cut
    _add(found, text, first, end)


def _add(found: list[Span], text: str, first: int, end: int) -> None:
    if _LETTERS.search(text, first, end) or _WIDE.search(text, first, end):
        found.append((first, end))
