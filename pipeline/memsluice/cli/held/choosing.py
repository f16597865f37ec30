"""Which held writes a decision is about: those that are named, or those of a group or a query, with their contents."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memsluice.cli.held import completing
from memsluice.cli.held.asking import fed_index, saved_query
from memsluice.cli.held.desk import ENTRIES_MAX, find_each
from memsluice.errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from memsluice.events.models import Action
    from memsluice.operations.held.collect import HeldReview
    from memsluice.operations.held.desk import HeldDesk
    from memsluice.operations.review.query import HeldQuery

Entries = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ENTRY]...", help="Event ids of held writes, 100 at most.", show_default=False),
]
OfGroup = Annotated[
    str | None,
    typer.Option(
        "--group",
        help="Those of this group, the newest 100 at most (`groups`).",
        autocompletion=completing.group,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command line names: entries, or a group, a query, a saved filter (those together: what is in all)."""

    entries: list[str]
    tenant: str | None
    offset: int | None
    group: str | None
    query: str | None
    filter_name: str | None

    @property
    def many(self) -> bool:
        """Whether a group or a query is named, and not each entry."""
        return (self.group, self.query, self.filter_name) != (None, None, None)


def check(wanted: Wanted) -> None:
    """Raise InvalidArgument where both ways of naming are used, or none, before anything is read."""
    if bool(wanted.entries) == wanted.many:
        raise InvalidArgument("name entries, or else a group, a query or a filter (--group, --query, --filter)")
    if wanted.many and wanted.offset is not None:
        raise InvalidArgument("--offset tells writes of one id apart: name one entry with it")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The entries that a decision is about, the oldest first; how many more are asked for; and the event ids of those
    whose contents their topic has no more."""

    seen: "list[HeldReview]"
    more: int = 0
    gone: tuple[str, ...] = ()


def choose(desk: "HeldDesk", home: Path | None, action: "Action", wanted: Wanted) -> Chosen:
    """Return the entries that a decision is about, with their contents.

    Where a query names no state, it is those that the decision is meant for. Raises NotFound where there are none,
    InvalidArgument, SealError.
    """
    if not wanted.many:
        return Chosen(find_each(desk, home, wanted.entries, wanted.tenant, wanted.offset))
    from memsluice.operations.review.hints import unknown

    query = _query(home, action, wanted)
    with fed_index(desk, home) as index:
        if wanted.group is not None:
            from memsluice.cli.held.groups import group_of

            query = query.narrowed(tenant=group_of(index, wanted.group, query).tenant)
        page = index.page(query, tenants=None, limit=ENTRIES_MAX)
        if not page.rows:
            told = unknown(index, query, tenants=None) or [f"nothing is held that {query.text() or 'waits'} asks for"]
            raise NotFound("; ".join(told))
        opened = index.opened_all(desk, page.rows)
        gone = tuple(row.event_id for row in page.rows if row.seen.entry.name not in opened)
        seen = [opened[row.seen.entry.name] for row in reversed(page.rows) if row.seen.entry.name in opened]
        return Chosen(seen, page.found - len(page.rows), gone)


def _query(home: Path | None, action: "Action", wanted: Wanted) -> "HeldQuery":
    from memsluice.events.models import Action
    from memsluice.operations.held.entries import HeldState
    from memsluice.operations.review.query import WAITING, HeldQuery

    query = saved_query(home, wanted.tenant, wanted.query, wanted.filter_name)
    query = query if wanted.group is None else query.also(HeldQuery(group=wanted.group))
    if action is Action.REOPEN and query.states == WAITING:
        return query.narrowed(states=frozenset({HeldState.REJECTED}))
    return query
