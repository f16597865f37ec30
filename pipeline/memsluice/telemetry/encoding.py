"""Spans to OTLP's bytes, several times as fast as by the SDK's encoder, which was most of what a span costs.

Most attributes of a stage's spans have been said before. A Protocol Buffers message's bytes may be its parts' bytes one
after the other (the encoding's own rule for merging): so an attribute is encoded when it is first seen, and a span is
its own numbers followed by the bytes that its attributes were.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, SpanFlags, Status
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

KNOWN_MAX = 2_048
"""Attributes whose bytes are kept, those said last; each is as short as what a producer may send."""


class QuickExporter(OTLPSpanExporter):
    """The SDK's exporter, with its client, retries and environment, and :func:`encode` for its encoder."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send one batch of spans of one resource and scope."""
        if self._shutdown:
            return SpanExportResult.FAILURE
        sent = self._client.export(encode(spans).SerializeToString())
        return SpanExportResult.SUCCESS if sent.success else SpanExportResult.FAILURE


def encode(spans: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
    """Return the request that the SDK's encoder makes of spans without events, all of the first one's resource and
    scope."""
    request = encode_spans(spans[:1])
    for of_resource in request.resource_spans:
        kept = of_resource.scope_spans[0].spans
        del kept[:]
        for span in spans:
            kept.add().MergeFromString(_span(span))
    return request


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
    return bytes(Span(attributes=[KeyValue(key=name, value=_value(value))]).SerializeToString())


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
