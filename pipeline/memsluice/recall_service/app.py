"""The HTTP interface: who asks is looked up before anything is read of the question, and every failure says why."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from opentelemetry.propagate import extract
from starlette.exceptions import HTTPException as AnyHTTPException

from memsluice import log
from memsluice.clock import Clock
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry
from memsluice.errors import InputError, MemsluiceError, RequestRefused
from memsluice.recall.bearer import caller_of
from memsluice.recall.recaller import Recaller
from memsluice.recall.wire import LINES, PATH, Entry, Problem, RecallAnswer, RecallRequest, rest_of
from memsluice.recall_service import tracing
from memsluice.recall_service.problems import RETRY_S, problem, problem_of
from memsluice.recall_service.requests import check
from memsluice.recall_service.watching import Watching
from memsluice.stages.quota import Bucket, Quota
from memsluice.telemetry import registry as metrics
from memsluice.telemetry.meters import Meters

BEARER = HTTPBearer(auto_error=False, bearerFormat="JWT", description="A JWT that a reader's credential signs.")
BODY_BYTES_MAX = 65_536
"""A question has 4 KiB at most, escaped six times that."""
TOO_LARGE = f"the request has more than {BODY_BYTES_MAX} bytes"
PROBLEM_JSON = "application/problem+json"
_LOG = log.get_logger(__name__)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request is not valid; `field` says where."},
    401: {"model": Problem, "description": "No token, or none that is good: `WWW-Authenticate` is set."},
    403: {"model": Problem, "description": "The credential may not ask for this tenant, agent or principal."},
    413: {"model": Problem, "description": "The request is too large."},
    429: {"model": Problem, "description": "The credential is over its quota; `Retry-After` says when to ask again."},
    503: {"model": Problem, "description": "Broker or store does not answer. Nothing was handed over; ask again."},
}


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
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.watching = Watching(self.meters, self.now_ms)

    def caller(self, token: str | None) -> Credential:
        """Return who asks. Raises a problem where nobody does who may, or where he asks too often."""
        if token is None:
            raise RequestRefused(401, "unknown_key", "the request has no bearer token", field="authorization")
        try:
            credential = caller_of(token, self.keyring(), self.registry(), self.now_ms())
        except InputError as error:
            raise RequestRefused(401, error.code, error.reason, field="authorization") from None
        with self._lock:
            now_ms = self.now_ms()
            bucket = self._buckets.setdefault(credential.kid, Bucket(self.quota, now_ms))
            if not bucket.take(self.quota, now_ms):
                raise RequestRefused(429, "rate", f"the credential may ask {self.quota.per_s} questions a second")
        return credential

    def recall(self, asked: RecallRequest, caller: Credential, headers: Any) -> Any:
        """Answer; count how long it took, and tell of what it shows."""
        check(asked, caller, self.now_ms())
        began = perf_counter()
        with tracing.request(extract(headers), caller.kid):
            answer = self.recaller.ask(asked.asked())
        self.meters.observe(metrics.RECALL_SECONDS, perf_counter() - began)
        _LOG.info(
            "recalled", event_id=answer.event_id, tenant=asked.tenant, kid=caller.kid, entries=len(answer.entries)
        )
        self.watching.answered(asked.asked(), answer)
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

    def who(bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]) -> Credential:
        return serving.caller(None if bearer is None else bearer.credentials)

    @app.post(PATH, responses=_PROBLEMS, summary="Ask a tenant's memory")
    def recall(asked: RecallRequest, caller: Annotated[Credential, Depends(who)], request: Request) -> RecallAnswer:
        """Return the nearest verified entries once the recall's event was acknowledged.

        With `Accept: application/x-ndjson` each entry is a line, and the last line has what the answer says besides.
        """
        answer = serving.recall(asked, caller, request.headers)
        if request.headers.get("accept") == LINES:
            lines = (line + "\n" for line in _lines(answer))
            return StreamingResponse(lines, media_type=LINES)  # type: ignore[return-value]  # FastAPI passes it on
        return RecallAnswer.of(answer)

    @app.get("/livez", summary="Whether the process answers")
    async def livez() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/readyz", summary="Whether broker, store and keys answer")
    def readyz(response: Response) -> dict[str, Any]:
        missing = serving.not_ready()
        response.status_code = 503 if missing else 200
        return {"ok": not missing, "problems": missing}

    @app.get("/metrics", include_in_schema=False)
    def shown() -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return Response(generate_latest(serving.meters.collectors), media_type=CONTENT_TYPE_LATEST)

    _handle(app)
    app.add_middleware(Guarded, meters=serving.meters)
    return app


def _lines(answer: Any) -> Iterator[str]:
    for entry in answer.entries:
        yield Entry.of(entry).model_dump_json()
    yield rest_of(answer).model_dump_json()


def _handle(app: FastAPI) -> None:
    """Have every error end as a problem (RFC 9457)."""

    @app.exception_handler(MemsluiceError)
    async def failed(_request: Request, error: MemsluiceError) -> JSONResponse:
        told = problem_of(error)
        if told.status >= 500:
            _LOG.error("a recall failed", why=told.code, status=told.status)
        return answer_of(told)

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return answer_of(problem(400, "malformed", first["msg"], field=where))

    @app.exception_handler(AnyHTTPException)
    async def other(_request: Request, error: AnyHTTPException) -> JSONResponse:
        return answer_of(problem(error.status_code, "malformed", str(error.detail)))


def answer_of(told: Problem) -> JSONResponse:
    """Return a problem as a response."""
    headers = {}
    if told.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if told.status in (429, 503):
        headers["Retry-After"] = str(RETRY_S)
    return JSONResponse(told.model_dump(), told.status, headers, media_type=PROBLEM_JSON)


class Guarded:
    """Answers 413 to what has a larger body than BODY_BYTES_MAX, before it is read, and 500 where nothing else would;
    counts answers by status."""

    def __init__(self, app: Any, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what is small enough; of what says nothing of its size, count what comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        come, started = 0, False

        async def counting() -> Any:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > BODY_BYTES_MAX:
                raise HTTPException(413, TOO_LARGE)
            return message

        async def counted(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if scope["path"] == PATH:
                    self._meters.add(metrics.RECALLS, str(message["status"]))
            await send(message)

        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if not stated.isdigit() or int(stated) > BODY_BYTES_MAX:
            await answer_of(problem(413, "limit_exceeded", TOO_LARGE))(scope, receive, counted)
            return
        try:
            await self._app(scope, counting, counted)
        except Exception as error:  # a defect: its words may quote what was asked, so its kind alone is told
            _LOG.error("a recall failed by a defect", kind=type(error).__name__)
            if not started:
                await answer_of(problem_of(MemsluiceError()))(scope, receive, counted)
