"""Spans as bytes: what the SDK's encoder makes of them, whatever they say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState
from tests.gate.build import MemoryRows
from tests.stages.test_screen import apply, mixed_day, stage
from tests.stages.test_screen import record as sealed_record
from tests.telemetry.test_spans import traceparent

from memsluice.telemetry.encoding import KNOWN_MAX, SCOPE, QuickExporter, pack, request
from memsluice.telemetry.exporting import NOT_ENCODED, BoundedSpans, Provider
from memsluice.telemetry.tracing import StageTracer

STARTED_NS, ENDED_NS = 1_772_470_000_000_000_000, 1_772_470_000_001_000_000
RESOURCE = Resource.create({"service.name": "memsluice", "service.instance.id": "0"})
PARENT = SpanContext(0xA, 0xB, is_remote=True, trace_flags=TraceFlags(1))


def of_a_day() -> list[ReadableSpan]:
    """Return the spans that *screen* and a batch stage make of a day with every kind of event."""
    kept = InMemorySpanExporter()
    provider, rows, deciding = Provider(SimpleSpanProcessor(kept)), MemoryRows(), stage()
    tracer, batch = StageTracer("screen", "memsluice-screen", provider), []
    for offset, sealed in enumerate(mixed_day()):
        plain = sealed_record(sealed, offset)
        traced = replace(plain, headers=(*plain.headers, traceparent()))
        step = deciding.process(traced, rows)
        apply(rows, step)
        tracer.record(traced, step.verdict, STARTED_NS, ENDED_NS)
        batch.append(traced)
    tracer.batch(batch, [[] for _ in batch], STARTED_NS, ENDED_NS)
    tracer.failed(batch[:1], ValueError("secret"), STARTED_NS, ENDED_NS)
    return list(kept.get_finished_spans())


def told(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return what a backend reads of the request made of packed spans."""
    return ExportTraceServiceRequest.FromString(request(spans[0].resource, [pack(span) for span in spans]))


def test_every_span_of_a_day_is_what_the_sdk_makes_of_it() -> None:
    """A backend reads exactly what the SDK's own encoder would have sent: ids, links, errors and every attribute."""
    spans = of_a_day()
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET, StatusCode.ERROR}
    assert any(span.links for span in spans)
    assert told(spans) == encode_spans(spans)


def test_equal_numbers_of_different_types_stay_what_they_are() -> None:
    """1, 1.0 and True are equal in Python and three different values to a backend."""
    spans = [
        ReadableSpan("x", PARENT, PARENT, RESOURCE, {"n": value, "many": many}, instrumentation_scope=SCOPE)
        for value, many in ((1, (1, 2)), (1.0, [1.0, 2.0]), (True, (True,)), ("1", ()), (0.0, ("a",)), (False, [""]))
    ]
    assert told(spans) == encode_spans(spans)


@pytest.mark.parametrize("length", [0, 1, 120, 127, 128, 129, 16_383, 16_384, 70_000])
def test_a_text_of_any_length_is_told(length: int) -> None:
    """Lengths are written by hand: just below and above each power of 128 a backend reads the same text."""
    said = {"name": "x" * length, "n" * max(length, 1): "\N{SNOWMAN}"}
    spans = [ReadableSpan("x", PARENT, PARENT, RESOURCE, said, instrumentation_scope=SCOPE)]
    assert told(spans) == encode_spans(spans)


def test_what_tracers_may_add_is_kept() -> None:
    """A vendor's trace state, a span without parent, another kind and a described error reach the backend."""
    state = SpanContext(0xA, 0xC, is_remote=False, trace_state=TraceState([("vendor", "1"), ("other", "2")]))
    of: Any = {"resource": RESOURCE, "instrumentation_scope": SCOPE}
    failed = Status(StatusCode.ERROR, "broken \N{SNOWMAN}")
    spans = [
        ReadableSpan("a", state, None, kind=SpanKind.PRODUCER, status=failed, links=[Link(PARENT)], **of),
        ReadableSpan("b", state, state, kind=SpanKind.INTERNAL, status=Status(StatusCode.OK), **of),
    ]
    assert told(spans) == encode_spans(spans)


def test_more_attributes_than_are_kept_are_all_told() -> None:
    """The bytes that are kept are a bounded cache, never what decides what is said."""
    spans = [
        ReadableSpan("a", PARENT, None, RESOURCE, {"id": str(number % (KNOWN_MAX * 2))}, instrumentation_scope=SCOPE)
        for number in range(9_000)
    ]
    assert told(spans) == encode_spans(spans)


def test_a_span_that_otlp_cannot_say_is_counted_and_ends_nothing() -> None:
    """Whoever ends a span never gets its defects: a stage would stop the stream for want of a trace."""
    lost: list[str] = []
    spans = BoundedSpans(QuickExporter(RESOURCE), 1, lambda why, count: lost.extend([why] * count))
    for value in (2**64, object(), "\ud800"):
        spans.on_end(ReadableSpan("x", PARENT, attributes={"n": value}))  # type: ignore[dict-item]
    assert (lost, spans.waiting) == ([NOT_ENCODED] * 3, 0)
    spans.shutdown()
