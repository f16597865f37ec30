"""A person's own keys: the page of them, and under which id the registry knows the key of a browser."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console import stepup
from memsluice.console.asking import serving, session
from memsluice.console.pages.commands import read_json
from memsluice.console.rendering import page
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


def show(request: Request) -> Response:
    """Show the key of this browser, which its own script looks up, and whether a security key is registered."""
    told, who = serving(request), session(request).visitor
    registered = stepup.is_registered(told, who)
    return page(request, "keys.html", registered=registered, step_up=told.settings.step_up)


ROUTES = (
    Route("/keys", show, methods=["GET"]),
    Route("/login/key", known, methods=["POST"]),
)
