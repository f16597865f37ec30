"""That the process answers, for whoever supervises it."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def alive(_request: Request) -> PlainTextResponse:
    """Say that the process answers."""
    return PlainTextResponse("ok\n")


ROUTES = (Route("/livez", alive, methods=["GET"]),)
