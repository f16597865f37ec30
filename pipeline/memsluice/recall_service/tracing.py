"""The span of a request, in the trace that the caller began: the recall's own spans lie in it."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode

from memsluice.events.span_names import ERROR_TYPE
from memsluice.recall.wire import PATH

TRACER = "memsluice.recall_service"


@contextmanager
def request(parent: Context, kid: str) -> Iterator[None]:
    """Give the span of a request of a credential. No question and no content is in it."""
    attributes = {"http.request.method": "POST", "http.route": PATH, "memsluice.kid": kid}
    started = trace.get_tracer(TRACER).start_as_current_span(
        f"POST {PATH}", parent, SpanKind.SERVER, attributes, record_exception=False, set_status_on_exception=False
    )
    with started as span:
        try:
            yield
        except Exception as error:  # its kind alone
            span.set_attribute(ERROR_TYPE, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
