"""What changed, as server-sent events: counts of what the visitor may see, and never content."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import orjson
from sse_starlette.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.live import Listener
from memsluice.console.rendering import mark_of
from memsluice.console.serving import Serving
from memsluice.errors import InputError, MemsluiceError

LOOK_S = 15.0
"""How often a page's session is looked at where nothing changes."""
WAKE_S = 1.0
"""How soon an open page notices that the server ends."""
RETRY_MS = 5_000


async def stream(request: Request) -> Response:
    """Tell a page what waits, at once and whenever it changes, until its session ends."""
    told, who = serving(request), visitor(request)
    listening = told.live.listening(who.name)
    listener, ending = listening.__enter__(), anyio.Event()

    async def events() -> AsyncIterator[dict[str, Any]]:
        try:
            async for event in _events(told, request.state.token, listener, ending.is_set):
                yield event
        finally:
            listening.__exit__(None, None, None)

    return EventSourceResponse(
        events(), ping=int(LOOK_S), shutdown_event=ending, shutdown_grace_period=2 * WAKE_S
    )  # fmt: skip


async def _events(
    told: Serving, token: str, listener: Listener, ends: Callable[[], bool] = bool
) -> AsyncIterator[dict[str, Any]]:
    """Yield what a page is told, until its session or the server ends."""
    last: bytes | None = None
    while True:
        state = await run_in_threadpool(_state, told, token)
        if state is None:
            yield {"event": "ended", "data": "{}"}
            return
        if state != last:
            yield {"event": "counts", "data": state.decode(), "retry": RETRY_MS}
            last = state
        for _ in range(int(LOOK_S / WAKE_S)):
            if ends():
                return
            if await listener.waits(WAKE_S):
                break


def _state(told: Serving, token: str) -> bytes | None:
    """Return what waits for the visitor of a session; None where that ended. It does not count as use of it."""
    session = told.sessions.find(token, touch=False)
    if session is None:
        return None
    try:
        who = told.logins.standing(session.visitor)
        counts = told.index.counts(tenants=who.tenants)
    except InputError:
        told.sessions.end(token)
        return None
    except MemsluiceError:  # the index is made anew: how many wait is not known, and no page says that it is none
        return orjson.dumps({"states": None, "mark": "", "away": sorted(told.away)})
    return orjson.dumps({"states": counts.states, "mark": mark_of(counts), "away": sorted(told.away)})


ROUTES = (Route("/events", stream, methods=["GET"]),)
