"""The HTTP interface: nothing is accepted that the broker has not acknowledged, and nobody hears of another's event."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import urandom
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from memsluice import log
from memsluice.client.publisher import Prepared, Receipt
from memsluice.client.tracing import Sending
from memsluice.clock import Clock
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry
from memsluice.errors import BrokerUnavailable, RequestRefused
from memsluice.events.cloudevent import STRUCTURED_JSON
from memsluice.events.limits import RECORD_BYTES_MAX
from memsluice.events.models import Identifier, Tenant
from memsluice.events.names import DSSE_CONTENT_TYPE
from memsluice.http_service import tracing
from memsluice.http_service.callers import Callers
from memsluice.http_service.guarding import Caller, guarded
from memsluice.http_service.interface import Guarded, frame
from memsluice.http_service.problems import described
from memsluice.ingest_service import signing
from memsluice.ingest_service.ledger import Ledger
from memsluice.ingest_service.reading import Event, check_role, kafka_headers, read
from memsluice.ingest_service.status import Statuses
from memsluice.ingest_service.wire import (
    EVENTS,
    OBSERVATIONS,
    STATUS,
    WAIT_S_MAX,
    WRITES,
    Accepted,
    EventStatus,
    ObservationRequest,
    PlaceModel,
    WriteRequest,
)
from memsluice.telemetry import registry as metrics
from memsluice.telemetry.meters import Meters
from memsluice.topics import names

AT_ONCE_MAX = 64
"""Requests of one credential that may be in work: those that wait for the broker, or for an outcome, hold connections
that others need."""
ACKNOWLEDGED_S = 12.0
"""How long a request waits for the broker; librdkafka gives an event up before."""
UNACKNOWLEDGED = (
    "the broker has not acknowledged the event, so it was not accepted: send it again under the same id or "
    "Idempotency-Key; should the broker have it after all, the gate knows it for the same"
)
_LOG = log.get_logger(__name__)
_PROBLEMS = described(
    _400="The event or the request is not valid; `field` says where.",
    _401="No token, or none that is good: `WWW-Authenticate` is set.",
    _403="The credential may not publish this, or is not held by the service.",
    _409="Another event of this id is on its way.",
    _413="The request is too large.",
    _422="An event of this id, or under this Idempotency-Key, said something else.",
    _429="The credential is over its quota, or has too many requests in work; `Retry-After` says when to go on.",
    _503="The broker does not acknowledge. Nothing was accepted; send it again under the same id.",
)
_OF_STATUS = {status: _PROBLEMS[status] for status in (400, 401, 429, 503)} | described(
    _404="No event of this id is known as the credential's own."
)
_ENVELOPE = {"schema": {"type": "string", "format": "binary"}}
_SIGNED = {
    "requestBody": {
        "required": True,
        "description": "CloudEvents 1.0 over HTTP: the DSSE envelope with `ce-` headers, or a structured event.",
        "content": {DSSE_CONTENT_TYPE: _ENVELOPE, STRUCTURED_JSON.decode(): _ENVELOPE},
    }
}
IdempotencyKey = Annotated[str | None, Header(description="The same key says the same event, however often it comes.")]


@dataclass
class Serving:
    """What the interface stands on. ``now_ms`` is Unix ms; ``send`` queues an event for the broker and never waits;
    ``held`` reads a credential of the service's home; ``not_ready`` says what keeps it from accepting."""

    keyring: Callable[[], Keyring]
    registry: Callable[[], Registry]
    held: signing.Held
    send: Callable[[Prepared], "Future[Receipt]"]
    ledger: Ledger
    statuses: Statuses
    meters: Meters
    now_ms: Clock
    callers: Callers
    not_ready: Callable[[], list[str]] = list
    _in_work: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def working(self, caller: Credential) -> Iterator[None]:
        """Count a request in work. Raises RequestRefused where the credential has too many."""
        if self._in_work[caller.kid] >= AT_ONCE_MAX:
            raise RequestRefused(429, "at_once", f"the credential has {AT_ONCE_MAX} requests in work already")
        self._in_work[caller.kid] += 1
        try:
            yield
        finally:
            self._in_work[caller.kid] -= 1
            if not self._in_work[caller.kid]:
                del self._in_work[caller.kid]

    @contextmanager
    def guard(self, request: Request, route: str, token: str | None) -> Iterator[Credential]:
        """Find who asks, before anything of a body is read, and count the request in work while it is answered.

        Raises RequestRefused, and NotPermitted where the credential publishes nothing here.
        """
        caller = self.callers.caller(token)
        if request.method == "POST":
            check_role(caller)
        span = tracing.request("memsluice.ingest_service", request.method, route, request.headers, caller.kid)
        with self.working(caller), span:
            yield caller

    async def accept(self, event: Event, caller: Credential) -> Accepted:
        """Publish an event, once, and return where it lies when the broker has it. Raises ProducerError."""
        name = (event.payload.tenant, event.payload.id)
        taken, new = self.ledger.begin(name, caller.kid, event.said)
        if new:
            sending = Sending(names.EVENTS, event.payload.id, event.type, urandom)
            message = event.traced(sending.traceparent)
            try:
                receipt = self.send(Prepared(event.payload.id, names.EVENTS, message, sending, event.partition))
            except Exception:  # a defect, too, must not keep the id waiting for a receipt that never comes
                self.ledger.drop(name, taken)
                raise
            self.ledger.sent(name, taken, receipt)
        try:
            found = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(taken.receipt)), ACKNOWLEDGED_S)
        except TimeoutError:
            raise BrokerUnavailable("an event was not acknowledged in time") from None
        _LOG.info("accepted", event_id=name[1], tenant=name[0], kid=caller.kid, type=event.type.value, new=new)
        return Accepted(
            id=name[1], tenant=name[0],
            place=PlaceModel(topic=found.topic, partition=found.partition, offset=found.offset),
            url=f"{EVENTS}/{quote(name[1], safe='')}?tenant={name[0]}",
        )  # fmt: skip

    async def sign_and_accept(
        self, asked: WriteRequest | ObservationRequest, key: str | None, caller: Credential
    ) -> Accepted:
        """Sign what a caller asks with the credential that is held for it, and publish it."""
        now_ms = self.now_ms()
        message = await run_in_threadpool(signing.signed, asked, key, caller, self.held, now_ms)
        event = read(message.value, message.headers, caller, self.keyring(), self.registry(), now_ms)
        return await self.accept(event, caller)


