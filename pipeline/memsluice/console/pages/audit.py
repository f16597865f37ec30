"""The audit: a search over verdicts, and everything about one event, as ``memsluice trace`` tells it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console import fields
from memsluice.console.asking import serving, visitor
from memsluice.console.menu import Item
from memsluice.console.rendering import page
from memsluice.console.visitors import Sight, Visitor
from memsluice.envelope.verdict import Decision
from memsluice.errors import NotPermitted
from memsluice.escaping import visible
from memsluice.events.names import EventType
from memsluice.gate.reasons import words
from memsluice.operations.trace import collect, telling
from memsluice.operations.trace.opening import not_found
from memsluice.operations.trace.search import AuditPlace, AuditQuery, search
from memsluice.operations.verdict_words import NOTES, POLICY_TEXTS
from memsluice.readers.base import TopicReader
from memsluice.readers.tenants import TenantsTopic
from memsluice.topics.names import PARTITIONS

FIELDS = ("event", "entry", "tenant", "reason", "decision", "type", "who", "since", "until")


def find(request: Request) -> Response:
    """Show the newest verdicts that the address asks for, a page at a time."""
    who, told, given = visitor(request), serving(request), fields.asked(request)
    query = query_of(given, who, told.clock())
    before = fields.text(given, "before")
    with told.heavy(), told.desk() as desk:
        found = search(
            desk.audit, desk.keys.keyring(), query, who.tenants, PARTITIONS,
            before=None if before is None else AuditPlace.parse(before),
        )  # fmt: skip
        where = desk.audit.name
    older = None if found.older is None else fields.address("/audit", given, FIELDS, before=found.older)
    return page(
        request, "audit.html", given=fields.shown(given, FIELDS), found=found, older=older, where=where,
        decisions=list(Decision), types=[(kind.value, telling.WHAT[kind]) for kind in EventType],
        tenants=known_tenants(who),
    )  # fmt: skip


def query_of(given: Mapping[str, str], who: Visitor, now_ms: int) -> AuditQuery:
    """Return what the fields ask for. Raises InvalidArgument, and NotPermitted for a tenant that is not the visitor's.

    It is refused, and not merely not found: whoever may not see a tenant learns nothing of it, and knows why.
    """
    tenant = fields.text(given, "tenant")
    check_tenant(who, tenant)
    return AuditQuery(
        event=fields.text(given, "event"),
        entry=fields.text(given, "entry"),
        tenant=tenant,
        reason=fields.text(given, "reason"),
        decision=fields.one_of(given, "decision", Decision),
        type=fields.one_of(given, "type", EventType),
        who=fields.text(given, "who"),
        since_ms=fields.time_ms(given, "since", now_ms),
        until_ms=fields.time_ms(given, "until", now_ms),
    )


def trace(request: Request) -> Response:
    """Show everything about one event."""
    who, told, given = visitor(request), serving(request), fields.asked(request)
    event_id, tenant = fields.text(given, "id") or "", fields.text(given, "tenant")
    check_tenant(who, tenant)
    if tenant is None and who.tenants is not None and len(who.tenants) == 1:
        (tenant,) = who.tenants
    now_ms = told.clock()
    with told.heavy(), told.desk() as desk:
        audit = seen_by(who, desk.audit)
        found = collect.trace(audit, desk.keys.keyring(), event_id, tenant, PARTITIONS)
    lives = [
        (life, list(telling.rows(life, now_ms, words, found.ancestors, found.same_text, hidden_from(who))))
        for life in found.lives
    ]
    missing = "" if lives else not_found(found, event_id, tenant, audit.name)
    return page(
        request, "trace.html", 200 if lives else 404, event_id=event_id, lives=lives, found=found, missing=missing
    )


def hidden_from(who: Visitor) -> frozenset[str]:
    """Return the fields of findings that a visitor is not told: notes without sight of contents, policies' texts
    without sight of operations."""
    return (frozenset() if who.sees_content else NOTES) | (frozenset() if who.sees(Sight.OPERATIONS) else POLICY_TEXTS)


def seen_by(who: Visitor, audit: TopicReader) -> TopicReader:
    """Return the audit as a visitor may see it: of his tenants alone."""
    return audit if who.tenants is None else TenantsTopic(audit, who.tenants)


def check_tenant(who: Visitor, tenant: str | None) -> None:
    """Raise NotPermitted where a tenant is named that is not the visitor's."""
    if tenant is not None and not who.sees_tenant(tenant):
        raise NotPermitted(f"tenant: you see nothing of {visible(tenant, fields.SHOWN_CHARS)}")


def known_tenants(who: Visitor) -> list[str]:
    """Return the tenants that a form offers; none where he sees all, and types one."""
    return [] if who.tenants is None else sorted(who.tenants)


MENU = (Item("Audit", "/audit", 60),)
ROUTES = (
    Route("/audit", find, methods=["GET"]),
    Route("/audit/event", trace, methods=["GET"]),
)
