"""Documents under a path and a key, as frameworks keep them: each one keyed write, its content JSON.

A later document of the same path and key replaces the entry. So does a deletion, which leaves a mark without content.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ValidationError

from memsluice.errors import InvalidArgument
from memsluice.events.limits import NAME_CHARS_MAX
from memsluice.recall.reader import VerifiedEntry

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """``value`` None marks what was deleted. ``expires_ms`` (Unix ms) is its own end, ``ttl_s`` seconds after it was
    written; the policy's comes besides. What is not ``searched`` is found by its name and in lists, by no question.

    ``written_ms`` is when its write was decided, ``similarity`` its cosine to the question; both are of a read one.
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
        """Return what is written. Raises InvalidArgument for a value that is no JSON."""
        said: dict[str, Any] = {"path": list(self.path), "key": self.key}
        said |= {"deleted": True} if self.value is None else {"value": self.value}
        if self.ttl_s is not None:
            said |= {"ttl_s": self.ttl_s, "expires_ms": self.expires_ms}
        if not self.searched:
            said["searched"] = False
        try:
            return json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"argument value is no JSON ({type(error).__name__})") from None


def key_of(path: Path, key: str) -> str:
    """Return the key of a document's entry: path and key as JSON, or their digest where that is too long for a name."""
    name = json.dumps([*path, key], separators=(",", ":"))
    return name if len(name) <= NAME_CHARS_MAX else sha256(name.encode()).hexdigest()


class _Said(BaseModel):
    """What an entry's content says that is a document."""

    path: tuple[str, ...]
    key: str
    value: dict[str, Any] | None = None
    deleted: bool = False
    ttl_s: float | None = None
    expires_ms: int | None = None
    searched: bool = True


def document_of(entry: VerifiedEntry) -> Document | None:
    """Return the document that an entry is; None for any other entry."""
    try:
        said = _Said.model_validate_json(entry.content)
    except ValidationError:
        return None
    if (said.value is None) is not said.deleted:
        return None
    admission = entry.admission
    return Document(
        said.path, said.key, said.value, said.ttl_s, said.expires_ms, said.searched,
        admission.written_ms, entry.similarity, admission.event_id,
    )  # fmt: skip
