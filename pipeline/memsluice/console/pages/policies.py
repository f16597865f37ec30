"""Policies: what is in force, what differs, what a candidate would have decided, and activation by two people."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console import fields
from memsluice.console import policy_sources as sources
from memsluice.console.asking import form, serving, visitor
from memsluice.console.charts import roc
from memsluice.console.lending import lent
from memsluice.console.menu import Item
from memsluice.console.pages.audit import known_tenants
from memsluice.console.rendering import page
from memsluice.console.visitors import Sight
from memsluice.errors import InvalidArgument, PolicyError
from memsluice.events.models import Action, Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.commands.activation import APPROVALS
from memsluice.gate.policy.lint import lint
from memsluice.operations.commands import desk as desks
from memsluice.operations.policies.commands import activation, ending
from memsluice.operations.policies.effect import Effect, effect_of
from memsluice.operations.policies.loosening import Loosening, differences, loosened, value
from memsluice.operations.policies.standing import CUT, of_home
from memsluice.operations.rescreen.curve import area, interval, points
from memsluice.operations.rescreen.evaluation import BIASED, FEW, Evaluation
from memsluice.operations.rescreen.opening import evaluated
from memsluice.operations.rescreen.rerun import Wanted

FIELDS = ("before", "after", "tenant")
EVENTS, EVENTS_MAX = 5_000, 20_000
"""Records of each partition that an evaluation decides again; the command takes more."""
UNSIGNED = "unsigned"
"""The id of a command that is shown and not signed: whoever signs it gives it an id, and its times, of his own."""
_EVALUATING = Lock()


def show(request: Request) -> Response:
    """Show what is in force, and the forms that compare."""
    return _shown(request, {}, "")


def _shown(request: Request, given: Mapping[str, str], problem: str) -> Response:
    """Return the page; with the text that somebody sent, where something is wrong with it."""
    who, told = visitor(request, Sight.OPERATIONS), serving(request)
    known = sources.activations(told)
    with told.desk() as desk:
        known.learn(desk.audit, desk.keys.keyring())
    return page(
        request, "policies.html", 400 if problem else 200, text=given.get("policy", ""), problem=problem,
        tenant=given.get("tenant", ""), in_force=known.in_force(who.tenants), known=known, cut=CUT,
        file=of_home(told.named), choices=sources.choices(told, who), tenants=known_tenants(who),
        may_end=who.may(Action.ACTIVATE), all_tenants=who.tenants is None,
    )  # fmt: skip


def compare(request: Request) -> Response:
    """Show how the policy that ``after`` names differs from that of ``before``; of a text what activating it needs."""
    who, told = visitor(request, Sight.OPERATIONS), serving(request)
    given: Mapping[str, str] = form(request) if request.method == "POST" else fields.asked(request)
    tenant = sources.scope(who, given)
    if problem := _problem(given):
        return _shown(request, given, problem)
    with told.desk() as desk:
        sources.activations(told).learn(desk.audit, desk.keys.keyring())
        before = sources.source(told, who, desk.audit, given, "before", tenant)
        after = sources.source(told, who, desk.audit, given, "after", tenant)
        command, refused = _activation(after.text, tenant, _now(told.clock()))
        effect = None
        if command is not None:
            effect = effect_of(desk.audit, desk.keys.keyring(), command, of_home(told.named))
    changes = differences(before.policies, after.policies, None if tenant == EVERYBODY else tenant)
    return page(
        request, "policy_compare.html", tenant=tenant, before=before, after=after, changes=changes,
        looser=_words(loosened(changes, after.policies)), looser_of=looser_of, value=value,
        remarks=_remarks(after, tenant), command=command, refused=refused, effect=effect, approvals=APPROVALS,
        may_activate=who.may(Action.ACTIVATE), given=fields.shown(given, (*FIELDS, "policy")),
    )  # fmt: skip


def _problem(given: Mapping[str, str]) -> str:
    """Return what is wrong with a text that was sent; "" where nothing is, or none was."""
    try:
        if given.get("after") == sources.TEXT:
            sources.of_text(given)
    except PolicyError as error:
        return str(error)
    return ""


def _words(found: Iterable[Loosening]) -> dict[tuple[str, str], str]:
    """Return what lets more happen, in words, by whom it is about and the field."""
    return {(one.change.who, one.change.field): one.words() for one in found}


def looser_of(effect: Effect) -> dict[tuple[str, str], str]:
    """Return what gets looser by an effect, in words, by whom and what it is about."""
    return _words(effect.looser)


def _now(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms / 1_000, UTC)


def _activation(text: str, tenant: str, now: datetime) -> tuple[Command | None, str]:
    """Return the command that would put a text in force, or why there is none."""
    try:
        return activation(text, tenant, UNSIGNED, now), ""
    except PolicyError as error:
        return None, str(error)


def _remarks(after: sources.Source, tenant: str) -> list[Any]:
    """Return what is valid and risky, without what is said of other tenants' overrides."""
    return [one for one in lint(after.policies) if tenant == EVERYBODY or not one.where.startswith("tenants.")]


