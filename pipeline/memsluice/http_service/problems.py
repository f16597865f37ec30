"""Which HTTP status an error is, and what is said of it: nothing of a question, an entry or a key."""

from typing import Any

from fastapi.responses import JSONResponse

from memsluice.errors import (
    BrokerUnavailable,
    CrossTenant,
    InputError,
    MemsluiceError,
    NotPermitted,
    ProducerError,
    RequestRefused,
    ScopeTooLarge,
    StoreError,
)
from memsluice.recall.wire import TOO_MANY, Problem

RETRY_S = 1
PROBLEM_JSON = "application/problem+json"
_TITLES = {
    400: "The request is not valid",
    401: "Who asks is not known",
    403: "The credential may not ask that",
    404: "There is no such resource",
    405: "The resource is not asked that way",
    409: "The request contradicts another one",
    413: "The request is too large",
    422: "The request contradicts an earlier one",
    429: "The credential is over its quota",
    500: "The service could not answer",
    503: "Broker or store did not answer",
}


def problem(status: int, code: str, detail: str, *, field: str = "") -> Problem:
    """Return what a request that fails is answered."""
    title = _TITLES.get(status, "The request failed")
    return Problem(title=title, status=status, detail=detail, code=code, field=field)


def problem_of(error: MemsluiceError, unacknowledged: str) -> Problem:
    """Return what is said of an error of ours; ``unacknowledged`` what it means that the broker took no event."""
    if isinstance(error, RequestRefused):
        return problem(error.status, error.code, error.detail, field=error.field)
    if isinstance(error, NotPermitted | CrossTenant):
        return problem(403, error.code, error.reason, field=error.field)
    if isinstance(error, InputError):
        return problem(400, error.code, error.reason, field=error.field)
    if isinstance(error, BrokerUnavailable | ProducerError):
        return problem(503, "broker_unavailable", unacknowledged)
    if isinstance(error, ScopeTooLarge):  # no store is at fault, and asking again brings the same
        return problem(400, TOO_MANY, str(error), field="ids")
    if isinstance(error, StoreError):
        return problem(503, "store_unavailable", "the store, or its log, did not answer")
    return problem(500, "internal", "the operator's log says why")


def answer_of(told: Problem) -> JSONResponse:
    """Return a problem as a response."""
    headers = {}
    if told.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if told.status in (429, 503):
        headers["Retry-After"] = str(RETRY_S)
    return JSONResponse(told.model_dump(), told.status, headers, media_type=PROBLEM_JSON)


def described(**by_status: str) -> dict[int | str, dict[str, Any]]:
    """Return the problems of an operation as its OpenAPI document has them: what each status (``_400=``) means."""
    return {int(name[1:]): {"model": Problem, "description": text} for name, text in by_status.items()}
