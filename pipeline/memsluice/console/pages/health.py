"""Partitions and health: what each stage is behind, which partitions stand still and why, and doctor's checks."""

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from threading import Lock

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from memsluice.console.asking import body, ordered, serving, visitor
from memsluice.console.lending import lent
from memsluice.console.menu import Item
from memsluice.console.rendering import page
from memsluice.console.serving import Serving
from memsluice.console.visitors import Sight, Visitor
from memsluice.deployment.home import Home
from memsluice.envelope.partition_orders import ACKNOWLEDGE, RESUME, Action, PartitionState, order_from_bytes
from memsluice.errors import InvalidArgument, NotPermitted
from memsluice.log import get_logger
from memsluice.operations.doctor import checks
from memsluice.operations.doctor.everything import checks_of
from memsluice.operations.monitor import health
from memsluice.operations.monitor.health import HealthDesk
from memsluice.operations.partitions.words import acknowledged
from memsluice.runtimes.kafka.parking import way_on

WAIT_S = 10.0
"""How long an order waits for what a worker makes of it."""
OF_ALL = "a partition has events of many tenants: how it gets on is shown to operators of all tenants"
_LOG = get_logger(__name__)


@dataclass
class Checked:
    """Doctor's checks as they were run last, and when (Unix ms); one run at a time."""

    found: list[checks.CheckResult] = field(default_factory=list)
    at_ms: int | None = None
    running: Lock = field(default_factory=Lock)


def show(request: Request) -> Response:
    """Show stages, partitions, acknowledged losses, and what the checks found last."""
    _visitor(request)
    told = serving(request)
    with _desk(request) as desk:
        lags, where = desk.lags(), desk.name
        parked = [] if desk.partitions is None else desk.partitions.parked_now()
        losses = [] if desk.partitions is None else desk.partitions.accepted()
        has_workers = desk.partitions is not None
    return page(
        request, "health.html", lags=lags, where=where, has_workers=has_workers,
        parked=[(one, way_on(one), _orders(one)) for one in parked],
        losses=[acknowledged(one) for one in losses], checked=_checked(told),
    )  # fmt: skip


def _orders(state: PartitionState) -> dict[str, str]:
    """Return what an order about a failure says but for why and when, by what it does, as JSON."""
    actions: list[Action] = [RESUME] if state.missing is None else [RESUME, ACKNOWLEDGE]
    return {
        action: orjson.dumps({
            "action": action, "stage": state.stage, "partition": state.partition, "failure": state.failure,
            "missing": None if action == RESUME or state.missing is None else asdict(state.missing),
        }).decode()
        for action in actions
    }  # fmt: skip


def order(request: Request) -> Response:
    """Send a signed order about a parked partition, and answer with what the worker made of it."""
    given, kid = ordered(request, _visitor(request), order_from_bytes)
    with _desk(request) as desk:
        if desk.partitions is None:
            raise InvalidArgument("an embedded log has no workers, so no partition of it is parked")
        desk.partitions.forward(body(request))
        now = desk.partitions.answer(given, WAIT_S)
    _LOG.info("an order about a partition was sent", stage=given.stage, partition=given.partition, kid=kid)
    parked = None if now is None else now.parked
    return JSONResponse({"stage": given.stage, "partition": given.partition, "parked": parked})


def check(request: Request) -> Response:
    """Run doctor's checks, and go back to the page, which shows what they found."""
    _visitor(request)
    told = serving(request)
    checked = _checked(told)
    if not checked.running.acquire(blocking=False):
        raise InvalidArgument("the checks are running already: load the page again in a minute")
    try:
        checked.found = list(checks.run(checks_of(Home.at(told.named), told.named)))
        checked.at_ms = told.clock()
    finally:
        checked.running.release()
    return RedirectResponse("/health#checks", 303)


def _checked(told: Serving) -> Checked:
    found: Checked = told.kept.setdefault("doctor", Checked())
    return found


def _visitor(request: Request) -> Visitor:
    who = visitor(request, Sight.OPERATIONS)
    if who.tenants is not None:
        raise NotPermitted(OF_ALL)
    return who


def _desk(request: Request) -> AbstractContextManager[HealthDesk]:
    return lent(request, "health", health.on_kafka, health.embedded)


MENU = (Item("Health", "/health", 70, Sight.OPERATIONS),)
ROUTES = (
    Route("/health", show, methods=["GET"]),
    Route("/health/checks", check, methods=["POST"]),
    Route("/partitions/orders", order, methods=["POST"]),
)
