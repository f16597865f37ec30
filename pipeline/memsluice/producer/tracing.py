"""The ``traceparent`` that ties a landing to its producer (W3C Trace Context, version 00)."""

from collections.abc import Callable

from opentelemetry import trace

SAMPLED = 1


def traceparent(entropy: Callable[[int], bytes]) -> str:
    """Return the current OpenTelemetry span's traceparent, or that of a new, sampled trace where there is none.

    Baggage is left behind on purpose: it may hold what does not belong in a log.
    """
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    return f"00-{_nonzero(entropy, 16).hex()}-{_nonzero(entropy, 8).hex()}-{SAMPLED:02x}"


def _nonzero(entropy: Callable[[int], bytes], size: int) -> bytes:
    found = entropy(size)
    return found if any(found) else bytes(size - 1) + b"\x01"  # all zeros means "invalid" in the standard
