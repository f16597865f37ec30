"""Documents under a path and a key, as frameworks keep them: each one keyed write.

A later document of the same path and key replaces the entry. So does a deletion, which leaves a mark without content.

Its texts stand before its structure. An order among a record's marks, names and numbers is read as one of many parts of
a record, and says less to the detectors; and a question is nearer to a text than to a record that has it in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from memsluice.errors import InvalidArgument
from memsluice.events.limits import NAME_CHARS_MAX
from memsluice.recall.reader import VerifiedEntry

Path = tuple[str, ...]
BETWEEN = "\n\n"
"""What parts paragraphs: a text is one or more, and the structure is the last."""
MARK = "$"
"""The name of what stands for a text in the structure. A name in a value that begins with it gets one more."""
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
        """Return what is written: its texts, and a last line of JSON that says where they stand.

        Raises InvalidArgument for a value that is no JSON, or nested more than DEPTH_MAX levels deep.
        """
        texts: list[str] = []
        structure: list[Any] = [list(self.path), self.key, _taken_out(self.value, texts, DEPTH_MAX)]
        if self.ttl_s is not None or not self.searched:
            structure.append({"ttl_s": self.ttl_s, "expires_ms": self.expires_ms, "searched": self.searched})
        try:
            return BETWEEN.join((*texts, json.dumps(structure, ensure_ascii=False, allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"argument value is no JSON ({type(error).__name__})") from None


def key_of(path: Path, key: str) -> str:
    """Return the key of a document's entry: path and key as JSON, or their digest where that is too long for a name."""
    name = json.dumps([*path, key], separators=(",", ":"))
    return name if len(name) <= NAME_CHARS_MAX else sha256(name.encode()).hexdigest()


def document_of(entry: VerifiedEntry) -> Document | None:
    """Return the document that an entry is; None for any other entry."""
    *paragraphs, last = entry.content.split(BETWEEN)
    try:
        path, key, kept, *rest = json.loads(last)
        more = rest[0] if rest else {}
        value = _put_back(kept, paragraphs)
        ttl_s, expires_ms, searched = more.get("ttl_s"), more.get("expires_ms"), more.get("searched", True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    names = isinstance(path, list) and all(isinstance(part, str) for part in (*path, key))
    numbers = isinstance(ttl_s, float | int | None) and isinstance(expires_ms, int | None)
    if not (names and numbers and isinstance(value, dict | None) and isinstance(searched, bool)):
        return None
    admission = entry.admission
    read = (admission.written_ms, 0.0, admission.event_id)
    return Document(tuple(path), key, value, ttl_s, expires_ms, searched, *read)


def _taken_out(value: Any, texts: list[str], depth: int) -> Any:
    """Return a value with marks in the place of its texts, which are added to ``texts``."""
    if depth < 0:
        raise InvalidArgument(f"argument value is nested more than {DEPTH_MAX} levels deep")
    if isinstance(value, str) and _is_text(value):
        first = sum(text.count(BETWEEN) + 1 for text in texts)
        texts.append(value)
        return {MARK: [first, value.count(BETWEEN) + 1]}
    if isinstance(value, Mapping):
        return {_name(name): _taken_out(one, texts, depth - 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_taken_out(one, texts, depth - 1) for one in value]
    return value


def _is_text(value: str) -> bool:
    """Whether it may have several words: what is one name, number or code stays in the structure."""
    return not value.isascii() or len(value.split(maxsplit=1)) > 1


def _name(name: Any) -> Any:
    return MARK + name if isinstance(name, str) and name.startswith(MARK) else name


def _put_back(kept: Any, paragraphs: list[str]) -> Any:
    if isinstance(kept, dict):
        if kept.keys() == {MARK}:
            first, count = kept[MARK]
            if not 0 <= first < first + count <= len(paragraphs):
                raise ValueError("a text is missing")
            return BETWEEN.join(paragraphs[first : first + count])
        return {name.removeprefix(MARK): _put_back(one, paragraphs) for name, one in kept.items()}
    return [_put_back(one, paragraphs) for one in kept] if isinstance(kept, list) else kept
