"""Where a held write comes from, and what was made of it: its session, its lineage, its blast radius, from the audit.

It reads the tenant's whole partition of the audit, so that it stands on a page of its own, of which few load at once.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.lineage import drawn
from memsluice.console.lineage import told as lines_of
from memsluice.console.pages.entry import row_of
from memsluice.console.rendering import page
from memsluice.operations.provenance.ancestry import index
from memsluice.operations.provenance.sources import ENTRY, Source
from memsluice.operations.provenance.spread import radius
from memsluice.operations.provenance.timeline import timeline
from memsluice.topics.names import PARTITIONS

REACHED_MAX = 100
DEPTH = 6


def show(request: Request) -> Response:
    """Show the session of a held write, its ancestors, and everything that was made from it."""
    told = serving(request)
    visitor(request)
    row = row_of(request)
    keyring, tenant, event_id = told.keys.keyring(), row.tenant, row.event_id
    with told.heavy(), told.desk() as desk:
        session = row.seen.entry.held.session
        done = timeline(desk.audit, keyring, tenant, session, event_id, PARTITIONS)
        known = index(desk.audit, keyring, tenant, PARTITIONS, event_id)
        spread = radius(desk.audit, keyring, Source(ENTRY, event_id), tenant, PARTITIONS)
    tree = known.tree(event_id, DEPTH)
    here = spread.spreads.get(tenant)
    reached = [] if here is None else sorted(here.reached.values(), key=lambda one: (one.depth, one.entry.offset))
    return page(
        request, "story.html", row=row, timeline=done, tree=tree, graph=drawn(tree), whole=known.whole(tree),
        tree_lines=list(lines_of(tree, told.clock())), kind_of=kind_of, left=len(reached) - REACHED_MAX,
        reached=[one for one in reached if one.entry.event_id != event_id][:REACHED_MAX],
        sessions=[] if here is None else list(here.sessions.items())[:REACHED_MAX],
        all_followed=spread.whole, unverified=done.unverified,
    )  # fmt: skip


def kind_of(event_type: str) -> str:
    """Return the last word of an event's type, such as ``write``."""
    return event_type.removesuffix(".v1").rpartition(".")[2]


ROUTES = (Route("/held/story/{tenant}/{event_id:path}", show, methods=["GET"]),)
