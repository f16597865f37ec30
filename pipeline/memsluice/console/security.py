"""What stands before every page: whose name the console answers to, how often one may ask, who asks, and that it is
his own page that asks. And what stands on every answer: what a browser may do with it."""

import hmac
from collections import OrderedDict
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memsluice.console.asking import FIELDS_MAX
from memsluice.console.errors import told
from memsluice.console.serving import Serving
from memsluice.console.sessions import Session
from memsluice.errors import InputError
from memsluice.stages.quota import Bucket, Quota

POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
    "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
    "trusted-types 'none'",
))  # fmt: skip
"""No script but our files, none of which can turn text into HTML; nothing is loaded from, or sent, anywhere else."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
SAFE = frozenset({"GET", "HEAD"})
BODY_BYTES_MAX = 4 * 1024 * 1024
STRANGERS_BYTES_MAX = 16 * 1024
"""Of a body of who is not logged in: what a login sends is far smaller, and anybody may begin one."""
TARGET_BYTES_MAX = 8_192
CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
COOKIE = "memsluice-console"
OPEN = frozenset({"/login", "/login/key", "/login/oidc", "/login/oidc/callback", "/livez"})
"""Paths for those who are not logged in; so is all below ``/static/``."""
ASKERS_MAX = 10_000
_FORM = "application/x-www-form-urlencoded"


def cookie_name(scheme: str) -> str:
    """Return the name of the session's cookie; under https one that a browser takes from this host alone."""
    return f"__Host-{COOKIE}" if scheme == "https" else COOKIE


def origin_of(serving: Serving, scope: Scope) -> str:
    """Return where browsers see the console: as its settings say, else as it is asked."""
    return serving.settings.url or f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}"


class Guard:
    """The middleware. It alone decides about access: a page that forgot to would still be behind it."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app, self._serving = app, serving
        settings = serving.settings
        self._asked = Asked(Quota(settings.requests_per_s, settings.requests_at_once), serving)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer.setdefault(name, value)
                if origin_of(self._serving, scope).startswith("https:"):
                    answer["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        scope.setdefault("state", {})
        refused = self._addressed(scope, headers) or await self._known(scope, headers)
        if refused is None and scope["method"] not in SAFE:
            refused, receive = await self._own(scope, headers, receive)
        await (refused or self._app)(scope, receive, sealed)

    def _addressed(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse who asks for another host (a name that was bent to this address), too long, or too often."""
        if len(scope.get("raw_path", b"")) + len(scope.get("query_string", b"")) > TARGET_BYTES_MAX:
            return told(scope, 414, "The address is too long", "shorten the filter")
        if not self._is_named(scope, headers.get("host", "")):
            what = "it is asked under a name that is not its own: open it as its start said, or set url in console.toml"
            return told(scope, 421, "This is another console", what)
        client = scope.get("client") or ("", 0)
        if not self._asked.takes(f"address {client[0]}"):
            return told(scope, 429, "That was too often", "wait a second, and load the page again")
        return None

    def _is_named(self, scope: Scope, host: str) -> bool:
        url = self._serving.settings.url
        if url is not None:
            return host == url.partition("://")[2]
        name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "80")
        return name in LOOPBACK and port == str((scope.get("server") or ("", 80))[1])

    async def _known(self, scope: Scope, headers: Headers) -> Response | None:
        """Find the session; send who has none to the page where one logs in."""
        session = await run_in_threadpool(self._session, scope, headers)
        scope["state"]["session"] = session
        path = scope["path"]
        if session is not None:
            if not self._asked.takes(f"visitor {session.visitor.name}"):
                return told(scope, 429, "That was too often", "wait a second, and load the page again")
            return None
        if path in OPEN or path.startswith("/static/"):
            return None
        if scope["method"] in SAFE and "text/html" in headers.get("accept", ""):
            query = scope.get("query_string", b"").decode("ascii", "replace")
            return RedirectResponse(f"/login?next={quote(path + (f'?{query}' if query else ''), safe='')}", 303)
        return told(scope, 401, "You are not logged in", "the session ended: log in again")

    def _session(self, scope: Scope, headers: Headers) -> Session | None:
        """Return the session of the request's cookie, as the registry has its visitor now; a fallen key ends it."""
        scheme = origin_of(self._serving, scope).partition(":")[0]
        token = cookie_parser(headers.get("cookie", "")).get(cookie_name(scheme), "")
        scope["state"]["token"] = token
        session = self._serving.sessions.find(token) if token else None
        if session is None:
            return None
        try:
            session.visitor = self._serving.logins.standing(session.visitor)
        except InputError:
            self._serving.sessions.end(token)
            return None
        return session

    async def _own(self, scope: Scope, headers: Headers, receive: Receive) -> tuple[Response | None, Receive]:
        """Refuse what another site's page sends; read what is sent, up to the limit."""
        if not _from_own_page(headers, origin_of(self._serving, scope)):
            return told(scope, 403, "Another page sent that", "only the console's own pages change something"), receive
        session: Session | None = scope["state"]["session"]
        bytes_max = STRANGERS_BYTES_MAX if session is None else BODY_BYTES_MAX
        body = await _read(receive, bytes_max)
        if body is None:
            return told(scope, 413, "That is too large", f"send at most {bytes_max // 1024} KiB at once"), receive
        if session is not None:
            sent = headers.get(CSRF_HEADER) or _field(headers, body)
            if not hmac.compare_digest(sent.encode("utf-8", "replace"), session.csrf.encode()):
                return told(scope, 403, "The page is too old", "load it again, and send it once more"), receive
        scope["state"]["body"] = body

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        return None, again


def _from_own_page(headers: Headers, origin: str) -> bool:
    """Whether a browser says that a page of this console sent it.

    Where pages give no referrer, a browser calls the origin of a form that it sends ``null``, and says by another
    header, which no script can set, whether it was a page of the same origin.
    """
    sent = headers.get("origin")
    return sent == origin or (sent == "null" and headers.get("sec-fetch-site") == "same-origin")


async def _read(receive: Receive, bytes_max: int) -> bytes | None:
    """Return what a request sends; None where it is too large, or the browser went away."""
    read = bytearray()
    while True:
        message: Any = await receive()
        if message["type"] != "http.request":
            return None
        read += message.get("body", b"")
        if len(read) > bytes_max:
            return None
        if not message.get("more_body", False):
            return bytes(read)


def _field(headers: Headers, body: bytes) -> str:
    """Return the token that a form sends along; "" where there is none."""
    if headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        return ""
    try:
        return parse_qs(body.decode(), max_num_fields=FIELDS_MAX).get(CSRF_FIELD, [""])[-1]
    except ValueError:
        return ""


class Asked:
    """How often each address, and each visitor, asked; the one that was quiet for longest is forgotten."""

    def __init__(self, quota: Quota, serving: Serving) -> None:
        self._quota, self._serving = quota, serving
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._lock = Lock()

    def takes(self, who: str) -> bool:
        """Whether he may ask once more."""
        now_ms = self._serving.clock()
        with self._lock:
            bucket = self._buckets.get(who)
            if bucket is None:
                while len(self._buckets) >= ASKERS_MAX:
                    self._buckets.popitem(last=False)
                bucket = self._buckets[who] = Bucket(self._quota, now_ms)
            self._buckets.move_to_end(who)
            return bucket.take(self._quota, now_ms)
