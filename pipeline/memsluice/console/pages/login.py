"""Logging in and out with a registered key."""

from binascii import a2b_base64

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from memsluice.console.asking import body, serving
from memsluice.console.rendering import page
from memsluice.console.security import cookie_name, origin_of
from memsluice.console.visitors import Visitor
from memsluice.errors import InvalidArgument

KID_CHARS_MAX = 128
TEXT_CHARS_MAX = 512


def show(request: Request) -> Response:
    """Show where one logs in, with a challenge for the browser's key."""
    told = serving(request)
    where = next_of(request)
    if getattr(request.state, "session", None) is not None:
        return RedirectResponse(where, 303)
    return page(
        request, "login.html", challenge=told.logins.challenge(), next=where,
        oidc=told.settings.oidc,
    )  # fmt: skip


def enter(request: Request) -> Response:
    """Take ``{kid, challenge, signature}`` (base64), a signature over :func:`memsluice.console.logins.signed_bytes`."""
    told = serving(request)
    kid, challenge, signature = _sent(body(request))
    visitor = told.logins.visitor(origin_of(told, request.scope), kid, challenge, signature)
    return begun(request, visitor, JSONResponse({"name": visitor.name, "role": visitor.role.value}))


def leave(request: Request) -> Response:
    """End the session."""
    told = serving(request)
    told.sessions.end(request.state.token)
    answer = RedirectResponse("/login", 303)
    scheme = origin_of(told, request.scope).partition(":")[0]
    answer.delete_cookie(cookie_name(scheme), path="/", secure=scheme == "https", httponly=True, samesite="strict")
    answer.headers["Clear-Site-Data"] = '"cache"'
    return answer


def begun(request: Request, visitor: Visitor, answer: Response) -> Response:
    """Return an answer with the cookie of a new session."""
    told = serving(request)
    token, _ = told.sessions.begin(visitor)
    scheme = origin_of(told, request.scope).partition(":")[0]
    answer.set_cookie(cookie_name(scheme), token, path="/", secure=scheme == "https", httponly=True, samesite="strict")
    return answer


def next_of(request: Request) -> str:
    """Return where to go after logging in: a page of this console, and nothing else."""
    where = request.query_params.get("next", "/")
    own = where.startswith("/") and not where.startswith(("//", "/\\", "/login")) and where.isprintable()
    return where if own else "/"


def _sent(data: bytes) -> tuple[str, str, bytes]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = None
    fields = ("kid", "challenge", "signature")
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in fields):
        raise InvalidArgument("login: send JSON with kid, challenge and signature")
    if any(not 0 < len(value[name]) <= TEXT_CHARS_MAX for name in fields) or len(value["kid"]) > KID_CHARS_MAX:
        raise InvalidArgument("login: kid, challenge or signature is too long, or empty")
    if not value["kid"].isprintable():
        raise InvalidArgument("kid: it has a character that no key id has")
    try:
        return value["kid"], value["challenge"], a2b_base64(value["signature"], strict_mode=True)
    except ValueError:  # text that is not ASCII is none of binascii's own errors
        raise InvalidArgument("signature: it is no base64") from None


ROUTES = (
    Route("/login", show, methods=["GET"]),
    Route("/login", enter, methods=["POST"]),
    Route("/logout", leave, methods=["POST"]),
)
