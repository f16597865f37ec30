"""What a page says where something failed: what happened, and what to do; as a page, or as JSON where scripts ask."""

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memsluice.console.rendering import page
from memsluice.errors import (
    AuthenticityError,
    BrokerError,
    ConfigError,
    InputError,
    InvalidArgument,
    MemsluiceError,
    NotFound,
    NotPermitted,
    PolicyError,
    ProducerError,
    RequestRefused,
    SealError,
    StateError,
    StoreError,
)
from memsluice.escaping import visible
from memsluice.log import get_logger, said

_LOG = get_logger(__name__)
_KINDS: tuple[tuple[type[MemsluiceError], int, str], ...] = (
    (NotFound, 404, "There is no such thing here"),
    (InvalidArgument, 400, "That cannot be asked"),
    (NotPermitted, 403, "You may not see or do this"),
    (AuthenticityError, 403, "That is not authentic"),
    (InputError, 400, "That cannot be read"),
    (BrokerError, 503, "The broker does not answer"),
    (ProducerError, 503, "The broker did not take it"),
    (StoreError, 503, "The store does not answer"),
    (SealError, 502, "A record is not authentic"),
    (StateError, 503, "The index is made anew"),
    (PolicyError, 400, "That is no valid policy"),
    (ConfigError, 503, "The console lacks something"),
)
_STATUSES = {404: "There is no such page", 405: "The page is not asked that way"}
DETAIL_CHARS_MAX = 600


def problem(error: MemsluiceError) -> tuple[int, str, str]:
    """Return the status, the title and the detail of an error of ours."""
    detail = error.reason if isinstance(error, InputError) else str(error)
    field = error.field if isinstance(error, InputError) and error.field else ""
    text = visible(f"{field}: {detail}" if field else detail, DETAIL_CHARS_MAX)
    for kind, status, title in _KINDS:
        if isinstance(error, kind):
            return status, title, text
    return 500, "The console failed", text


def told(scope: Scope, status: int, title: str, detail: str) -> Response:
    """Return a problem as whoever asked reads it."""
    request = Request(scope)
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    if "text/html" not in request.headers.get("accept", ""):
        answer: Response = JSONResponse({"title": title, "status": status, "detail": detail}, status)
    else:
        answer = page(request, "problem.html", status, title=title, detail=detail)
    answer.headers.update(headers)
    return answer


class Failing:
    """The middleware that turns what a page raised into a problem. What is no error of ours is logged, by its kind and
    place alone, under a number that the page names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever it raises."""
        began = False

        async def noting(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noting)
            return
        except Exception as error:
            if began:
                raise
            answer = told(scope, *_answer(error))
        await answer(scope, receive, send)


def _answer(error: Exception) -> tuple[int, str, str]:
    if isinstance(error, RequestRefused):
        return error.status, "Not now", error.detail
    if isinstance(error, MemsluiceError):
        return problem(error)
    if isinstance(error, HTTPException):
        title = _STATUSES.get(error.status_code, "That was not understood")
        return error.status_code, title, "look at the address, or begin at the menu"
    number = secrets.token_hex(4)
    _LOG.error("a page failed", number=number, problem=said(error))
    return 500, "The page failed", f"the server's log says more under {number}; nothing was decided by it"


def raising(_request: Request, error: Exception) -> Any:
    """Let an error go on to :class:`Failing`, which alone answers."""
    raise error
