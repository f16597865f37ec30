"""One held write: its content with what triggered marked, the reasons beside it, and what became of it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.pages.held import asked_of, contents
from memsluice.console.rendering import page
from memsluice.console.scales import scales
from memsluice.errors import InvalidArgument, NotFound
from memsluice.gate.reasons import words
from memsluice.operations.held import view
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import HeldRow, is_offset

ABOVE = ("entry", "state", "held for", "refused for")
"""Lines of the review view that the page says above them."""


def show(request: Request) -> Response:
    """Show one entry, whole for who may see contents."""
    who, told = visitor(request), serving(request)
    row = row_of(request)
    opened, unread = contents(request, (row,))
    seen = opened.get(row.seen.entry.name)
    if who.sees_content and seen is None and not unread:
        unread = "its topic keeps it no longer"
    q, next_one = _next(request, row)
    return page(
        request, "entry.html", row=row, seen=seen, unread=unread, q=q, next_one=next_one,
        group=told.index.group(row.group, tenants=who.tenants),
        lines=[] if seen is None else told_of(request, seen), scales=[] if seen is None else scales(seen),
        triggers=[] if seen is None or seen.entry.write is None else view.triggers(seen.entry.write.content),
        fed_ms=told.index.fed_ms,
    )  # fmt: skip


def _next(request: Request, row: HeldRow) -> tuple[str | None, HeldRow | None]:
    """Return the filter that the page was opened from (None: from none), and the next entry of it that waits."""
    asked, _ = asked_of(request)
    if "q" not in request.query_params or asked is None:
        return None, None
    who, told = visitor(request), serving(request)
    waiting = asked.narrowed(states=HeldQuery().states)
    found = told.index.page(waiting, tenants=who.tenants, after=row.cursor, limit=1).rows
    return asked.text(), found[0] if found else None


def told_of(request: Request, seen: HeldReview) -> list[view.Line]:
    """Return the lines of the review view but for the content, which stands beside them."""
    every = view.lines(seen, serving(request).clock(), words)
    end = next((number for number, one in enumerate(every) if one.label == "content"), len(every))
    return [one for one in every[:end] if one.label not in ABOVE]


def row_of(request: Request) -> HeldRow:
    """Return the entry that an address names. Raises NotFound, and where several have the id says which there are."""
    who, told = visitor(request), serving(request)
    tenant, event_id = request.path_params["tenant"], request.path_params["event_id"]
    text = request.query_params.get("offset", "")
    if text and not is_offset(text):
        raise InvalidArgument("offset: it is no intake offset")
    found = told.index.entry(tenant, event_id, int(text) if text else None, tenants=who.tenants)
    if found is None:
        raise NotFound("there is no such held write among those that you may see, or it has lapsed")
    return found


ROUTES = (Route("/held/entries/{tenant}/{event_id:path}", show, methods=["GET"]),)
