"""Logging in at the identity provider that the settings name."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from memsluice.console.asking import serving
from memsluice.console.oidc import LOGIN_MS_MAX, Provider
from memsluice.console.pages.login import begun, next_of
from memsluice.console.rendering import page
from memsluice.console.security import origin_of
from memsluice.errors import NotFound, RequestRefused

COOKIE, PATH = "memsluice-console-login", "/login/oidc"
CALLBACK = f"{PATH}/callback"
TEXT_CHARS_MAX = 2_048


def begin(request: Request) -> Response:
    """Send a browser to the provider. Its cookie goes along when it comes back from there: so it is Lax, and brief."""
    told = serving(request)
    url, browser = _provider(request).begin(_callback(request), next_of(request))
    answer = RedirectResponse(url, 303)
    secure = origin_of(told, request.scope).startswith("https:")
    answer.set_cookie(
        COOKIE, browser, max_age=LOGIN_MS_MAX // 1_000, path=PATH, secure=secure, httponly=True, samesite="lax"
    )
    return answer


def back(request: Request) -> Response:
    """Take who is back, and go on from a page of ours: a browser that another site sent on sends no strict cookie."""
    state, code = (request.query_params.get(name, "") for name in ("state", "code"))
    if not 0 < len(state) <= TEXT_CHARS_MAX or not 0 < len(code) <= TEXT_CHARS_MAX:
        raise RequestRefused(403, "login", "the identity provider did not let you in: begin anew, or log in with a key")
    visitor, where = _provider(request).finish(_callback(request), state, code, request.cookies.get(COOKIE, ""))
    answer = begun(request, visitor, page(request, "entered.html", where=where))
    answer.delete_cookie(COOKIE, path=PATH, httponly=True, samesite="lax")
    return answer


def _provider(request: Request) -> Provider:
    provider = serving(request).provider
    if provider is None:
        raise NotFound("no identity provider is set up: console.toml has no part oidc")
    return provider


def _callback(request: Request) -> str:
    return f"{origin_of(serving(request), request.scope)}{CALLBACK}"


ROUTES = (
    Route(PATH, begin, methods=["GET"]),
    Route(CALLBACK, back, methods=["GET"]),
)
