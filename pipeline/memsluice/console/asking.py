"""What a page asks of a request: who looks, what was sent, what the server has."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request

from memsluice.console.serving import Serving
from memsluice.console.sessions import Session
from memsluice.console.visitors import Sight, Visitor
from memsluice.errors import ForgedSignature, InvalidArgument, NotPermitted, SealError
from memsluice.keystore.store import KeyStore

FIELDS_MAX = 200
Order = TypeVar("Order")
Reader = Callable[[KeyStore, bytes, int], tuple[Order, str]]
"""Verifies bytes under the keys of a time (Unix ms), and returns the order in them and the key id that signed it."""


def serving(request: Request) -> Serving:
    """Return what the server stands on."""
    found: Serving = request.app.state.serving
    return found


def session(request: Request) -> Session:
    """Return the session of a request. Raises NotPermitted where there is none."""
    found: Session | None = getattr(request.state, "session", None)
    if found is None:
        raise NotPermitted("log in first")
    return found


def visitor(request: Request, sight: Sight = Sight.METADATA) -> Visitor:
    """Return who looks. Raises NotPermitted where he may not see this."""
    found = session(request).visitor
    if not found.sees(sight):
        raise NotPermitted(f"a {found.role.value} does not see {sight.value}")
    return found


def body(request: Request) -> bytes:
    """Return what was sent; its size, its origin and its token were checked already."""
    found: bytes = getattr(request.state, "body", b"")
    return found


def ordered(request: Request, who: Visitor, read: Reader[Order]) -> tuple[Order, str]:
    """Return the signed order that a visitor sent, as ``read`` verifies it, and the key id that signed it.

    Raises ForgedSignature where it does not verify (a browser sent it: no record of ours is damaged), NotPermitted
    where another key than the visitor's own signed it, and what else ``read`` raises.
    """
    told = serving(request)
    try:
        order, kid = read(told.keys, body(request), told.clock())
    except SealError as error:
        raise ForgedSignature(str(error), field="body") from None
    if not who.owns(kid, told.keys.registry()):
        raise NotPermitted("the order is signed with another key than yours")
    return order, kid


def form(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent; of a field that was sent twice the last. Raises InvalidArgument."""
    try:
        pairs = parse_qsl(body(request).decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidArgument(f"form: it cannot be read: send at most {FIELDS_MAX} fields as UTF-8") from None
    return dict(pairs)
