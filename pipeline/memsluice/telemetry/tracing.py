"""Spans around the stages' work: one a record, child of the producer's, and one a batch, linked to its records'.

The producer's context travels unchanged through every topic, as the messaging conventions ask of intermediaries: so the
spans of *seal*, *screen* and *land* are siblings below the producer's span, in one trace, and a record that is sent
again carries the very same header.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry.trace import Link, SpanContext, TraceFlags

from memsluice.envelope.verdict import Verdict
from memsluice.errors import ConfigError
from memsluice.events.headers import passed_on
from memsluice.events.records import Output, Record
from memsluice.events.span_names import ERROR_TYPE, Attribute
from memsluice.telemetry import spans

if TYPE_CHECKING:
    from memsluice.telemetry.exporting import Provider

LINKS_MAX = 128
"""Links of a batch's span; a larger batch names its first records only (the SDK's own default)."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
WAITING_MAX = 2_048
"""Spans that wait for export, unless :data:`QUEUE_VARIABLE` says otherwise; OpenTelemetry's own default."""
QUEUE_VARIABLE = "OTEL_BSP_MAX_QUEUE_SIZE"
_TRACEPARENT = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
"""W3C Trace Context, version 00. Read by hand: the SDK's propagator costs more than the rest of a span's start."""


def provider(
    service: str, instance: str, lost: Callable[[str, int], None] = lambda why, spans: None
) -> "Provider | None":
    """Return what exports spans over OTLP/HTTP, or None where no endpoint is set or ``OTEL_SDK_DISABLED`` is.

    OpenTelemetry's own variables set endpoint, headers, sampler and batching. The queue is bounded: with the backend
    down or silent, spans are lost and counted (``lost``), nothing waits. End it by
    :func:`memsluice.telemetry.exporting.close`. Raises ConfigError for a queue's size that is none.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or not any(map(os.environ.get, ENDPOINTS)):
        return None
    from opentelemetry.sdk.resources import Resource

    from memsluice.telemetry.encoding import QuickExporter
    from memsluice.telemetry.exporting import BoundedSpans, Provider

    resource = Resource.create({"service.name": service, "service.instance.id": instance})
    return Provider(BoundedSpans(QuickExporter(resource), _waiting_max(), lost), resource)


def _waiting_max() -> int:
    said = os.environ.get(QUEUE_VARIABLE) or str(WAITING_MAX)
    if not (said.isascii() and said.isdigit() and int(said)):
        raise ConfigError(f"{QUEUE_VARIABLE} is {said!r}, and has to be a number of spans, at least 1")
    return int(said)


class StageTracer:
    """Makes the spans of one stage."""

    def __init__(self, stage: str, group: str, provider: "Provider") -> None:
        self._stage = stage
        self._group = group
        self._provider = provider

    def batch(
        self, batch: Sequence[Record], results: Sequence[Sequence[Output]], started_ns: int, ended_ns: int
    ) -> None:
        """Tell of a batch that was processed from ``started_ns`` until ``ended_ns`` (Unix ns)."""
        parents = [parent_of(record) for record in batch]
        links = [Link(parent) for parent in parents if parent is not None]
        for record, parent, outputs in zip(batch, parents, results, strict=True):
            self._tell(record, parent, started_ns, ended_ns, partial(spans.of_outputs, outputs))
        attributes: dict[str, Attribute] = {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.operation.name": self._stage,
            "messaging.batch.message_count": len(batch),
            "messaging.consumer.group.name": self._group,
        }
        self._provider.over(f"{self._stage} batch", None, started_ns, ended_ns, lambda: attributes, links[:LINKS_MAX])

    def record(self, record: Record, verdict: Verdict | None, started_ns: int, ended_ns: int) -> None:
        """Tell of one record, decided from ``started_ns`` until ``ended_ns`` (Unix ns); no verdict: nothing was."""
        said = _undecided if verdict is None else partial(spans.of_verdict, verdict)
        self._tell(record, parent_of(record), started_ns, ended_ns, said)

    def failed(self, records: Sequence[Record], error: BaseException, started_ns: int, ended_ns: int) -> None:
        """Tell of records whose processing raised; the error's kind only, its text may hold what a record says."""
        said: dict[str, Attribute] = {ERROR_TYPE: type(error).__name__}
        for record in records[:LINKS_MAX]:
            self._tell(record, parent_of(record), started_ns, ended_ns, said.copy)

    def _tell(
        self,
        record: Record,
        parent: SpanContext | None,
        started_ns: int,
        ended_ns: int,
        said: Callable[[], dict[str, Attribute]],
    ) -> None:
        """Tell of a record, if its producer began a trace."""

        def attributes() -> dict[str, Attribute]:
            found = spans.of_record(self._stage, record)
            found["memsluice.waited_ms"] = max(0, started_ns // 1_000_000 - record.timestamp_ms)
            return found | said()

        if parent is not None:
            self._provider.over(f"{self._stage} {record.topic}", parent, started_ns, ended_ns, attributes)


def _undecided() -> dict[str, Attribute]:
    return {spans.OUTCOME: "undecided"}


def parent_of(record: Record) -> SpanContext | None:
    """Return the creation context of a record's header, or None where it has none, or one not of W3C's form."""
    headers = passed_on(record.headers)
    if not headers:
        return None
    matched = _TRACEPARENT.fullmatch(headers[0][1] or b"")
    if matched is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in matched.groups())
    found = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return found if found.is_valid else None
