"""A memory as CrewAI has it, and as the document that is written of it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crewai.memory.analyze import ExtractedMetadata
from crewai.memory.types import MemoryRecord

from memsluice.memory.documents import Document

PLACE = ()
"""The path of every record: CrewAI asks for, changes and deletes one by its id alone, and may move it to another scope.
So the scope is a field, and a record is one entry wherever it is moved."""
FIELD = "memory"
FIELDS = ("content", "scope", "categories", "metadata", "importance", "source", "private")
"""What is written of a record, in this order under one name: names around a text are read as words of it. With a name
for each, and with DERIVED, the gate held nine of ten plain facts of ours; like this one of four, and one of twenty
without DERIVED."""
DERIVED = frozenset(ExtractedMetadata.model_fields)
"""What CrewAI's model lists of a text besides, all of it or nothing: the text says it, and is screened."""
OF_ITS_OWN_TIME_S = 60.0
"""A record that was made longer ago than this keeps its time; that of any other is when its write was decided."""
Keeps = Callable[[MemoryRecord], bool]


def document_of_record(record: MemoryRecord, now_ms: int) -> Document:
    """Return what is written of a record, now (Unix ms): all of it but its vector and when it was last recalled."""
    said = record.model_dump(mode="json", include=set(FIELDS))
    if said["metadata"].keys() >= DERIVED:
        said["metadata"] = {name: one for name, one in said["metadata"].items() if name not in DERIVED}
    made = naive(record.created_at)
    old = now_ms / 1_000 - made.replace(tzinfo=UTC).timestamp() > OF_ITS_OWN_TIME_S
    return Document(PLACE, record.id, {FIELD: [*map(said.get, FIELDS), made.isoformat() if old else None]})


def record_of(document: Document) -> MemoryRecord | None:
    """Return the record that a document is; None where it is none."""
    written = datetime.fromtimestamp(document.written_ms / 1_000, UTC).replace(tzinfo=None)
    try:
        *said, made = (document.value or {})[FIELD]
        fields = dict(zip(FIELDS, said, strict=True))
        return MemoryRecord(**fields, id=document.key, created_at=made or written, last_accessed=written)
    except (KeyError, TypeError, ValueError):  # pydantic's error is a ValueError
        return None


def kept(keeps: Keeps) -> Callable[[Document], bool]:
    """Return whether a document is a record that is kept."""
    return lambda one: (record := record_of(one)) is not None and keeps(record)


def wanted(
    scope_prefix: str | None = None,
    categories: Sequence[str] | None = None,
    metadata_filter: Mapping[str, Any] | None = None,
    record_ids: Sequence[str] | None = None,
    older_than: datetime | None = None,
) -> Keeps:
    """Return whether a record is in a scope or below, has one of the categories, all of the metadata, and so on."""
    scope, before = parts(scope_prefix), None if older_than is None else naive(older_than)
    return lambda one: (
        parts(one.scope)[: len(scope)] == scope
        and (not categories or bool(set(categories) & set(one.categories)))
        and all(one.metadata.get(name) == to for name, to in (metadata_filter or {}).items())
        and (record_ids is None or one.id in record_ids)
        and (before is None or naive(one.created_at) < before)
    )


def parts(scope: str | None) -> tuple[str, ...]:
    """Return the names of a scope's path: none of the root's."""
    return tuple(part for part in (scope or "").split("/") if part)


def naive(time: datetime) -> datetime:
    """Return a time as CrewAI has them: UTC, without a zone."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
