"""Spans to OTLP's bytes, several times as fast as by the SDK's encoder, which was most of what a span costs.

Most attributes of a stage's spans have been said before. A Protocol Buffers message's bytes may be its parts' bytes one
after the other (the encoding's own rule for merging): so an attribute is encoded when it is first seen, and a span is
its own numbers followed by the bytes that its attributes were.

A span is encoded where it ends. Five seconds later it would be cold, and thousands of objects that wait are walked by
the collector of garbage, which has nothing to do with bytes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, SpanFlags, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext, SpanKind, StatusCode

from memsluice.telemetry.spans import SERVICE

KNOWN_MAX = 2_048
"""Attributes whose bytes are kept, those said last; each is as short as what a producer may send."""


SCOPE: Final = InstrumentationScope(SERVICE)


class QuickExporter(OTLPSpanExporter):
    """The SDK's exporter, with its client, retries and environment, for spans that :func:`pack` made bytes of."""

    def __init__(self, resource: Resource, endpoint: str | None = None) -> None:
        super().__init__(endpoint)
        self._resource = resource

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Send one batch of packed spans."""
        if self._shutdown:
            return SpanExportResult.FAILURE
        sent = self._client.export(request(self._resource, spans))
        return SpanExportResult.SUCCESS if sent.success else SpanExportResult.FAILURE


def request(resource: Resource, packed: Sequence[bytes]) -> bytes:
    """Return the request that the SDK's encoder makes of spans without events, of this resource and :data:`SCOPE`."""
    spoken_for = ReadableSpan("", INVALID_SPAN_CONTEXT, resource=resource, instrumentation_scope=SCOPE)
    (of_resource,) = encode_spans([spoken_for]).resource_spans
    (of_scope,) = of_resource.scope_spans
    del of_scope.spans[:], of_resource.scope_spans[:]
    spans = _second(b"".join((of_scope.SerializeToString(), *packed)))
    return _first(of_resource.SerializeToString() + spans)


def pack(span: ReadableSpan) -> bytes:
    """Return a span as the next one of its scope's. Raises TypeError, ValueError where OTLP cannot say it."""
    return _second(_span(span))


def _first(body: bytes) -> bytes:
    """Return ``body`` as a message's first field: its number, its length and itself, whatever type it has."""
    return bytes(Span(trace_id=body).SerializeToString())


def _second(body: bytes) -> bytes:
    """Return ``body`` as a message's second field."""
    return bytes(Span(span_id=body).SerializeToString())


def _span(span: ReadableSpan) -> bytes:
    context, parent = span.context, span.parent
    assert context is not None
    said = Span(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        parent_span_id=parent.span_id.to_bytes(8, "big") if parent else b"",
        name=span.name,
        start_time_unix_nano=span.start_time or 0,
        end_time_unix_nano=span.end_time or 0,
        flags=_REMOTE if parent and parent.is_remote else _LOCAL,
    )
    status = span.status
    parts = [said.SerializeToString(), _fixed(span.kind, status.status_code, status.description or "")]
    parts += _attributes(span.attributes or {})
    if context.trace_state:
        parts.append(Span(trace_state=context.trace_state.to_header()).SerializeToString())
    if span.links:
        parts.append(Span(links=[_link(link.context) for link in span.links]).SerializeToString())
    return b"".join(parts)


_LOCAL: Final = SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
_REMOTE: Final = _LOCAL | SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
_KINDS: Final = {kind: Span.SpanKind.Value(f"SPAN_KIND_{kind.name}") for kind in SpanKind}
_CODES: Final = {code: Status.StatusCode.Value(f"STATUS_CODE_{code.name}") for code in StatusCode}


@lru_cache(KNOWN_MAX)
def _fixed(kind: SpanKind, code: StatusCode, description: str) -> bytes:
    return bytes(Span(kind=_KINDS[kind], status=Status(code=_CODES[code], message=description)).SerializeToString())


def _link(context: SpanContext) -> Span.Link:
    return Span.Link(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        flags=_REMOTE if context.is_remote else _LOCAL,
    )


def _attributes(said: Mapping[str, Any]) -> list[bytes]:
    return [
        _attribute(name, value) if type(value) in (list, tuple) else _known(name, value) for name, value in said.items()
    ]


def _attribute(name: str, value: Any) -> bytes:
    if type(value) is str:  # ids, mostly: each is new, and the library takes four times as long
        text = _TEXT + _sized(value.encode())
        return _ATTRIBUTE + _sized(_key(name) + _VALUE + _sized(text))
    return bytes(Span(attributes=[KeyValue(key=name, value=_value(value))]).SerializeToString())


_TEXT, _VALUE, _ATTRIBUTE = (bytes((number << 3 | 2,)) for number in (1, 2, 9))
"""Heads of ``AnyValue.string_value``, ``KeyValue.value``, ``Span.attributes``: the number, and that a size follows."""


@lru_cache(256)
def _key(name: str) -> bytes:
    return bytes(KeyValue(key=name).SerializeToString())


def _sized(body: bytes) -> bytes:
    """Return ``body`` after its length: seven bits a byte, the lowest first, all but the last marked by the eighth."""
    size, head = len(body), []
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes((*head, size)) + body


_known = lru_cache(KNOWN_MAX, typed=True)(_attribute)
"""Typed, or 1, 1.0 and True would be one; which looks at no member of a list, so those are not kept."""


def _value(value: object) -> AnyValue:
    match value:
        case str():
            return AnyValue(string_value=value)
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case list() | tuple():
            return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))
    raise TypeError(f"an attribute of type {type(value).__name__}")
