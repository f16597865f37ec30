"""Where the desk goes on: the next group of what a filter asks for that has not been looked at."""

from urllib.parse import quote as quoted

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.rendering import within
from memsluice.operations.review.query import HeldQuery

SKIPPED_MAX = 100
LIMIT = SKIPPED_MAX + 1


def following(request: Request) -> Response:
    """Return ``{path}`` of the next group's page, null where there is none; ``not`` names groups that are done with.

    The index is fed a moment after a decision: so a group that was just decided may still seem to wait.
    """
    who, told = visitor(request), serving(request)
    asked = HeldQuery.parse(request.query_params.get("q", ""), told.clock())
    skipped = set(request.query_params.get("not", "").split(",")[:SKIPPED_MAX])
    waiting = asked.narrowed(states=HeldQuery().states, group=None)
    found = told.index.groups(waiting, tenants=who.tenants, limit=LIMIT).groups
    left = next((one for one in found if one.id not in skipped), None)
    query = quoted(waiting.text())
    return JSONResponse({"path": None if left is None else f"{within('held', 'groups', left.id)}?q={query}"})


ROUTES = (Route("/held/next", following, methods=["GET"]),)
