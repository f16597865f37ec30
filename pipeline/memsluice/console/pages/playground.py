"""The recall playground: what the recall service would answer to a reader's key. Nothing is published by it.

A question may hold content: it is sent in a form's body, and stands in no address and no log.
"""

import time
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console import fields
from memsluice.console.asking import form, serving, visitor
from memsluice.console.lending import lent
from memsluice.console.menu import Item
from memsluice.console.pages.audit import check_tenant, known_tenants
from memsluice.console.rendering import page
from memsluice.console.serving import Serving
from memsluice.console.visitors import Sight, Visitor
from memsluice.errors import InvalidArgument
from memsluice.events.limits import RETURNED_MAX
from memsluice.events.models import Zone, input_error
from memsluice.operations import playground
from memsluice.recall.show import TIER_WORDS, WITHHELD_WORDS, left
from memsluice.recall.wire import RecallRequest
from memsluice.recall.withheld import Withheld

if TYPE_CHECKING:
    from memsluice.encoder import Encoder

FIELDS = ("tenant", "question", "agent", "principal", "session", "namespace", "zone", "tier_max", "k", "as")
DEFAULTS = {"agent": "console", "principal": "console", "session": "console", "namespace": "default", "k": "5"}
_LOADING = Lock()


def show(request: Request) -> Response:
    """Show the form."""
    who = visitor(request, Sight.OPERATIONS)
    return _page(request, who, DEFAULTS, None)


def ask(request: Request) -> Response:
    """Ask, and show what the recall service would answer."""
    who, told, given = visitor(request, Sight.OPERATIONS), serving(request), form(request)
    asked = read(given)
    check_tenant(who, asked.tenant)
    encoder = encoder_of(told)
    began = time.perf_counter()
    with lent(request, "playground", playground.on_kafka, playground.embedded) as desk:
        answer = desk.ask(asked, fields.text(given, "as") or "", encoder, told.clock())
        where = desk.name
    took_ms = (time.perf_counter() - began) * 1_000
    withheld = [(many, why, WITHHELD_WORDS[Withheld(why)]) for why, many in sorted(answer.withheld.items())]
    return _page(request, who, given, {"answer": answer, "where": where, "took_ms": took_ms, "withheld": withheld})


def read(given: Mapping[str, str]) -> RecallRequest:
    """Return the question of a form, by the rules of the recall service. Raises MalformedEvent, LimitExceeded."""
    names = ("tenant", "question", "agent", "principal", "session", "namespace")
    said: dict[str, Any] = {name: given.get(name, "").strip() for name in names}
    said["namespace"] = said["namespace"] or "default"
    said["zone"] = fields.one_of(given, "zone", Zone) or Zone.GUIDANCE
    said["k"] = fields.number(given, "k", 1, RETURNED_MAX, 5)
    said["tier_max"] = fields.number(given, "tier_max", 1, len(TIER_WORDS), len(TIER_WORDS))
    try:
        return RecallRequest.model_validate(said)
    except ValidationError as error:
        refused = input_error(error)
    raise refused  # out here, so that pydantic's error, which holds the question, is not its context


def encoder_of(told: Serving) -> "Encoder":
    """Return the memory's encoder, which is loaded with the first question. Raises ConfigError."""
    from memsluice.encoder import load_encoder

    if not _LOADING.acquire(timeout=60.0):
        raise InvalidArgument("the encoder is being loaded: ask again in a minute")
    try:
        if "encoder" not in told.kept:
            told.kept["encoder"] = load_encoder()
        found: Encoder = told.kept["encoder"]
        return found
    finally:
        _LOADING.release()


def _page(request: Request, who: Visitor, given: Mapping[str, str], shown: dict[str, Any] | None) -> Response:
    told = serving(request)
    callers = [
        (one.kid, ", ".join(sorted(one.tenants))) for one in playground.readers(told.keys.registry())
        if who.tenants is None or who.tenants & set(one.tenants)
    ]  # fmt: skip
    return page(
        request, "playground.html", given=fields.shown(given, FIELDS), callers=callers, tenants=known_tenants(who),
        zones=list(Zone), tiers=[(int(tier), word) for tier, word in TIER_WORDS.items()], shown=shown,
        tier_words=TIER_WORDS, left=left, k_max=RETURNED_MAX,
    )  # fmt: skip


MENU = (Item("Recall", "/recall", 65, Sight.OPERATIONS),)
ROUTES = (
    Route("/recall", show, methods=["GET"]),
    Route("/recall", ask, methods=["POST"]),
)
