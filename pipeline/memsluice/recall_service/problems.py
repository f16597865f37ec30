"""Which HTTP status an error is, and what is said of it: nothing of a question, an entry or a key."""

from memsluice.errors import (
    BrokerUnavailable,
    CrossTenant,
    InputError,
    MemsluiceError,
    NotDelivered,
    NotPermitted,
    RequestRefused,
    StoreError,
)
from memsluice.recall.wire import Problem

RETRY_S = 1
_TITLES = {
    400: "The request is not valid",
    401: "Who asks is not known",
    403: "The credential may not ask that",
    404: "There is no such resource",
    405: "The resource is not asked that way",
    413: "The request is too large",
    429: "The credential is over its quota",
    500: "The service could not answer",
    503: "Broker or store did not answer",
}


def problem(status: int, code: str, detail: str, *, field: str = "") -> Problem:
    """Return what a request that fails is answered."""
    title = _TITLES.get(status, "The request failed")
    return Problem(title=title, status=status, detail=detail, code=code, field=field)


def problem_of(error: MemsluiceError) -> Problem:
    """Return what is said of an error of ours."""
    if isinstance(error, RequestRefused):
        return problem(error.status, error.code, error.detail, field=error.field)
    if isinstance(error, NotPermitted | CrossTenant):
        return problem(403, error.code, error.reason, field=error.field)
    if isinstance(error, InputError):
        return problem(400, error.code, error.reason, field=error.field)
    if isinstance(error, BrokerUnavailable | NotDelivered):
        return problem(503, "broker_unavailable", "the broker has not acknowledged the recall; nothing is shown")
    if isinstance(error, StoreError):
        return problem(503, "store_unavailable", "the store, or its log, did not answer")
    return problem(500, "internal", "the operator's log says why")
