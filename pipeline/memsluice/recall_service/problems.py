"""Which HTTP status an error is, and what is said of it: nothing of a question, an entry or a key."""

from memsluice.errors import (
    BrokerUnavailable,
    CrossTenant,
    InputError,
    MemsluiceError,
    NotDelivered,
    NotPermitted,
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


class Refused(MemsluiceError):
    """A request that ends with a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)


def refused(status: int, code: str, detail: str, *, field: str = "") -> Refused:
    """Return the error that ends a request with a status."""
    title = _TITLES.get(status, "The request failed")
    return Refused(Problem(title=title, status=status, detail=detail, code=code, field=field))


def problem_of(error: MemsluiceError) -> Problem:
    """Return what is said of an error of ours."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, NotPermitted | CrossTenant):
        return refused(403, error.code, error.reason, field=error.field).problem
    if isinstance(error, InputError):
        return refused(400, error.code, error.reason, field=error.field).problem
    if isinstance(error, BrokerUnavailable | NotDelivered):
        return refused(
            503, "broker_unavailable", "the broker has not acknowledged the recall; nothing is shown"
        ).problem
    if isinstance(error, StoreError):
        return refused(503, "store_unavailable", "the store, or its log, did not answer").problem
    return refused(500, "internal", "the operator's log says why").problem
