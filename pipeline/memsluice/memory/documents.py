"""Documents under a path and a key, as frameworks keep them: each one keyed write.

A later document of the same path and key replaces the entry. So does a deletion, which leaves a mark without content.

Its texts stand first, each a paragraph or more; then its names (path, key, fields, words that stand alone) behind each
other, as a reader reads them; its structure is a line of numbers. An order among a record's marks and names is read as
one of many parts of a record, and says less to the detectors, or nothing where it is spread over names; and a question
is nearer to a text than to a record that has it in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import Any

from memsluice.errors import InvalidArgument
from memsluice.events.limits import CONTENT_BYTES_MAX, NAME_CHARS_MAX
from memsluice.recall.reader import VerifiedEntry

Path = tuple[str, ...]
BETWEEN = "\n\n"
"""What parts paragraphs: those of the texts, the names, the numbers, and the structure."""
BETWEEN_NAMES = "  "
"""No name has white space in it, and what stands for a secret has single blanks."""
RECORD, LIST, NAME, TEXT, NUMBER, TRUE, FALSE, NULL = range(8)
"""What a list of the structure begins with. Numbers stand by themselves: each may be taken for a secret, and none shall
part two words."""
DEPTH_MAX = 32


@dataclass(frozen=True, slots=True)
class Document:
    """``value`` None marks what was deleted. ``expires_ms`` (Unix ms) is its own end, ``ttl_s`` seconds after it was
    written; the policy's comes besides. What is not ``searched`` is found by its name and in lists, by no question.

    ``written_ms`` is when its write was decided, ``event_id`` that write's; ``similarity`` its cosine to the question
    that found it, 0 where none did. All are of one that was read.
    """

    path: Path
    key: str
    value: Mapping[str, Any] | None
    ttl_s: float | None = None
    expires_ms: int | None = None
    searched: bool = True
    written_ms: int = 0
    similarity: float = 0.0
    event_id: str = ""

    def lives(self, now_ms: int) -> bool:
        """Whether it was not deleted, and has not expired (Unix ms)."""
        return self.value is not None and (self.expires_ms is None or self.expires_ms > now_ms)

    def content(self) -> str:
        """Return what is written. Raises InvalidArgument for a value that is no record of JSON, or nested too deep."""
        if not isinstance(self.value, Mapping | None):
            raise InvalidArgument("argument value must be a mapping, or None for a deletion")
        made = _Made()
        structure = [made.of(list(self.path)), made.of(self.key), made.of(self.value)]
        if self.ttl_s is not None or not self.searched:
            structure += [made.of(self.ttl_s), made.of(self.expires_ms), made.of(self.searched)]
        last = json.dumps(structure, separators=(",", ":"))
        return BETWEEN.join((*made.texts, BETWEEN_NAMES.join(made.names), BETWEEN_NAMES.join(made.numbers), last))


def key_of(path: Path, key: str) -> str:
    """Return the key of a document's entry: path and key as JSON, or their digest where that is too long for a name."""
    name = json.dumps([*path, key], separators=(",", ":"))
    return name if len(name) <= NAME_CHARS_MAX else sha256(name.encode()).hexdigest()


def document_of(entry: VerifiedEntry) -> Document | None:
    """Return the document that an entry is; None for any other entry."""
    paragraphs = entry.content.split(BETWEEN)
    try:
        *texts, names, numbers, last = paragraphs
        read = _Read(texts, names.split(BETWEEN_NAMES), numbers.split(BETWEEN_NAMES))
        path, key, value, *rest = map(read.value, json.loads(last))
        ttl_s, expires_ms, searched = rest or (None, None, True)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    named = isinstance(path, list) and all(isinstance(part, str) for part in (*path, key))
    lasts = ttl_s is None and expires_ms is None
    ends = isinstance(ttl_s, float | int) and isfinite(ttl_s) and isinstance(expires_ms, int)
    if not (named and (lasts or ends) and isinstance(value, dict | None) and isinstance(searched, bool)):
        return None
    admission = entry.admission
    return Document(
        tuple(path), key, value, ttl_s, expires_ms, searched, admission.written_ms, event_id=admission.event_id
    )


class _Made:
    """What is taken out of a document while its structure is made: its texts and its names, in their order."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.names: list[str] = []
        self.numbers: list[str] = []
        self._paragraphs = 0

    def of(self, value: Any, depth: int = DEPTH_MAX) -> list[Any]:
        """Return the structure of a value."""
        if depth < 0:
            raise InvalidArgument(f"argument value is nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, bool | None):
            return [{True: TRUE, False: FALSE, None: NULL}[value]]
        if isinstance(value, str):
            return self._text(value) if _is_text(value) else [NAME, _put(self.names, value)]
        if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
            return [NUMBER, _put(self.numbers, repr(value))]
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return [RECORD, *(self.of(one, depth - 1) for pair in value.items() for one in pair)]
        if isinstance(value, list | tuple):
            return [LIST, *(self.of(one, depth - 1) for one in value)]
        raise InvalidArgument(
            f"argument value is no JSON: it has a {type(value).__name__}, or a name that is no string"
        )

    def _text(self, value: str) -> list[int]:
        """Return where a text stands; line breaks around it would run into those between paragraphs."""
        body = value.strip("\n")
        before = len(value) - len(value.lstrip("\n"))
        first, count = self._paragraphs, body.count(BETWEEN) + 1
        self.texts.append(body)
        self._paragraphs += count
        return [TEXT, first, count, before, len(value) - before - len(body)]


class _Read:
    """Texts and names of a document, while its structure is read."""

    def __init__(self, paragraphs: list[str], names: list[str], numbers: list[str]) -> None:
        self._paragraphs = paragraphs
        self._names = names
        self._numbers = numbers

    def value(self, structure: list[Any]) -> Any:
        """Return the value of a structure. Raises ValueError, TypeError or IndexError for what is none."""
        kind, *rest = structure
        if kind == TEXT:
            first, count, before, after = rest
            if not 0 <= first < first + count <= len(self._paragraphs) or before + after > CONTENT_BYTES_MAX:
                raise ValueError("a text is missing")
            return "\n" * before + BETWEEN.join(self._paragraphs[first : first + count]) + "\n" * after
        if kind == NAME:
            return self._names[rest[0]]
        if kind == NUMBER:
            return _number(self._numbers[rest[0]])
        if kind == RECORD:
            names, values = map(self.value, rest[::2]), map(self.value, rest[1::2])
            return dict(zip(names, values, strict=True))
        if kind == LIST:
            return [self.value(one) for one in rest]
        return {TRUE: True, FALSE: False, NULL: None}[kind]


def _put(some: list[str], one: str) -> int:
    some.append(one)
    return len(some) - 1


def _is_text(value: str) -> bool:
    """Whether it may have several words: what is one name, or code, stands among the names."""
    return not value.isascii() or any(one.isspace() for one in value)


def _number(text: str) -> int | float | str:
    """Return a number; of one that was taken for a secret what stands for it."""
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text
