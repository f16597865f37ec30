"""Headers that a stage passes on to its outputs."""

from memsluice.events.names import TRACEPARENT
from memsluice.events.records import Headers

EVENT_ID = "memsluice-event-id"
TRACEPARENT_BYTES = 55
"""Length of a W3C traceparent, version 00."""


def passed_on(headers: Headers) -> Headers:
    """Return the W3C ``traceparent`` of a record, if it has one of the right form: nothing else of a producer's."""
    for name, value in headers:
        if name == TRACEPARENT and value is not None and len(value) == TRACEPARENT_BYTES and value.isascii():
            return ((TRACEPARENT, value),)
    return ()
