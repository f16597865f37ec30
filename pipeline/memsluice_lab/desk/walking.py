"""Every page of a console: the addresses that its lists lead to, and the forms that are sent."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from starlette.applications import Starlette
from starlette.routing import Match, Route

NO_PAGES = frozenset({
    "/events", "/held/next", "/livez", "/commands/{command_id:path}",
    "/login/oidc", "/login/oidc/callback",
})  # fmt: skip
"""Paths that answer with something else than a page of ours: events, JSON, or the way to a provider and back, which
has nothing of others but the address that a login was asked for."""
STORIES_MAX = 25
"""Pages of a lineage that are opened: each reads the tenant's whole audit."""
PAGES_MAX = 100_000
"""Of a kind: more than a home has."""
_LINK = re.compile(r'href="(/[^"#]*)"')
_FOLLOWED = re.compile(
    r"/held/(groups|entries|story)/|/held(/entries)?\?(?=.*after=)|/dead-letters/letter\?|/dead-letters(/replay)?\?"
    r"|/audit(/event)?\?|/proposals/|/policies/(end|compare)\?"
)


@dataclass(frozen=True, slots=True)
class Visit:
    """A page to open: an address that is gone to, or a form that is sent with these fields."""

    path: str
    fields: tuple[tuple[str, str], ...] | None = None

    def told(self) -> str:
        """Return it as a report names it."""
        return self.path if self.fields is None else f"{self.path} (sent)"


def beginning(operator: bool, policy: str, some: list[str], tenants: tuple[str, ...]) -> Iterator[Visit]:
    """Yield where a walk begins, for an operator or a reviewer; ``some`` are texts that forms and filters are given."""
    lists = [
        "/",
        "/held?q=state:any",
        "/held/entries?q=state:any",
        "/audit",
        "/dead-letters?all=1",
        "/proposals",
        "/keys",
    ]
    yield from map(Visit, [*lists, "/nowhere", *(f"/calibration?tenant={one}" for one in tenants)])
    yield from (Visit(f"/held/entries?q={quote(text[:200], safe='')}") for text in some)
    if not operator:
        declassified = f"/proposals/new?tenant={tenants[0]}&action=declassify&entry="
        yield from (Visit(f"{declassified}web-{number}") for number in range(5))
        return
    yield from map(Visit, ["/policies", "/recall", "/health", "/dead-letters/replay"])
    yield from (Visit(f"/audit?who={quote(text[:100], safe='')}") for text in some)
    yield Visit("/health/checks", ())
    yield Visit("/policies/compare?before=in-force&after=home")
    compared = {"before": "in-force", "after": "text", "tenant": tenants[0]}
    for text in [policy, *some]:
        yield Visit("/policies/compare", tuple({**compared, "policy": text}.items()))
    yield Visit("/policies/evaluate", tuple({**compared, "policy": policy, "events": "50"}.items()))
    asked = {"tenant": tenants[0], "agent": "helper", "session": "s-1", "as": "reader", "k": "20"}
    for text in some:
        question, who = re.sub(r"[\x00-\x08]", "", text)[:500], re.sub(r"[\x00-\x1f\x7f]", "", text)[:60] or "x"
        for zone in ("guidance", "external"):
            yield Visit("/recall", tuple({**asked, "question": question, "principal": who, "zone": zone}.items()))


def links(html: str) -> Iterator[str]:
    """Yield the addresses of a page that a walk goes on to."""
    for found in map(unescape, _LINK.findall(html)):
        if _FOLLOWED.match(found):
            yield found


KINDS = {
    "/held/story/": "story",
    "/audit": "audit",
    "/held/entries/": "entry",
    "/held/groups/": "group",
    "/dead-letters/letter": "letter",
}
"""Pages of which there is one for each thing that is stored, by how their addresses begin."""


class Walk:
    """The pages that are still to be opened: each once, and of the kinds that ``most`` names so many at most."""

    def __init__(self, first: Iterator[Visit], most: Mapping[str, int]) -> None:
        self._waiting = list(first)[::-1]
        self._known = {one.path for one in self._waiting}
        self._left = {"story": STORIES_MAX, **most}

    def __iter__(self) -> Iterator[Visit]:
        while self._waiting:
            yield self._waiting.pop()

    def found(self, html: str) -> None:
        """Take in where a page leads to."""
        for path in links(html):
            kind = next((kind for begins, kind in KINDS.items() if path.startswith(begins)), "")
            place = path.partition("?")[0] if kind in ("story", "entry", "group") and "after=" not in path else path
            if place in self._known:
                continue
            self._known.add(place)
            self._left[kind] = self._left.get(kind, PAGES_MAX) - 1
            if self._left[kind] >= 0:
                self._waiting.append(Visit(path))


def pages(app: Starlette) -> set[str]:
    """Return the path of every page that a console has."""
    routes = [one for one in app.routes if isinstance(one, Route) and "GET" in (one.methods or ())]
    return {one.path for one in routes} - NO_PAGES


def page_of(app: Starlette, address: str) -> str | None:
    """Return the path of the page that answers an address; None where none does."""
    scope: dict[str, Any] = {"type": "http", "path": unquote(urlsplit(address).path), "method": "GET"}
    found = (one for one in app.routes if isinstance(one, Route) and one.matches(scope)[0] is Match.FULL)
    return next((one.path for one in found), None)
