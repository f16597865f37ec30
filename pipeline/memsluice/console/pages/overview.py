"""What waits, and how the stream runs."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.menu import Item
from memsluice.console.pages.held import narrow
from memsluice.console.rendering import page
from memsluice.envelope.verdict import Decision
from memsluice.operations.partitions.words import parked_places

ROWS_MAX = 12
MIX = {
    Decision.ACCEPT: "to guidance",
    Decision.CONTAIN: "as data",
    Decision.QUARANTINE: "held",
    Decision.REJECT: "refused",
    Decision.DUPLICATE: "duplicate",
    Decision.RECORD: "recorded",
}


def show(request: Request) -> Response:
    """Show what waits, by tenant and reason, and the stream: rates, verdicts, calibration, lag."""
    who, told = visitor(request), serving(request)
    counts, pulse = told.index.counts(tenants=who.tenants), told.feeding.pulse
    stream = None if pulse is None else pulse.seen_by(who.tenants)
    decided = 0 if stream is None else sum(stream.decisions.values())
    mix = [] if stream is None else [
        (words, stream.decisions[kind], stream.decisions[kind] / decided)
        for kind, words in MIX.items() if stream.decisions[kind]
    ]  # fmt: skip
    parked = () if pulse is None else pulse.parked
    return page(
        request, "overview.html", counts=counts, pulse=pulse, stream=stream, mix=mix,
        tenants=_linked("tenant", counts.tenants.most_common(ROWS_MAX)),
        reasons=_linked("reason", counts.reasons.most_common(ROWS_MAX)),
        parked=parked_places(parked) if parked and who.tenants is None else "",
    )  # fmt: skip


def _linked(field: str, counted: list[tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Return values with the text of the filter for each, and how many wait."""
    return [(value, narrow(None, field, value), count) for value, count in counted]


MENU = (Item("Overview", "/", 0),)
ROUTES = (Route("/", show, methods=["GET"]),)
