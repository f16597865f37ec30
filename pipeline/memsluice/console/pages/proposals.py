"""Commands of two people: proposed in one browser, and signed in another, which shows the first one's exact bytes."""

from binascii import Error as NoBase64
from binascii import a2b_base64
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console import orders, proposals, stepup
from memsluice.console.asking import serving, session, visitor
from memsluice.console.lending import lent
from memsluice.console.menu import Item
from memsluice.console.pages.commands import WAIT_S, read_json
from memsluice.console.pages.policies import looser_of
from memsluice.console.rendering import page, within
from memsluice.console.security import origin_of
from memsluice.console.visitors import Sight
from memsluice.errors import ConfigError, CrossTenant, InvalidArgument, MalformedEvent, MemsluiceError, NotPermitted
from memsluice.events.models import Action
from memsluice.gate.commands.review import SHOWN_PARAMETER
from memsluice.operations.commands import desk as desks
from memsluice.operations.policies.effect import Effect, effect_of
from memsluice.operations.policies.loosening import value
from memsluice.operations.policies.standing import of_home
from memsluice.operations.provenance.case import Case, find, of_command
from memsluice.recall.show import moment


def listed(request: Request) -> Response:
    """Show what waits for a second signature."""
    who, told = visitor(request, Sight.CONTENT), serving(request)
    return page(request, "proposals.html", found=list(proposals.every(told, who)), mine=_mine(request))


def show(request: Request) -> Response:
    """Show one proposal: its bytes, which the browser reads, and beside them what the log says of what it is about."""
    who, told = visitor(request, Sight.CONTENT), serving(request)
    proposal = proposals.find(told, who, request.path_params["name"])
    command = proposal.signed.command
    case: Case | None = None
    effect: Effect | None = None
    changes: dict[str, tuple[str, str]] = {}
    problem = ""
    try:
        with told.heavy(), lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
            if command.action is Action.ACTIVATE:
                effect = effect_of(desk.audit, desk.keys.keyring(), command, of_home(told.named))
            else:
                case = of_command(desk, command)
                changes = _changes(case, command.action)
    except MemsluiceError as error:
        problem = str(error)
    return page(
        request, "proposal.html", proposal=proposal, command=command, case=case, changes=changes, problem=problem,
        envelope=orjson.dumps(proposal.signed.envelope).decode(), effect=effect, looser_of=looser_of, value=value,
        mine=_mine(request), path=_path(proposal),
    )  # fmt: skip


def draft(request: Request) -> Response:
    """Show what a reviewer would propose about an entry, with its content, before he signs it."""
    who, told = visitor(request, Sight.CONTENT), serving(request)
    asked = request.query_params
    tenant, entry, action = asked.get("tenant", ""), asked.get("entry", ""), asked.get("action", "declassify")
    if action not in {one.value for one in Action} or not who.may(Action(action)):
        raise NotPermitted(f"a {who.role.value} does not propose this", field="action")
    if orders.approvals(Action(action)) < 2 or Action(action) is Action.ACTIVATE:
        raise InvalidArgument("action: only what takes two people is proposed here")
    if not who.sees_tenant(tenant):
        raise CrossTenant("you may not decide for this tenant", field="tenant")
    with told.heavy(), lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
        case = find(desk, entry, tenant)
    if not case.digest:
        raise ConfigError("the entry has no digest that a command could be bound to")
    return page(
        request, "proposal_draft.html", case=case, changes=_changes(case, Action(action)), action=action,
        shown=SHOWN_PARAMETER, clock=told.clock(),
    )  # fmt: skip


def propose(request: Request) -> Response:
    """Take ``{envelope, step_up}`` with one signature, and keep it until another person signs it."""
    told, (signed, _) = serving(request), _signed(request, 1)
    proposal = proposals.add(told, signed)
    return JSONResponse({"path": _path(proposal), "told": "It is proposed: another person's signature makes it count."})


def approve(request: Request) -> Response:
    """Take ``{envelope, step_up}``: the proposed bytes with the signature that is wanting; publish them."""
    who, told = visitor(request, Sight.CONTENT), serving(request)
    proposal = proposals.find(told, who, request.path_params["name"])
    signed, _ = _signed(request, proposal.wanted)
    proposals.same(proposal, signed)
    with lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
        published = orders.publish(told, desk, [signed])
        proposals.remove(told, proposal)
        desk.settle()
        return JSONResponse({"items": orders.answers(desk, published, WAIT_S)})


def withdraw(request: Request) -> Response:
    """Take ``{kid, signature}``, and forget the proposal."""
    who, told, data = visitor(request, Sight.CONTENT), serving(request), read_json(request)
    proposal = proposals.find(told, who, request.path_params["name"])
    try:
        kid, signature = str(data["kid"]), a2b_base64(data["signature"], strict_mode=True)
    except (NoBase64, KeyError, TypeError, ValueError):
        raise MalformedEvent("needs kid and signature, in base64", field="body") from None
    proposals.withdraw(told, who, proposal, origin_of(told, request.scope), kid, signature)
    return JSONResponse({"withdrawn": True})


def _signed(request: Request, signatures: int) -> Any:
    told, data = serving(request), read_json(request)
    envelope = data.get("envelope") if isinstance(data, dict) else None
    where = origin_of(told, request.scope)
    stepup.check(told, session(request), where, [envelope], data.get("step_up") if isinstance(data, dict) else None)
    return orders.checked(told, visitor(request, Sight.CONTENT), envelope, signatures=signatures), envelope


def _changes(case: Case, action: Action) -> dict[str, tuple[str, str]]:
    before, after = _ends(case.before()), _ends(case.after(action))
    return {name: (before[name], after[name]) for name in before}


def _ends(told: dict[str, str]) -> dict[str, str]:
    end = told["ends"]
    return {**told, "ends": moment(int(end)) if end.isdecimal() else end}


def _mine(request: Request) -> Any:
    who, registry = visitor(request), serving(request).keys.registry()
    return lambda proposal: any(who.owns(kid, registry) for kid in proposal.signed.kids)


def _path(proposal: proposals.Proposal) -> str:
    return within("proposals", proposal.name)


MENU = (Item("Proposals", "/proposals", 30, Sight.CONTENT),)
ROUTES = (
    Route("/proposals", listed, methods=["GET"]),
    Route("/proposals", propose, methods=["POST"]),
    Route("/proposals/new", draft, methods=["GET"]),
    Route("/proposals/{name}", show, methods=["GET"]),
    Route("/proposals/{name}", approve, methods=["POST"]),
    Route("/proposals/{name}/withdraw", withdraw, methods=["POST"]),
)
