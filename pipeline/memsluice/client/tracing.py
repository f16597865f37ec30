"""The span of a publication, and the ``traceparent`` that ties a landing to it (W3C Trace Context, version 00).

Only OpenTelemetry's API is used: an application that has set up its SDK gets a span for each event, one that has not
pays nothing (the API itself is not imported), and its events carry a new trace each, so that the gate's own spans
belong together all the same.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from memsluice.events.names import EventType
from memsluice.events.span_names import GEN_AI_OPERATIONS

if TYPE_CHECKING:
    from opentelemetry.trace import Span

SAMPLED = 1
TRACER = "memsluice.client"


class Sending:
    """One publication: its span, if anybody records, and the header that its event carries."""

    def __init__(self, topic: str, event_id: str, event_type: EventType, entropy: Callable[[int], bytes]) -> None:
        attributes = {
            "messaging.system": "kafka",
            "messaging.operation.type": "send",
            "messaging.operation.name": "send",
            "messaging.destination.name": topic,
            "messaging.message.id": event_id,
            "memsluice.event.id": event_id,
        }
        if event_type in GEN_AI_OPERATIONS:
            attributes["gen_ai.operation.name"] = GEN_AI_OPERATIONS[event_type]
        self._span = _started(f"send {topic}", attributes)
        self.traceparent = _traceparent(self._span, entropy)

    def acknowledged(self, partition: int, offset: int) -> None:
        """The broker has it."""
        if self._span is None:
            return
        self._span.set_attribute("messaging.destination.partition.id", str(partition))
        self._span.set_attribute("messaging.kafka.offset", offset)
        self._span.end()

    def failed(self, kind: str) -> None:
        """It was not acknowledged; ``kind`` names the error, not what was sent."""
        if self._span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, kind))
        self._span.end()


def _started(name: str, attributes: "dict[str, str]") -> "Span | None":
    if "opentelemetry.trace" not in sys.modules:  # where nobody has imported the API, nobody records
        return None
    from opentelemetry.trace import SpanKind, get_tracer

    return get_tracer(TRACER).start_span(name, kind=SpanKind.PRODUCER, attributes=attributes)


def _traceparent(span: "Span | None", entropy: Callable[[int], bytes]) -> str:
    """Return the span's traceparent, or that of a new, sampled trace. Baggage is left out: it may hold anything."""
    context = None if span is None else span.get_span_context()
    if context is not None and context.is_valid:
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    return f"00-{_nonzero(entropy, 16).hex()}-{_nonzero(entropy, 8).hex()}-{SAMPLED:02x}"


def _nonzero(entropy: Callable[[int], bytes], size: int) -> bytes:
    found = entropy(size)
    return found if any(found) else bytes(size - 1) + b"\x01"  # all zeros means "invalid" in the standard
