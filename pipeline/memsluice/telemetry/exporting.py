"""Spans on their way to a backend: what waits is bounded, what is lost is counted, and ending does not wait for long.

The SDK bounds its queue but says nothing of what it drops, and its flush and shutdown wait for as long as the backend
takes (opentelemetry-python issue 4568). So the places in its queue are given out here.

A stage tells of work that is over, several times an event. The SDK's live spans, which may be changed, locked and asked
from anywhere until they end, take three times as long to make: so such spans are made here, ended.
"""

from collections.abc import Callable, Sequence
from threading import Lock, Thread

from opentelemetry import context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, SamplingResult
from opentelemetry.sdk.trace.sampling import Decision as SamplingDecision
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from memsluice.events.span_names import ERROR_TYPE, Attribute
from memsluice.telemetry.encoding import SCOPE, pack

CLOSE_MS = 3_000
"""How long a process that ends may still export spans; below every stage's own bound for stopping."""
QUEUE_FULL, NOT_EXPORTED, NOT_ENCODED = "queue_full", "not_exported", "not_encoded"
"""Why spans are lost: more ended than the backend took, it refused a batch and every retry of it, or OTLP has no way
to say what one says (which is a defect here, and ends no stage)."""

BATCH = 512
"""Spans that are exported at once, unless fewer may wait; OpenTelemetry's own default."""
_NO_CONTEXT = context.Context()
_FINE = Status()
_WANTED, _UNWANTED = map(SamplingResult, (SamplingDecision.RECORD_AND_SAMPLE, SamplingDecision.DROP))
Lost = Callable[[str, int], None]
"""Told why how many spans are lost. Called from any thread."""


class BoundedSpans(BatchSpanProcessor):
    """Exports packed spans in batches; at most ``waiting_max`` wait, and no caller ever waits for one."""

    def __init__(self, exporter: SpanExporter, waiting_max: int, lost: Lost) -> None:
        self._lock = Lock()
        self._waiting_max = waiting_max
        self._lost = lost
        self.waiting = 0
        at_once = None if waiting_max >= BATCH else waiting_max  # None: the SDK's own; it refuses a larger one
        super().__init__(
            _Counted(exporter, self._taken, lost), max_queue_size=waiting_max, max_export_batch_size=at_once
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span that ended, or lose it where all places are taken."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            full = self.waiting >= self._waiting_max
            self.waiting += not full
        if full:
            self._lost(QUEUE_FULL, 1)
            return
        try:
            packed = pack(span)
        except (TypeError, ValueError):
            self._taken(1)
            self._lost(NOT_ENCODED, 1)
        else:
            self._batch_processor.emit(packed)  # type: ignore[arg-type]  # the exporter's, which alone gets them

    def _taken(self, spans: int) -> None:
        with self._lock:
            self.waiting -= spans


class _Counted(SpanExporter):
    """An exporter whose failures are counted."""

    def __init__(self, exporter: SpanExporter, taken: Callable[[int], None], lost: Lost) -> None:
        self._exporter = exporter
        self._taken = taken
        self._lost = lost

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._taken(len(spans))
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self._lost(NOT_EXPORTED, len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = CLOSE_MS) -> bool:
        return self._exporter.force_flush(timeout_millis)


class Provider(TracerProvider):
    """The SDK's provider, with its sampler and resource, which also takes spans that are over."""

    def __init__(self, processor: SpanProcessor, resource: Resource | None = None) -> None:
        super().__init__(resource=resource or Resource.create(), shutdown_on_exit=False)
        self.add_span_processor(processor)
        self._processor = processor

    def over(
        self,
        name: str,
        parent: SpanContext | None,
        started_ns: int,
        ended_ns: int,
        attributes: Callable[[], dict[str, Attribute]],
        links: Sequence[Link] = (),
    ) -> None:
        """Export a span from ``started_ns`` until ``ended_ns`` (Unix ns), if the sampler wants it: only then
        ``attributes`` are asked for. An error it is where they have an ``error.type``."""
        trace_id = self.id_generator.generate_trace_id() if parent is None else parent.trace_id
        sampling = self._sampled(name, parent, trace_id, links)
        if sampling.decision is not SamplingDecision.RECORD_AND_SAMPLE:
            return
        said = attributes() | dict(sampling.attributes)
        span_id, sampled = self.id_generator.generate_span_id(), TraceFlags(TraceFlags.SAMPLED)
        span = ReadableSpan(
            name,
            SpanContext(trace_id, span_id, is_remote=False, trace_flags=sampled, trace_state=sampling.trace_state),
            parent,
            self.resource,
            said,
            links=links,
            kind=SpanKind.CONSUMER,
            status=Status(StatusCode.ERROR, str(said[ERROR_TYPE])) if ERROR_TYPE in said else _FINE,
            start_time=started_ns,
            end_time=ended_ns,
            instrumentation_scope=SCOPE,
        )
        self._processor.on_end(span)

    def _sampled(self, name: str, parent: SpanContext | None, trace_id: int, links: Sequence[Link]) -> SamplingResult:
        if self.sampler is DEFAULT_ON:  # what OpenTelemetry samples by unless told otherwise: no need to ask
            return _WANTED if parent is None or parent.trace_flags.sampled else _UNWANTED
        within = _NO_CONTEXT if parent is None else trace.set_span_in_context(NonRecordingSpan(parent), _NO_CONTEXT)
        return self.sampler.should_sample(within, trace_id, name, SpanKind.CONSUMER, None, links)


def close(provider: TracerProvider, left_ms: int = CLOSE_MS) -> bool:
    """Export what is left for at most ``left_ms``; return whether it was enough. What hangs dies with the process."""
    ending = Thread(target=provider.shutdown, name="telemetry-close", daemon=True)
    ending.start()
    ending.join(left_ms / 1_000)
    return not ending.is_alive()
