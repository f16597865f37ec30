"""Spans on their way to a backend: what waits is bounded, what is lost is counted, and ending does not wait for long.

The SDK bounds its queue but says nothing of what it drops, and its flush and shutdown wait for as long as the backend
takes (opentelemetry-python issue 4568). So the places in its queue are given out here.
"""

from collections.abc import Callable, Sequence
from threading import Lock, Thread

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

CLOSE_MS = 3_000
"""How long a process that ends may still export spans; below every stage's own bound for stopping."""
QUEUE_FULL, NOT_EXPORTED = "queue_full", "not_exported"
"""Why spans are lost: more ended than the backend took, or it refused a batch and every retry of it."""

Lost = Callable[[str, int], None]
"""Told why how many spans are lost. Called from any thread."""


class BoundedSpans(BatchSpanProcessor):
    """Exports in batches; at most ``waiting_max`` spans wait, and no caller ever waits for one."""

    def __init__(self, exporter: SpanExporter, waiting_max: int, lost: Lost) -> None:
        self._lock = Lock()
        self._waiting_max = waiting_max
        self._lost = lost
        self.waiting = 0
        super().__init__(_Counted(exporter, self._taken, lost), max_queue_size=waiting_max)

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span that ended, or lose it where all places are taken."""
        if span.context is None or not span.context.trace_flags.sampled:
            return
        with self._lock:
            full = self.waiting >= self._waiting_max
            self.waiting += not full
        if full:
            self._lost(QUEUE_FULL, 1)
        else:
            super().on_end(span)

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


def close(provider: TracerProvider, left_ms: int = CLOSE_MS) -> bool:
    """Export what is left for at most ``left_ms``; return whether it was enough. What hangs dies with the process."""
    ending = Thread(target=provider.shutdown, name="telemetry-close", daemon=True)
    ending.start()
    ending.join(left_ms / 1_000)
    return not ending.is_alive()
