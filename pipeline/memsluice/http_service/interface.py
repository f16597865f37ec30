"""An application's frame: every failure a problem (RFC 9457), no body too large, and the pages that tell of it."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect

from memsluice import log
from memsluice.errors import MemsluiceError
from memsluice.http_service.problems import answer_of, problem, problem_of
from memsluice.telemetry.meters import Meters

_LOG = log.get_logger(__name__)
_CODES = {404: "not_found", 405: "not_allowed", 413: "limit_exceeded"}
Answered = Callable[[str, int], None]
"""Is told the path and the status of every answer."""


def frame(app: FastAPI, meters: Meters, not_ready: Callable[[], list[str]], unacknowledged: str) -> None:
    """Add health, metrics, and what a failure is answered; ``unacknowledged`` as in :func:`.problems.problem_of`."""

    @app.get("/livez", summary="Whether the process answers")
    async def livez() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/readyz", summary="Whether all that it needs answers")
    def readyz(response: Response) -> dict[str, Any]:
        missing = not_ready()
        response.status_code = 503 if missing else 200
        return {"ok": not missing, "problems": missing}

    @app.get("/metrics", include_in_schema=False)
    def shown() -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return Response(generate_latest(meters.collectors), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(MemsluiceError)
    async def failed(_request: Request, error: MemsluiceError) -> JSONResponse:
        told = problem_of(error, unacknowledged)
        if told.status >= 500:
            _LOG.error("a request failed", why=told.code, status=told.status)
        return answer_of(told)

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return answer_of(problem(400, "malformed", first["msg"], field=where))

    @app.exception_handler(AnyHTTPException)
    async def other(_request: Request, error: AnyHTTPException) -> JSONResponse:
        code = _CODES.get(error.status_code, "malformed")
        return answer_of(problem(error.status_code, code, str(error.detail)))

    _describe_truly(app)


def _describe_truly(app: FastAPI) -> None:
    """Leave out of the OpenAPI document what FastAPI would answer to a malformed request: here that is a 400."""
    whole = app.openapi

    def described() -> dict[str, Any]:
        document = whole()
        for path in document["paths"].values():
            for operation in path.values():
                if "HTTPValidationError" in str(operation["responses"].get("422")):
                    del operation["responses"]["422"]
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        return document

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's own documentation has it


class Guarded:
    """Answers 413 to what has a larger body than ``body_bytes_max``, before it is read, and 500 where nothing else
    would; tells of every answer."""

    def __init__(self, app: Any, body_bytes_max: int, answered: Answered) -> None:
        self._app = app
        self._max = body_bytes_max
        self._answered = answered
        self._too_large = f"the request has more than {body_bytes_max} bytes"

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
            if come > self._max:
                raise HTTPException(413, self._too_large)
            return message

        async def counted(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._answered(scope["path"], message["status"])
            await send(message)

        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if not stated.isdigit() or int(stated) > self._max:
            await answer_of(problem(413, "limit_exceeded", self._too_large))(scope, receive, counted)
            return
        try:
            await self._app(scope, counting, counted)
        except ClientDisconnect:  # there is nobody to be answered
            return
        except Exception as error:  # a defect: its words may quote what was asked, so its kind alone is told
            _LOG.error("a request failed by a defect", kind=type(error).__name__)
            if not started:
                await answer_of(problem_of(MemsluiceError(), ""))(scope, receive, counted)
