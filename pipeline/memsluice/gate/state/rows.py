"""A tenant's state rows, as the core sees them: reads of earlier rows, and the changes of this one decision.

Rows are keyed (tenant, kind, id). A row with an ``x`` (expiry, Unix ms) is absent once the clock has passed it, whether
or not it was swept away yet: sweeping is housekeeping and never changes a decision.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol

from memsluice.envelope.codec import Vector, row_dump, row_load, vector_to_text

SEPARATOR = "\x1f"
"""Between the parts of an id; no name may contain a control character (events.models.Name)."""


LATE_MS = 600_000
"""How long after its expiry, or after a command took its entry away, what a reader says it returned is still no news:
its recall takes time to arrive, and its clock is not the broker's. Rows are not swept before."""
ID_BYTES_MAX = 256
"""Ids beyond this are replaced by their SHA-256: several names of 128 characters each would outgrow a key's limit."""


def row_prefix(tenant: str) -> bytes:
    """Return what the keys of all of a tenant's rows begin with, and nobody else's."""
    return f"{tenant}\0".encode()


def row_key(tenant: str, kind: str, row_id: str = "") -> bytes:
    """Return a row's key, below 512 bytes; with an empty id, the prefix of a kind."""
    encoded = row_id.encode()
    if len(encoded) > ID_BYTES_MAX:
        encoded = b"\x1e" + sha256(encoded).hexdigest().encode()  # no id starts with a control character
    return _prefix(tenant, kind) + encoded


@lru_cache(4_096)
def _prefix(tenant: str, kind: str) -> bytes:
    return row_prefix(tenant) + f"{kind}\0".encode()


class Getter(Protocol):
    """The part of :class:`memsluice.events.records.Rows` that decisions need."""

    def get(self, key: bytes) -> bytes | None:
        """Return the row's bytes or None."""


_UNCHANGED = object()


class TenantRows:
    """Read-your-writes view over one tenant's rows during one decision; bounded by what one event may change."""

    def __init__(self, rows: Getter, tenant: str, now_ms: int) -> None:
        self._rows = rows
        self._now_ms = now_ms
        self.tenant = tenant
        self.changes: dict[tuple[str, str], Any] = {}
        self._vector: Vector | None = None
        self._text = ""

    @property
    def now_ms(self) -> int:
        """The clock of this decision, Unix ms."""
        return self._now_ms

    def fork(self) -> "TenantRows":
        """Return a view that starts with these changes; what is changed there changes nothing here."""
        copy = TenantRows(self._rows, self.tenant, self._now_ms)
        copy.changes = dict(self.changes)
        return copy

    def adopt(self, fork: "TenantRows") -> None:
        """Take over what was changed in a fork of this view."""
        self.changes = dict(fork.changes)

    def get(self, kind: str, row_id: str, *, late_ms: int = 0) -> Any:
        """Return a row's value, or None where it is absent, deleted, or expired for ``late_ms`` (at most LATE_MS)."""
        value = self.changes.get((kind, row_id), _UNCHANGED)
        if value is _UNCHANGED:
            data = self._rows.get(row_key(self.tenant, kind, row_id))
            value = None if data is None else row_load(data)
        if isinstance(value, dict):
            expires_ms = value.get("x")
            if expires_ms is not None and expires_ms + late_ms <= self._now_ms:
                return None
        return value

    def packed(self, vector: Vector) -> str:
        """Return a vector as rows have it; a decision puts the same one into several."""
        if vector is not self._vector:
            self._vector, self._text = vector, vector_to_text(vector)
        return self._text

    def put(self, kind: str, row_id: str, value: Any) -> None:
        """Put a row (a JSON value)."""
        self.changes[(kind, row_id)] = value

    def delete(self, kind: str, row_id: str) -> None:
        """Delete a row."""
        self.changes[(kind, row_id)] = None


def encode_changes(tenant: str, changes: dict[tuple[str, str], Any]) -> list[tuple[bytes, bytes | None]]:
    """Return (key, value) of every changed row, in the order they were changed."""
    return [
        (row_key(tenant, kind, row_id), None if value is None else row_dump(value))
        for (kind, row_id), value in changes.items()
    ]
