"""Names of spans' attributes that producers, readers and the gate share (OpenTelemetry's semantic conventions)."""

from collections.abc import Sequence

from memsluice.events.names import EventType

Attribute = str | bool | int | float | Sequence[str]
ERROR_TYPE = "error.type"
GEN_AI_OPERATIONS: dict[str, str] = {EventType.WRITE: "upsert_memory", EventType.RECALL: "search_memory"}
"""``gen_ai.operation.name`` by kind of event; observations and commands have none."""
