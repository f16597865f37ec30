"""Where browsers bring what they signed, and hear what the gate made of it."""

import math
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console import orders, stepup
from memsluice.console.asking import body, serving, session, visitor
from memsluice.console.errors import problem
from memsluice.console.lending import lent
from memsluice.console.security import origin_of
from memsluice.console.visitors import Sight
from memsluice.errors import InputError, InvalidArgument, MalformedEvent, NotFound
from memsluice.events.limits import ID_CHARS_MAX, OFFSET_MAX
from memsluice.operations.commands import desk as desks
from memsluice.operations.commands.signing import Signed
from memsluice.operations.held.collect import HeldReview, look_whole
from memsluice.operations.review import differing
from memsluice.operations.review.decide import Differences

WAIT_S, WAIT_S_MAX = 10.0, 25.0
SEALED_CHARS_MAX = 2_500_000
"""Characters of sealed records that one answer has at most; the browser asks again for what is left out."""


def read_json(request: Request) -> Any:
    """Return what was sent, as JSON. Raises MalformedEvent."""
    try:
        return orjson.loads(body(request))
    except orjson.JSONDecodeError:
        raise MalformedEvent("is no JSON", field="body") from None


def command(request: Request) -> Response:
    """Take ``{envelopes, step_up}``, publish those that hold, and return ``{items}``: what became of each, in order.

    One that does not hold keeps no other from going on: its item says why it was not sent.
    """
    who, told = visitor(request), serving(request)
    items: list[dict[str, Any] | None] = []
    signed: list[Signed] = []
    sent = read_json(request)
    envelopes = orders.envelopes_of(sent)
    stepup.check(told, session(request), origin_of(told, request.scope), envelopes, sent.get("step_up"))
    for data in envelopes:
        try:
            signed.append(orders.checked(told, who, data))
            items.append(None)
        except InputError as error:
            items.append({"came": "not sent", "told": problem(error)[2], "reasons": [error.code]})
    done = iter(_published(request, signed))
    return JSONResponse({"items": [next(done) if one is None else one for one in items]})


def _published(request: Request, signed: list[Signed]) -> list[dict[str, Any]]:
    if not signed:
        return []
    told = serving(request)
    with lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
        published = orders.publish(told, desk, signed)
        desk.settle()
        return orders.answers(desk, published, WAIT_S)


def answer(request: Request) -> Response:
    """Return what the gate made of a command of this server's; ``?wait=`` is how many seconds to wait for that."""
    who, told = visitor(request), serving(request)
    wait_s = _seconds(request.query_params.get("wait", "0"))
    found = orders.remembered(told).find(request.path_params["command_id"], who)
    if found is None:
        raise NotFound("no such command is known here: the entry's page says what became of it")
    with lent(request, "orders", desks.on_kafka, desks.embedded) as desk:
        (item,) = orders.answers(desk, [found], wait_s)
    return JSONResponse(item)


def _seconds(text: str) -> float:
    """Return for how long to wait. Raises InvalidArgument, also for what is no number: a wait for it would not end."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        raise InvalidArgument("wait: it is no number of seconds")
    return min(max(seconds, 0.0), WAIT_S_MAX)


def sealed(request: Request) -> Response:
    """Take ``{entries: [{tenant, target, offset}]}``, and return the sealed records that commands carry.

    ``left`` says how many there was no room for. An entry that is not there any more is left out of ``entries``.
    """
    rows = _rows(request)
    found: list[dict[str, Any]] = []
    size = 0
    with serving(request).desk() as desk:
        for seen in look_whole(desk.held, desk.keys.keyring(), rows):
            entry = seen.entry
            size += len(entry.sealed)
            if found and size > SEALED_CHARS_MAX:
                break
            found.append({
                "tenant": entry.tenant, "target": entry.event_id, "offset": entry.offset, "repeated": entry.repeated_id,
                "digest": entry.digest, "sealed": entry.sealed,
            })  # fmt: skip
    return JSONResponse({"entries": found, "left": len(rows) - len(found)})


def differences(request: Request) -> Response:
    """Take ``{entries}`` as :func:`sealed` does, and return ``{lines}``: in words, what differs within them."""
    rows = _rows(request)
    with serving(request).desk() as desk:
        differs = Differences.within(look_whole(desk.held, desk.keys.keyring(), rows))
    return JSONResponse({"lines": differing.told(differs)})


def _rows(request: Request) -> list[HeldReview]:
    """Return the entries that were sent and the visitor may see whole, as the index has them."""
    who, told = visitor(request, Sight.CONTENT), serving(request)
    rows = [told.index.entry(*name, tenants=who.tenants) for name in _names(read_json(request))]
    return [row.seen for row in rows if row is not None]


def _names(data: Any) -> list[tuple[str, str, int]]:
    listed = data.get("entries") if isinstance(data, dict) else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= orders.ENVELOPES_MAX:
        raise MalformedEvent(f"must be a list of 1 to {orders.ENVELOPES_MAX}", field="entries")
    names = []
    for one in listed:
        fields = one if isinstance(one, dict) else {}
        tenant, target, offset = (fields.get(name) for name in ("tenant", "target", "offset"))
        if not isinstance(tenant, str) or not isinstance(target, str) or not isinstance(offset, int):
            raise MalformedEvent("needs a tenant, a target and an offset", field="entries")
        names.append((tenant[: ID_CHARS_MAX + 1], target[: ID_CHARS_MAX + 1], min(max(offset, 0), OFFSET_MAX)))
    return names


ROUTES = (
    Route("/commands", command, methods=["POST"]),
    Route("/commands/{command_id:path}", answer, methods=["GET"]),
    Route("/held/sealed", sealed, methods=["POST"]),
    Route("/held/differences", differences, methods=["POST"]),
)
