"""Dead letters: the list, one letter, what a replay would come to, and the signed order that has one carried out.

A letter is no tenant's: what it says of itself nobody verified. So whoever sees some tenants alone sees none of them.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memsluice.console import fields
from memsluice.console.asking import body, ordered, serving, visitor
from memsluice.console.lending import lent
from memsluice.console.menu import Item
from memsluice.console.rendering import page
from memsluice.console.visitors import Sight, Visitor
from memsluice.errors import NotPermitted
from memsluice.events.models import Action
from memsluice.gate.reasons import words
from memsluice.log import get_logger
from memsluice.operations.dead_letters import desk as desks
from memsluice.operations.dead_letters import orders, view
from memsluice.operations.dead_letters.asking import build_filter, find, look_at
from memsluice.operations.dead_letters.collect import stats
from memsluice.operations.dead_letters.desk import USERS, LetterDesk
from memsluice.operations.dead_letters.filters import LetterFilter
from memsluice.operations.dead_letters.letters import LetterState
from memsluice.operations.dead_letters.replay import LetterReplay
from memsluice.topics.names import PARTITIONS

FIELDS = ("reason", "topic", "partition", "tenant", "since", "until", "all")
PAGE = 50
PAGES_MAX = 1_000
BYTES = frozenset({"key", "header", "value", "payload"})
"""Rows of the view of a letter that show its bytes."""
WAIT_S = 10.0
OF_ALL = "dead letters are no tenant's, since nobody authenticated them: they are shown to who sees all tenants"
_LOG = get_logger(__name__)


def show_all(request: Request) -> Response:
    """Show the letters that the address asks for, the newest first."""
    who, told, given = _visitor(request), serving(request), fields.asked(request)
    number = fields.number(given, "page", 1, PAGES_MAX, 1)
    with told.heavy(), _desk(request) as desk:
        found = look_at(desk, wanted(given, told.clock()))
        where = desk.letters.name
    newest = found.seen[::-1]
    shown = newest[(number - 1) * PAGE : number * PAGE]
    return page(
        request, "dead_letters.html", given=fields.shown(given, FIELDS), found=found, counts=stats(found),
        where=where, number=number,
        letters=[(one, view.state(one, told.clock(), texts=who.sees_content), view.claims(one)) for one in shown],
        older=fields.address("/dead-letters", given, FIELDS, page=number + 1) if len(newest) > number * PAGE else None,
        newer=fields.address("/dead-letters", given, FIELDS, page=number - 1) if number > 1 else None,
        topics=list(USERS), bytes_seen=who.sees(Sight.OPERATIONS), beginning=view.as_text,
        may_replay=who.sees(Sight.OPERATIONS), check=fields.address("/dead-letters/replay", given, FIELDS),
    )  # fmt: skip


def show_one(request: Request) -> Response:
    """Show one letter; its bytes to operators alone."""
    who, told = _visitor(request), serving(request)
    name, bytes_seen = fields.text(fields.asked(request), "id") or "", who.sees(Sight.OPERATIONS)
    with told.heavy(), _desk(request) as desk:
        (seen,) = find(desk, [name], whole=bytes_seen)
    every = view.lines(seen, told.clock(), words, texts=who.sees_content)
    rows = [line for line in every if bytes_seen or line.label not in BYTES]
    return page(
        request, "dead_letter.html", seen=seen, rows=rows, bytes_seen=bytes_seen,
        may_dismiss=who.may(Action.DISMISS) and seen.state is LetterState.OPEN,
        check=fields.address("/dead-letters/replay", {}, (), id=seen.letter.letter_id),
    )  # fmt: skip


def propose(request: Request) -> Response:
    """Show what a replay of letters would come to now, and what one would sign to have it carried out."""
    _visitor(request, Sight.OPERATIONS)
    told, given = serving(request), fields.asked(request)
    name = fields.text(given, "id")
    with told.heavy(), _desk(request) as desk:
        if name is not None:
            names, left = [name], 0
        else:
            found = look_at(desk, wanted({**given, "all": ""}, told.clock()))
            names = [one.letter.letter_id for one in found.seen[: orders.LETTERS_MAX]]
            left = len(found.seen) - len(names)
        results = [one.slim() for some in orders.checked(desk, names, told.clock) for one in some] if names else []
    going = [[one.seen.letter.letter_id, one.seen.letter.digest] for one in results if _goes(one)]
    return page(request, "dead_letter_replay.html", results=results, going=going, left=left, goes=_goes)


def _goes(result: LetterReplay) -> bool:
    return not result.failed and result.seen.state is LetterState.OPEN


def carry_out(request: Request) -> Response:
    """Publish again what a signed order names, and answer with what became of each letter."""
    order, kid = ordered(request, _visitor(request, Sight.OPERATIONS), orders.order_from_bytes)
    told = serving(request)
    with told.heavy(), _desk(request) as desk:  # before the order is kept: one that is refused as busy may come again
        orders.keep(told.home / "replays", order, body(request))
        results = [one for some in orders.carried_out(desk, order, WAIT_S, told.clock) for one in some]
    _LOG.info("dead letters were published again", order=order.id, kid=kid, letters=len(results))
    return JSONResponse({"order": order.id, "letters": [_as_data(one) for one in results]})


def _as_data(result: LetterReplay) -> dict[str, object]:
    decided = result.decided
    return {
        "letter": result.seen.letter.letter_id,
        "published": result.published,
        "reason": result.reason,
        "decision": None if decided is None else decided.decision,
        "reasons": [] if decided is None else list(decided.reasons),
    }


def wanted(given: Mapping[str, str], now_ms: int) -> LetterFilter:
    """Return what the fields ask for. Raises InvalidArgument."""
    partition = fields.number(given, "partition", 0, PARTITIONS - 1, -1)
    since, until = fields.text(given, "since"), fields.text(given, "until")
    return build_filter(
        fields.text(given, "reason"), fields.text(given, "topic"), None if partition < 0 else partition, since, until,
        fields.text(given, "tenant"), now_ms, everything=fields.text(given, "all") is not None,
    )  # fmt: skip


def _visitor(request: Request, sight: Sight = Sight.METADATA) -> Visitor:
    who = visitor(request, sight)
    if who.tenants is not None:
        raise NotPermitted(OF_ALL)
    return who


def _desk(request: Request) -> AbstractContextManager[LetterDesk]:
    return lent(request, "dead letters", desks.on_kafka, desks.embedded)


MENU = (Item("Dead letters", "/dead-letters", 30),)
ROUTES = (
    Route("/dead-letters", show_all, methods=["GET"]),
    Route("/dead-letters/letter", show_one, methods=["GET"]),
    Route("/dead-letters/replay", propose, methods=["GET"]),
    Route("/dead-letters/replays", carry_out, methods=["POST"]),
)
