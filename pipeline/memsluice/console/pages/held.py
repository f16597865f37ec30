"""Held writes in groups and one by one, newest first, as far as a filter asks for them."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memsluice.console.asking import serving, visitor
from memsluice.console.errors import problem
from memsluice.console.menu import Item
from memsluice.console.rendering import page
from memsluice.console.visitors import Visitor
from memsluice.errors import BrokerError, ConfigError, InvalidArgument, NotFound, SealError
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.entries import HeldState
from memsluice.operations.review.groups import GroupCursor
from memsluice.operations.review.hints import unknown
from memsluice.operations.review.index import Name, ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import Cursor, HeldRow

PAGE = 50
WHOLE_PAGE = 20
"""Entries of a group's page, which shows their whole contents."""
FACETS = ("tenant", "reason", "state", "channel", "policy")
FACET_VALUES_MAX = 8
AFTER_CHARS_MAX = 80


def groups(request: Request) -> Response:
    """Show the groups of what a filter asks for, the one that grew last first."""
    who, told = visitor(request), serving(request)
    asked, wrong = asked_of(request)
    after = GroupCursor.parse(text) if (text := _after(request)) else None
    found = None if asked is None else told.index.groups(asked, tenants=who.tenants, after=after, limit=PAGE)
    empty = asked is not None and found is not None and not found.groups and after is None
    return page(
        request, "groups.html", found=found, **_common(request, who, asked, wrong),
        hint=hint(told.index, asked, who) if empty and asked is not None else "",
    )  # fmt: skip


def entries(request: Request) -> Response:
    """Show the entries that a filter asks for, newest first."""
    who, told = visitor(request), serving(request)
    asked, wrong = asked_of(request)
    after = Cursor.parse(text) if (text := _after(request)) else None
    found = None if asked is None else told.index.page(asked, tenants=who.tenants, after=after, limit=PAGE)
    empty = asked is not None and found is not None and not found.rows and after is None
    return page(
        request, "entries.html", found=found, **_common(request, who, asked, wrong),
        hint=hint(told.index, asked, who) if empty and asked is not None else "",
    )  # fmt: skip


def group(request: Request) -> Response:
    """Show one group: what its members have in common, what differs, and each member, whole for who may see it."""
    who, told = visitor(request), serving(request)
    asked, wrong = asked_of(request, "state:any")
    if asked is None:
        raise InvalidArgument(wrong)
    name = request.path_params["group"]
    whole = told.index.group(name, tenants=who.tenants)
    if whole is None:
        raise NotFound("there is no such group among the held writes that you may see, or all of it has lapsed")
    after = Cursor.parse(text) if (text := _after(request)) else None
    narrowed = asked.narrowed(group=name, tenant=whole.tenant)
    limit = WHOLE_PAGE if who.sees_content else PAGE
    found = told.index.page(narrowed, tenants=who.tenants, after=after, limit=limit)
    opened, unread = contents(request, found.rows)
    return page(
        request, "group.html", group=whole, found=found, opened=opened, unread=unread, q=asked.text(),
        within_group=narrowed.text(), fed_ms=told.index.fed_ms,
    )  # fmt: skip


def contents(request: Request, rows: tuple[HeldRow, ...]) -> tuple[dict[Name, HeldReview], str]:
    """Return the entries of rows with their contents, by name, for who may see them, and why some could not be read."""
    who, told = visitor(request), serving(request)
    if not who.sees_content:
        return {}, ""
    try:
        with told.desk() as desk:
            return {**told.index.opened_all(desk, rows)}, ""
    except (BrokerError, ConfigError, SealError) as error:
        return {}, problem(error)[2]


def asked_of(request: Request, default: str = "") -> tuple[HeldQuery | None, str]:
    """Return what the address asks for; where its filter cannot be read None, and why."""
    try:
        return HeldQuery.parse(request.query_params.get("q", default), serving(request).clock()), ""
    except InvalidArgument as error:
        return None, str(error)


def hint(index: ReviewIndex, asked: HeldQuery, who: Visitor) -> str:
    """Return what may be wrong with a filter that finds nothing: a value that no held write has. "" where none is."""
    return "; ".join(unknown(index, asked, tenants=who.tenants))


def _common(request: Request, who: Visitor, asked: HeldQuery | None, wrong: str) -> dict[str, Any]:
    """Return what both lists show: the filter, why it cannot be read, and values to filter by."""
    told = serving(request)
    q = request.query_params.get("q", "") if asked is None else asked.text()
    facets = {
        field: [(value, narrow(asked, field, value), count) for value, count in
                told.index.values(field, tenants=who.tenants)[:FACET_VALUES_MAX]]
        for field in FACETS
    }  # fmt: skip
    return {
        "q": q, "wrong": wrong, "facets": facets, "saved": told.index.saved.all(tenants=who.tenants),
        "counts": told.index.counts(tenants=who.tenants), "fed_ms": told.index.fed_ms,
    }  # fmt: skip


def narrow(asked: HeldQuery | None, field: str, value: str) -> str:
    """Return the text of a filter with another value in a field."""
    if field == "state":
        return (asked or HeldQuery()).narrowed(states=frozenset({HeldState(value)})).text()
    return (asked or HeldQuery()).narrowed(**{field: value}).text()


def _after(request: Request) -> str:
    return request.query_params.get("after", "")[:AFTER_CHARS_MAX]


MENU = (Item("Held writes", "/held", 10),)
ROUTES = (
    Route("/held", groups, methods=["GET"]),
    Route("/held/entries", entries, methods=["GET"]),
    Route("/held/groups/{group}", group, methods=["GET"]),
)
