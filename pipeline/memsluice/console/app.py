"""The console as an ASGI application."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from memsluice.console.errors import Failing, raising
from memsluice.console.pages import gathered
from memsluice.console.security import Guard
from memsluice.console.serving import Serving


def create_app(serving: Serving) -> Starlette:
    """Return the console over what it stands on."""
    static = StaticFiles(packages=[("memsluice.console", "static")])
    app = Starlette(
        routes=[*gathered(), Mount("/static", static, name="static")],
        middleware=[Middleware(Guard, serving=serving), Middleware(Failing)],
        exception_handlers={HTTPException: raising},
    )
    app.state.serving = serving
    return app
