"""Names that are fixed on the wire: event types, payload types, headers."""

from enum import StrEnum


class EventType(StrEnum):
    """CloudEvents ``type`` of what may be published on the intake topics."""

    WRITE = "memory.write.v1"
    RECALL = "memory.recall.v1"
    OBSERVATION = "memory.observation.v1"
    COMMAND = "memory.command.v1"


EVERYBODY = "*"
"""Tenant of a command that concerns all: it is published once to every partition."""


def payload_type(name: str) -> str:
    """Return the DSSE payload type of a purpose: one type a purpose, so no signature serves two."""
    return f"application/vnd.{name}+json"


SEALED = payload_type("memsluice.sealed.v1")
ADMISSION = payload_type("memsluice.admission.v1")
VERDICT = payload_type("memsluice.verdict.v1")
HELD = payload_type("memsluice.held.v1")
STORED = payload_type("memsluice.stored.v1")
WITHDRAWAL = payload_type("memsluice.withdrawal.v1")
MOVED = payload_type("memsluice.moved.v1")
PARTITION_ORDER = payload_type("memsluice.partition-order.v1")
LETTER_ORDER = payload_type("memsluice.letter-order.v1")

PAYLOAD_DIGEST = "payloadsha256"
"""CloudEvents extension attribute: SHA-256, 64 hex digits, of the signed payload's exact bytes. Unsigned: it tells a
payload that was changed from a signature that was made up, and makes nothing pass."""
DSSE_CONTENT_TYPE = "application/vnd.dsse.envelope.v1+json"
TRACEPARENT = "traceparent"
DEAD_LETTER_HEADER = "memsluice-dead-letter"
"""Header that the gate appends, last, to a dead letter's own headers: JSON with reason, field, detail and position."""
REASON_HEADER = "memsluice-reason"
NOT_UNPACKED_HEADER = "memsluice-not-unpacked"
"""The only header of what stands in for a record of a batch that is not unpacked (:mod:`memsluice.readers.batches`);
its value says beyond how many bytes that is."""
DECISION_HEADER = "memsluice-decision"
WITHDRAWS = b"withdraw"
"""That header's value on a record of memory.accepted.v1 that takes an object out."""
MOVED_HEADER = "memsluice-moved"
"""Header that *seal* appends, last, to a record that it moves to the overflow: signed, where it lay and whose it is."""
TARGET_HEADER = "memsluice-target"
"""On an audit record: what a command is about, or what look back took out, so that readers find it among all others."""
