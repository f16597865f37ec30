"""What waits, and how the stream runs."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.menu import Item
from memsluice.console.rendering import page


def show(request: Request) -> Response:
    """Show what waits, by tenant and reason."""
    who, told = visitor(request), serving(request)
    return page(request, "overview.html", counts=told.index.counts(tenants=who.tenants))


MENU = (Item("Overview", "/", 0),)
ROUTES = (Route("/", show, methods=["GET"]),)
