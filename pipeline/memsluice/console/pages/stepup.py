"""The security key: what a browser asks it, and how one is registered."""

from binascii import Error as NoBase64
from binascii import a2b_base64
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console import stepup
from memsluice.console.asking import serving, session
from memsluice.console.pages.commands import read_json
from memsluice.console.security import origin_of
from memsluice.errors import MalformedEvent

DIGEST_CHARS = 64


def asked(request: Request) -> Response:
    """Take ``{batch, count}``, and return ``{options, wanted}``: null where no security key is wanted."""
    told, data = serving(request), _fields(request, {"batch": str, "count": int})
    if len(data["batch"]) != DIGEST_CHARS:
        raise MalformedEvent("is no SHA-256 in hex", field="batch")
    options = stepup.begin(told, session(request), origin_of(told, request.scope), data["batch"], data["count"])
    return JSONResponse({"options": options, "wanted": told.settings.step_up})


def options(request: Request) -> Response:
    """Return what the browser asks a security key that is to be registered."""
    told = serving(request)
    return JSONResponse({"options": stepup.registration(told, session(request), origin_of(told, request.scope))})


def register(request: Request) -> Response:
    """Take ``{credential, kid, signature}``, and keep the security key."""
    told, data = serving(request), _fields(request, {"credential": dict, "kid": str, "signature": str})
    try:
        signature = a2b_base64(data["signature"], strict_mode=True)
    except (NoBase64, ValueError):
        raise MalformedEvent("is no base64", field="signature") from None
    where = origin_of(told, request.scope)
    stepup.register(told, session(request), where, data["kid"], data["credential"], signature)
    return JSONResponse({"registered": True})


def _fields(request: Request, wanted: dict[str, type]) -> dict[str, Any]:
    data = read_json(request)
    for name, kind in wanted.items():
        if not isinstance(data, dict) or type(data.get(name)) is not kind:
            raise MalformedEvent("is missing, or of another kind", field=name)
    found: dict[str, Any] = data
    return found


ROUTES = (
    Route("/step-up", asked, methods=["POST"]),
    Route("/step-up/options", options, methods=["POST"]),
    Route("/step-up/register", register, methods=["POST"]),
)
