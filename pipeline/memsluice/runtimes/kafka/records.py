"""A message as Faust has it, and the record that a stage is given."""

from typing import Any

from memsluice.events.records import Record


def to_record(message: Any) -> Record:
    """Return Faust's message as a stage sees it: raw bytes, every header, the log-append time."""
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers or ()),
        timestamp_ms=round(message.timestamp * 1000),
    )
