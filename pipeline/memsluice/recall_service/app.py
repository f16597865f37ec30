"""The HTTP interface: who asks is looked up before anything is read of the question, and every failure says why."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from memsluice import log
from memsluice.clock import Clock
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry
from memsluice.http_service import tracing
from memsluice.http_service.callers import Callers
from memsluice.http_service.guarding import Caller, guarded
from memsluice.http_service.interface import Guarded, frame
from memsluice.http_service.problems import described
from memsluice.recall.bearer import AUDIENCE
from memsluice.recall.recaller import Recaller
from memsluice.recall.wire import ENTRIES_PATH, LINES, PATH, EntriesRequest, Entry, RecallAnswer, RecallRequest, rest_of
from memsluice.recall_service.requests import check
from memsluice.recall_service.watching import Watching
from memsluice.stages.quota import Quota
from memsluice.telemetry import registry as metrics
from memsluice.telemetry.meters import Meters

BODY_BYTES_MAX = 65_536
"""A question has 4 KiB at most, escaped six times that."""
UNACKNOWLEDGED = "the broker has not acknowledged the recall; nothing is shown"
_LOG = log.get_logger(__name__)
_PROBLEMS = described(
    _400="The request is not valid; `field` says where.",
    _401="No token, or none that is good: `WWW-Authenticate` is set.",
    _403="The credential may not ask for this tenant, agent or principal.",
    _413="The request is too large.",
    _429="The credential is over its quota; `Retry-After` says when to ask again.",
    _503="Broker or store does not answer. Nothing was handed over; ask again.",
)


@dataclass
class Serving:
    """What the interface stands on. ``now_ms`` is Unix ms; ``not_ready`` says what keeps it from answering."""

    recaller: Recaller
    keyring: Callable[[], Keyring]
    registry: Callable[[], Registry]
    meters: Meters
    now_ms: Clock
    quota: Quota
    not_ready: Callable[[], list[str]] = list
    watching: Watching = field(init=False)
    callers: Callers = field(init=False)

    def __post_init__(self) -> None:
        self.watching = Watching(self.meters, self.now_ms)
        self.callers = Callers(self.keyring, self.registry, self.now_ms, self.quota, AUDIENCE, "ask {} questions")

    @contextmanager
    def guard(self, _request: Request, _route: str, token: str | None) -> Iterator[Credential]:
        """Find who asks, before anything of a question is read. Raises RequestRefused."""
        yield self.callers.caller(token)

    def recall(self, asked: RecallRequest, caller: Credential, headers: Any) -> Any:
        """Answer; count how long it took, and tell of what it shows."""
        check(asked, caller, self.now_ms())
        began = perf_counter()
        with tracing.request("memsluice.recall_service", "POST", PATH, headers, caller.kid):
            answer = self.recaller.ask(asked.asked())
        self.meters.observe(metrics.RECALL_SECONDS, perf_counter() - began)
        _LOG.info(
            "recalled", event_id=answer.event_id, tenant=asked.tenant, kid=caller.kid, entries=len(answer.entries)
        )
        self.watching.answered(asked.asked(), answer)
        return answer

    def look_up(self, asked: EntriesRequest, caller: Credential, headers: Any) -> Any:
        """Answer who names what he wants; nothing is searched, so of what is told over time it is a sweep at most."""
        check(asked, caller, self.now_ms())
        with tracing.request("memsluice.recall_service", "POST", ENTRIES_PATH, headers, caller.kid):
            answer = self.recaller.look_up(asked.asked(), asked.ids)
        _LOG.info(
            "looked up", event_id=answer.event_id, tenant=asked.tenant, kid=caller.kid, entries=len(answer.entries)
        )
        self.watching.named(asked.asked(), answer)
        return answer


def application(serving: Serving) -> FastAPI:
    """Return the ASGI application."""
    app = FastAPI(
        title="memsluice recall",
        version="1",
        description="Verified memory for agents. A bearer token is a JWT that a reader's credential signs.",
        docs_url=None,
        redoc_url=None,
    )

    routes = guarded(serving.guard)

    @routes.post(PATH, responses=_PROBLEMS, summary="Ask a tenant's memory")
    def recall(asked: RecallRequest, caller: Caller, request: Request) -> RecallAnswer:
        """Return the nearest verified entries once the recall's event was acknowledged.

        With `Accept: application/x-ndjson` each entry is a line, and the last line has what the answer says besides.
        """
        return _given(serving.recall(asked, caller, request.headers), request)

    @routes.post(ENTRIES_PATH, responses=_PROBLEMS, summary="Read entries by their names, or all of a scope")
    def entries(asked: EntriesRequest, caller: Caller, request: Request) -> RecallAnswer:
        """Return verified entries once the recall's event, which says that they were named, was acknowledged."""
        return _given(serving.look_up(asked, caller, request.headers), request)

    def answered(path: str, status: int) -> None:
        if path in (PATH, ENTRIES_PATH):
            serving.meters.add(metrics.RECALLS, str(status))

    app.include_router(routes)
    frame(app, serving.meters, serving.not_ready, UNACKNOWLEDGED)
    app.add_middleware(Guarded, body_bytes_max=BODY_BYTES_MAX, answered=answered)
    return app


def _given(answer: Any, request: Request) -> RecallAnswer:
    """Return an answer in the form that was asked for."""
    if request.headers.get("accept") == LINES:
        lines = (line + "\n" for line in _lines(answer))
        return StreamingResponse(lines, media_type=LINES)  # type: ignore[return-value]  # FastAPI passes it on
    return RecallAnswer.of(answer)


def _lines(answer: Any) -> Iterator[str]:
    for entry in answer.entries:
        yield Entry.of(entry).model_dump_json()
    yield rest_of(answer).model_dump_json()
