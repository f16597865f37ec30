"""What moves an event of a tenant over its quota to the overflow, and what reads it there.

The record goes to ``memory.overflow.v1`` as it came: key, value and headers. One header more, signed as everything
between stages, says where it lay, when the broker appended it, whose it is, and which moved one came before. In its
place in the ordered input stands a marker.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, runtime_checkable

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import GLOBAL, Position, Sealed, Waited, close, open_, sealed_to_bytes
from memsluice.errors import SealError
from memsluice.events import limits
from memsluice.events.headers import passed_on
from memsluice.events.models import is_tenant
from memsluice.events.names import MOVED, MOVED_HEADER
from memsluice.events.records import Output, Record
from memsluice.stages.dead_letter import digest_of
from memsluice.stages.quota import Quota
from memsluice.topics.names import OVERFLOW, SEALED

MARKER_REASON: Final = "overflow.moved"
"""What the marker of a moved event says."""


class Intake(NamedTuple):
    """A record as it lay in its intake topic. ``tenant`` is whose lane it waited in; ``waited`` None: it did not."""

    record: Record
    tenant: str = ""
    waited: Waited | None = None


@runtime_checkable
class Overflowing(Protocol):
    """A batch stage whose tenants have quotas. Called on the event loop, but for :meth:`moved`."""

    def quota(self, tenant: str) -> Quota | None:
        """Return a tenant's quota; None is no limit."""

    def is_counted(self, topic: str) -> bool:
        """Tell whether records of an intake topic are counted for anybody."""

    def lane(self, record: Record) -> str | None:
        """Return the tenant that an intake record is counted for, or None: it goes straight on, and is not counted."""

    def may_wait(self, record: Record, tenant: str) -> bool:
        """Tell whether a record is the tenant's, by its signature: nobody's event waits behind another's."""

    def came(self, record: Record) -> Intake:
        """Return a record of the overflow as it came. Raises SealError where the gate did not move it there."""

    def moved(self, record: Record, tenant: str, after: int | None) -> list[Output]:
        """Return what moves an intake record; ``after`` is the offset of the one moved before, if that is known."""

    def sender(self, outputs: list[Output]) -> str | None:
        """Return the tenant that sent a record, by what became of it; None where nobody did who is known."""


def fits(record: Record) -> bool:
    """Tell whether a record can be an event, and so may wait: any other becomes a dead letter, which has a budget."""
    if record.value is None or len(record.value) > limits.RECORD_BYTES_MAX or len(record.headers) > limits.HEADERS_MAX:
        return False
    return sum(len(name) + len(value or b"") for name, value in record.headers) <= limits.HEADER_BYTES_MAX


def lane_of(key: bytes) -> str | None:
    """Return the tenant that a record is counted for by its key, None where that is no tenant's name."""
    tenant = key.decode("utf-8", "replace")
    return tenant if is_tenant(tenant) else None


def move(record: Record, tenant: str, after: int | None, keyring: Keyring, kid: str) -> list[Output]:
    """Return the record for the overflow, and the marker that stands for it in the ordered input."""
    said = {
        "topic": record.topic,
        "offset": record.offset,
        "append_ms": record.timestamp_ms,
        "tenant": tenant,
        "after": after,
        "digest": digest_of(record, keyring),
    }
    header = (MOVED_HEADER, close(keyring, kid, GLOBAL, MOVED, said))
    position = Position(record.topic, record.partition, record.offset, record.timestamp_ms)
    marker = sealed_to_bytes(keyring, kid, Sealed(position=position, type="marker", marker_reason=MARKER_REASON))
    return [
        Output(OVERFLOW, record.partition, record.key, record.value, (*record.headers, header)),
        Output(SEALED, record.partition, GLOBAL.encode(), marker, passed_on(record.headers)),
    ]


def taken_back(record: Record, keyring: Keyring) -> Intake:
    """Return a record of the overflow as it lay in its intake topic. Raises SealError where nobody moved it there."""
    name, data = record.headers[-1] if record.headers else ("", None)
    if name != MOVED_HEADER or data is None:
        raise SealError(f"record {record.offset} of {record.topic} was not moved there by the gate")
    said = open_(keyring, GLOBAL, MOVED, data)
    try:
        before = replace(
            record,
            topic=str(said["topic"]),
            offset=int(said["offset"]),
            timestamp_ms=int(said["append_ms"]),
            headers=record.headers[:-1],
        )
        after = None if said["after"] is None else int(said["after"])
        tenant, digest = str(said["tenant"]), said["digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise SealError(f"a moved record is not of this version ({type(error).__name__})") from None
    if digest != digest_of(before, keyring):
        raise SealError(f"record {record.offset} of {record.topic} is another than the one that was moved")
    return Intake(before, tenant, Waited(record.timestamp_ms, after))


def intake(record: Record, keys: Callable[[], Keyring]) -> Intake:
    """Return any input record as it lay in its intake topic. Raises SealError."""
    return taken_back(record, keys()) if record.topic == OVERFLOW else Intake(record)
