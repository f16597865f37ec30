"""The span of a request, in the trace that the caller began: what the service does for it lies in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode

from memsluice.events.span_names import ERROR_TYPE


@contextmanager
def request(service: str, method: str, route: str, headers: Mapping[str, str], kid: str) -> Iterator[None]:
    """Give the span of a request of a credential; the headers say in which trace. No question and no content is in it.

    ``service`` names the tracer: the service's package.
    """
    attributes = {"http.request.method": method, "http.route": route, "memsluice.kid": kid}
    started = trace.get_tracer(service).start_as_current_span(
        f"{method} {route}", extract(headers), SpanKind.SERVER, attributes,
        record_exception=False, set_status_on_exception=False,
    )  # fmt: skip
    with started as span:
        try:
            yield
        except Exception as error:  # its kind alone
            span.set_attribute(ERROR_TYPE, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