def end(request: Request) -> Response:
    """Show what ending a tenant's own policy changes, and what one would sign for it."""
    who, told = visitor(request, Sight.OPERATIONS), serving(request)
    tenant = sources.scope(who, fields.asked(request))
    with told.desk() as desk:
        command = ending(desk.audit, desk.keys.keyring(), tenant, UNSIGNED, _now(told.clock()))
        effect: Effect = effect_of(desk.audit, desk.keys.keyring(), command, of_home(told.named))
    return page(
        request, "policy_end.html", tenant=tenant, command=command, effect=effect, value=value, approvals=APPROVALS,
        may_activate=who.may(Action.ACTIVATE), looser_of=looser_of,
    )  # fmt: skip


def evaluate(request: Request) -> Response:
    """Decide history again under a candidate, and show its scores of what reviewers decided. Nothing is published."""
    who, told, given = visitor(request, Sight.OPERATIONS), serving(request), form(request)
    tenant = sources.scope(who, given)
    if problem := _problem(given):
        return _shown(request, given, problem)
    events_max = fields.number(given, "events", 1, EVENTS_MAX, EVENTS)
    since_ms = fields.time_ms(given, "since", told.clock())
    want = Wanted(None if tenant == EVERYBODY else tenant, since_ms, None, events_max)
    if not _EVALUATING.acquire(blocking=False):
        raise InvalidArgument("another evaluation is running: try again when it is done")
    try:
        with lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
            sources.activations(told).learn(desk.audit, desk.keys.keyring())
            candidate = sources.source(told, who, desk.audit, given, "after", tenant)
            found, parts, events = evaluated(desk, candidate.policies, want)
    finally:
        _EVALUATING.release()
    return page(
        request, "policy_evaluate.html", tenant=tenant, candidate=candidate, found=found, parts=parts, events=events,
        events_max=events_max, biased=BIASED, few=FEW, curve=_curve(found),
    )  # fmt: skip


def _curve(found: Evaluation) -> dict[str, Any] | None:
    """Return the receiver operating characteristic; None where the labels give none."""
    good, bad = found.values()
    if not good or not bad or len(found.scales) > 1:
        return None
    estimate = area(good, bad)
    low, high = interval(estimate, len(good), len(bad))
    said = f"AUROC {estimate:.3f}, 95 % interval {low:.3f} to {high:.3f}, {len(good)} released and {len(bad)} rejected"
    return {"said": said, "few": min(len(good), len(bad)) < FEW, "chart": roc(points(good, bad), said)}


MENU = (Item("Policies", "/policies", 40, Sight.OPERATIONS),)
ROUTES = (
    Route("/policies", show, methods=["GET"]),
    Route("/policies/compare", compare, methods=["GET", "POST"]),
    Route("/policies/end", end, methods=["GET"]),
    Route("/policies/evaluate", evaluate, methods=["POST"]),
)
