"""A tenant's state rows, as the core sees them: reads of earlier rows, and the changes of this one decision.

Rows are keyed (tenant, kind, id). A row with an ``x`` (expiry, Unix ms) is absent once the clock has passed it, whether
or not it was swept away yet: sweeping is housekeeping and never changes a decision.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from memsluice.envelope.codec import Vector, vector_to_text
from memsluice.errors import StateError

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


R = TypeVar("R")
_ENCODER = msgspec.json.Encoder(order="sorted")


def dump(value: Any) -> bytes:
    """Return the bytes of a row's value: JSON with sorted keys and no spaces, the same for the same value.

    The same bytes as those of :func:`memsluice.envelope.codec.canonical`, for numbers below 1e16.
    """
    return _ENCODER.encode(value)


class RowKind(Generic[R]):
    """A kind of row: its name in keys, and the type of its values, by which they are read.

    ``prefix`` begins the ids of those kinds that share a name.
    """

    __slots__ = ("_decoder", "name", "prefix")

    def __init__(self, name: str, values: type[R], prefix: str = "") -> None:
        self.name = name
        self.prefix = prefix
        self._decoder: msgspec.json.Decoder[R] = msgspec.json.Decoder(values)

    def key(self, tenant: str, row_id: str = "") -> bytes:
        """Return the key of a row of this kind; with an empty id, what the keys of all of them begin with."""
        return row_key(tenant, self.name, self.prefix + row_id)

    def load(self, data: bytes) -> R:
        """Return a row's value. Raises StateError: a row that cannot be read must stop the worker."""
        try:
            return self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise StateError(f"state row of kind {self.name} cannot be read: {error}") from None


class _Ends(msgspec.Struct, frozen=True):
    expires_ms: int | None = msgspec.field(name="x", default=None)


_ENDS = msgspec.json.Decoder(_Ends)


def expires_ms(data: bytes) -> int | None:
    """Return when a row of whatever kind expires (Unix ms), None where it does not. Raises StateError."""
    if not data.startswith(b"{"):
        return None
    try:
        return _ENDS.decode(data).expires_ms
    except msgspec.MsgspecError as error:
        raise StateError(f"state row cannot be read: {error}") from None


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

    def get(self, kind: RowKind[R], row_id: str, *, late_ms: int = 0) -> R | None:
        """Return a row's value, or None where it is absent, deleted, or expired for ``late_ms`` (at most LATE_MS)."""
        row_id = kind.prefix + row_id
        value = self.changes.get((kind.name, row_id), _UNCHANGED)
        if value is _UNCHANGED:
            data = self._rows.get(row_key(self.tenant, kind.name, row_id))
            value = None if data is None else kind.load(data)
        ends_ms = getattr(value, "expires_ms", None)
        if ends_ms is not None and ends_ms + late_ms <= self._now_ms:
            return None
        found: R | None = value
        return found

    def packed(self, vector: Vector) -> str:
        """Return a vector as rows have it; a decision puts the same one into several."""
        if vector is not self._vector:
            self._vector, self._text = vector, vector_to_text(vector)
        return self._text

    def put(self, kind: RowKind[R], row_id: str, value: R) -> None:
        """Put a row."""
        self.changes[(kind.name, kind.prefix + row_id)] = value

    def delete(self, kind: RowKind[Any], row_id: str) -> None:
        """Delete a row."""
        self.changes[(kind.name, kind.prefix + row_id)] = None


def encode_changes(tenant: str, changes: dict[tuple[str, str], Any]) -> list[tuple[bytes, bytes | None]]:
    """Return (key, value) of every changed row, in the order they were changed."""
    return [
        (row_key(tenant, kind, row_id), None if value is None else dump(value))
        for (kind, row_id), value in changes.items()
    ]
