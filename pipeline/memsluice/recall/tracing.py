"""The spans of a read: one of the question (``search_memory``), in it one of each search of the store.

Names are those of OpenTelemetry's conventions for ``gen_ai.memory`` and databases. Only its API is used: nothing is
recorded, and next to nothing paid, unless the application has set up an SDK. The recall's event is published inside of
the first span, so that its way through the gate belongs to the same trace. No question and no content is in either.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from memsluice.escaping import visible
from memsluice.events.models import Zone
from memsluice.events.names import EventType
from memsluice.events.span_names import ERROR_TYPE, GEN_AI_OPERATIONS, Attribute

TRACER = "memsluice.recall"
NAME_CHARS_MAX = 160


@contextmanager
def question(*, tenant: str, zone: Zone, agent: str, principal: str, session: str, k: int) -> Iterator[Span]:
    """Give the span of a question; names are as the caller said them, checked or not."""
    operation = GEN_AI_OPERATIONS[EventType.RECALL]
    said = {"memsluice.principal": principal, "gen_ai.agent.id": agent, "gen_ai.conversation.id": session}
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.memory.store.id": visible(f"{tenant}/{zone.value}", NAME_CHARS_MAX),
        "memsluice.tenant": visible(tenant, NAME_CHARS_MAX),
        "memsluice.zone": zone.value,
        "memsluice.recall.k": k,
        **{name: visible(value, NAME_CHARS_MAX) for name, value in said.items()},
    }
    with _span(operation, SpanKind.INTERNAL, attributes) as span:
        yield span


@contextmanager
def search(zone: Zone, size: int) -> Iterator[Span]:
    """Give the span of one search of the store, for at most ``size`` objects."""
    attributes: dict[str, Attribute] = {
        "db.operation.name": "search",
        "db.collection.name": zone.value,
        "memsluice.recall.size": size,
    }
    with _span(f"search {zone.value}", SpanKind.CLIENT, attributes) as span:
        yield span


@contextmanager
def _span(name: str, kind: SpanKind, attributes: dict[str, Attribute]) -> Iterator[Span]:
    started = trace.get_tracer(TRACER).start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    )
    with started as span:
        try:
            yield span
        except Exception as error:  # its kind alone: its text may quote what was asked
            span.set_attribute(ERROR_TYPE, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
