"""What a page asks of a request: who looks, what was sent, what the server has."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from memsluice.console.serving import Serving
from memsluice.console.sessions import Session
from memsluice.console.visitors import Sight, Visitor
from memsluice.errors import InvalidArgument, NotPermitted

FIELDS_MAX = 200


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


def form(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent; of a field that was sent twice the last. Raises InvalidArgument."""
    try:
        pairs = parse_qsl(body(request).decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise InvalidArgument(f"form: it cannot be read: send at most {FIELDS_MAX} fields as UTF-8") from None
    return dict(pairs)
