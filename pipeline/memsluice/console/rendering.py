"""Pages: templates, in which whatever is put is escaped, and a filter that shows texts that somebody else chose.

**Hostile text.** ``{{ text|hostile }}`` gives one ``<bdi>`` with text nodes alone; each character that is not seen, or
moves others, stands as ``<span class="ctl">U+202E</span>``. ``{{ content|whole }}`` does the same for a content that is
shown whole and read back from the page by whoever signs it: its text is its text nodes, each ``.ctl`` span being the
one character that it names. Line feeds stay line feeds.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from memsluice.console.asking import serving
from memsluice.console.menu import menu
from memsluice.console.scales import share, trend
from memsluice.console.sessions import Session
from memsluice.escaping import parts
from memsluice.gate.reasons import words
from memsluice.operations.held.view import marks
from memsluice.operations.review.index import IndexCounts
from memsluice.recall.show import duration

TEXT_CHARS_MAX = 600
Span = tuple[int, int]


def hostile(text: object, chars_max: int = TEXT_CHARS_MAX) -> Markup:
    """Return a text that somebody else chose on one line, cut where it is longer, as a page shows it."""
    said = str(text)
    rest = len(said) - chars_max
    more = Markup('<span class="more"> … {} more characters</span>').format(rest) if rest > 0 else Markup("")
    return Markup('<bdi class="told">{}</bdi>{}').format(_shown(said[:chars_max]), more)


def whole(content: str, marked: Iterable[Span] = ()) -> Markup:
    """Return a whole content as a page shows it; ``marked`` are the places that triggered, which do not overlap.

    What is spelled out follows from the whole content: no mark begins the count of combining characters anew.
    """
    edges, at = [], 0
    for first, end in sorted(marked):
        if first >= at:
            edges += [(first, Markup("<mark>")), (end, Markup("</mark>"))]
            at = end
    pieces, at = [], 0
    for piece, hidden in parts(content):
        begin, rest = at, piece
        at += len(piece)
        while edges and edges[0][0] < at:
            place, tag = edges.pop(0)
            pieces += [_told(rest[: place - begin], hidden), tag]
            begin, rest = place, rest[place - begin :]
        pieces.append(_told(rest, hidden))
    pieces += [tag for _, tag in edges]
    return Markup('<bdi class="told">{}</bdi>').format(Markup("").join(pieces))


def _shown(text: str) -> Markup:
    return Markup("").join(Markup(" ⏎ ") if piece == "\n" else _told(piece, hidden) for piece, hidden in parts(text))


def _told(piece: str, hidden: bool) -> Markup:
    """Return a part of a text as a page shows it; a line feed stays one."""
    if not hidden or piece in ("", "\n"):
        return escape(piece)
    return Markup('<span class="ctl">U+{}</span>').format(f"{ord(piece):04X}")


def moment(at_ms: int | None) -> Markup:
    """Return a time (Unix ms) as a page shows it, in UTC."""
    if at_ms is None:
        return Markup("never")
    when = datetime.fromtimestamp(at_ms / 1_000, UTC)
    text = when.strftime("%Y-%m-%d %H:%M:%S")
    return Markup('<time datetime="{}">{} UTC</time>').format(when.isoformat(timespec="milliseconds"), text)


def within(*segments: object) -> str:
    """Return a path of these segments, each percent-encoded whole: identifiers alone, never content."""
    return "/" + "/".join(quote(str(one), safe="") for one in segments)


def mark_of(counts: IndexCounts) -> str:
    """Return what changes whenever an entry comes or another state of one does: so a page knows that it is old."""
    return ".".join(f"{name}-{count}" for name, count in sorted(counts.states.items()))


@cache
def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("memsluice.console"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "hostile": hostile,
        "whole": whole,
        "moment": moment,
        "duration": duration,
        "words": words,
        "trend": trend,
        "share": share,
    }
    made.globals |= {"within": within, "marks": marks, "mark_of": mark_of}
    return made


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page. Templates have, besides, ``visitor``, ``csrf``, ``menu``, ``here``, ``away`` and ``now_ms``."""
    session: Session | None = getattr(request.state, "session", None)
    told = serving(request)
    text = (
        environment()
        .get_template(template)
        .render(
            visitor=None if session is None else session.visitor,
            csrf="" if session is None else session.csrf,
            menu=[] if session is None else menu(session.visitor),
            here=request.url.path,
            away=told.away,
            now_ms=told.clock(),
            **context,
        )
    )
    return HTMLResponse(text, status)
