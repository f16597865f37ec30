"""What a browser that has a key asks before it logs in: under which id the registry knows it."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console.asking import serving
from memsluice.console.pages.commands import read_json
from memsluice.errors import MalformedEvent, NotFound
from memsluice.keystore.enrolment import holder_of, public_from_text

PUBLIC_CHARS = 44


def known(request: Request) -> Response:
    """Take ``{public}`` (base64), and return ``{kid, challenge}``: the key's id, and what it has to sign to log in."""
    data, told = read_json(request), serving(request)
    public = data.get("public") if isinstance(data, dict) else None
    if not isinstance(public, str) or len(public) != PUBLIC_CHARS:
        raise MalformedEvent("is not 32 bytes in base64", field="public")
    told.keys.refresh()
    kid = holder_of(public_from_text(public), told.keys.keyring())
    if kid is None:
        raise NotFound("the console does not know this key: an operator of the gate enrols it (memsluice keys enrol)")
    return JSONResponse({"kid": kid, "challenge": told.logins.challenge()})


ROUTES = (Route("/login/key", known, methods=["POST"]),)
