"""Routes whose caller is known before anything of a request's body is read.

FastAPI reads and parses a body before it asks a dependency: so who has no token could have a service read, and parse,
as much as it takes from anybody.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param

from memsluice.envelope.registry import Credential

BEARER = HTTPBearer(auto_error=False, bearerFormat="JWT", description="A JWT that a credential signs.")
Guard = Callable[[Request, str, str | None], AbstractContextManager[Credential]]
"""Finds who asks, by request, route and bearer token, and holds while he is answered; raises where he may not ask."""


def _caller(request: Request) -> Credential:
    found: Credential = request.state.caller
    return found


Caller = Annotated[Credential, Depends(_caller)]
"""Who asks, on a route of a :func:`guarded` router."""


def guarded(guard: Guard) -> APIRouter:
    """Return a router whose every route begins with ``guard``, and has its credential as ``Caller``."""

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Any]:
            answer, route = super().get_route_handler(), self.path

            async def known(request: Request) -> Any:
                with guard(request, route, _token(request)) as request.state.caller:
                    return await answer(request)

            return known

    return APIRouter(route_class=Guarded, dependencies=[Depends(BEARER)])  # for what the OpenAPI document says


def _token(request: Request) -> str | None:
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    return token if scheme.lower() == "bearer" and token else None