def application(serving: Serving) -> FastAPI:
    """Return the ASGI application."""
    app = FastAPI(
        title="memsluice ingest",
        version="1",
        description="Signed events in, and what became of them back. A bearer token is a JWT that a credential signs.",
        docs_url=None,
        redoc_url=None,
    )

    routes = guarded(serving.guard)
    _publishing(routes, serving)

    @routes.get(STATUS, responses=_OF_STATUS, summary="Ask what became of an event")
    async def status(
        caller: Caller,
        event_id: Identifier,
        tenant: Annotated[Tenant | None, Query(description="Needed by a credential of several tenants.")] = None,
        wait: Annotated[float, Query(ge=0, le=WAIT_S_MAX, description="Seconds to wait for an outcome.")] = 0.0,
    ) -> EventStatus:
        """Return the gate's verdict on an event of the caller's own, and what was decided about it since."""
        name = (tenant or signing.only_tenant(caller), event_id)
        return await serving.statuses.of(name, caller, wait)

    def answered(path: str, status: int) -> None:
        if path.startswith((EVENTS, WRITES, OBSERVATIONS)):
            serving.meters.add(metrics.INGESTS, str(status))

    app.include_router(routes)
    frame(app, serving.meters, serving.not_ready, UNACKNOWLEDGED)
    app.add_middleware(Guarded, body_bytes_max=RECORD_BYTES_MAX, answered=answered)
    return app


def _publishing(routes: APIRouter, serving: Serving) -> None:
    """Add what takes events."""

    @routes.post(EVENTS, status_code=202, responses=_PROBLEMS, openapi_extra=_SIGNED, summary="Publish a signed event")
    async def event(caller: Caller, request: Request, response: Response) -> Accepted:
        """Publish an event that the caller's own key signed; its bytes go on as they came."""
        value, headers = await request.body(), kafka_headers(request.scope["headers"])
        read_now = read(value, headers, caller, serving.keyring(), serving.registry(), serving.now_ms())
        return _located(response, await serving.accept(read_now, caller))

    @routes.post(WRITES, status_code=202, responses=_PROBLEMS, summary="Have something remembered")
    async def write(
        caller: Caller, asked: WriteRequest, response: Response, idempotency_key: IdempotencyKey = None
    ) -> Accepted:
        """Have the service sign a write with the caller's own credential, which it holds, and publish it."""
        return _located(response, await serving.sign_and_accept(asked, idempotency_key, caller))

    @routes.post(OBSERVATIONS, status_code=202, responses=_PROBLEMS, summary="Say what a session saw")
    async def observation(
        caller: Caller, asked: ObservationRequest, response: Response, idempotency_key: IdempotencyKey = None
    ) -> Accepted:
        """Have the service sign an observation with the platform's credential, which it holds, and publish it."""
        return _located(response, await serving.sign_and_accept(asked, idempotency_key, caller))


def _located(response: Response, accepted: Accepted) -> Accepted:
    response.headers["Location"] = accepted.url
    return accepted
