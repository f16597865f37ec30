"""``memsluice quarantine groups``: held writes of one rule, one writer and near contents, as one."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from memsluice.cli.held import completing
from memsluice.cli.held.asking import (
    After,
    Everything,
    FilterName,
    HeldReason,
    HeldTenant,
    Newest,
    Query,
    State,
    fed_index,
    narrowed,
    saved_query,
    say,
)
from memsluice.cli.held.desk import MinScore, Refused, Source, open_desk
from memsluice.cli.held.pages import Known, broken, sum_up_page
from memsluice.cli.options import Home, Json, Since, Until
from memsluice.clock import wall_ms
from memsluice.errors import NotFound
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.review.groups import GroupRow
    from memsluice.operations.review.index import ReviewIndex
    from memsluice.operations.review.query import HeldQuery

LISTED_MAX = 50
GroupId = Annotated[
    str | None,
    typer.Argument(
        metavar="[GROUP]", help="Group to show, with its members.", autocompletion=completing.group, show_default=False
    ),
]


def groups(
    group: GroupId = None, tenant: HeldTenant = None, reason: HeldReason = None, since: Since = None,
    until: Until = None, source: Source = None, min_score: MinScore = None, state: State = None,
    everything: Everything = False, refused: Refused = False, query: Query = None, filter_name: FilterName = None,
    after: After = None, limit: Newest = LISTED_MAX, as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """List groups of held writes that one rule holds, one writer wrote, and that say nearly the same.

    The one that grew last comes first, with its count, first and last time, an hourly trend of a day, and an example.
    With a GROUP, list its members, whatever their state, and what differs in them.
    """
    from memsluice.operations.held.entries import HeldState
    from memsluice.operations.review.query import WAITING

    wanted = narrowed(
        saved_query(home, tenant, query, filter_name), reason, since, until, source, min_score, state,
        everything=everything, refused=refused,
    )  # fmt: skip
    with open_desk(home) as desk, fed_index(desk, home) as index:
        if group is None:
            _list(index, wanted, after, limit, desk.name, as_json=as_json)
            return
        if wanted.states == WAITING and state is None:
            wanted = wanted.narrowed(states=frozenset(HeldState))
        _show(index, group, wanted, after, limit, desk.name, as_json=as_json)


def _list(
    index: "ReviewIndex", wanted: "HeldQuery", after: str | None, limit: int, where: str, *, as_json: bool
) -> None:
    from memsluice.cli.render.pages import groups as rendered
    from memsluice.cli.render.pages import groups_as_data
    from memsluice.operations.review.groups import GroupCursor

    place = None if after is None else GroupCursor.parse(after)
    page, now_ms = index.groups(wanted, tenants=None, after=place, limit=limit), wall_ms()
    known = Known.of(index, wanted, empty=not page.groups and place is None)
    if as_json:
        print(json.dumps(groups_as_data(page, known.unverified, known.hints, now_ms)))
        return
    console = Console(highlight=False)
    if page.groups:
        console.print(rendered(page, now_ms))
    many = "1 group" if len(page.groups) == 1 else f"{len(page.groups)} groups"
    writes = sum(one.count for one in page.groups)
    told = [(f"{many} with {writes} of {known.total} writes, from {where}", "dim")]
    told += [(hint, "yellow") for hint in known.hints]
    if page.after is not None:
        told.append((f"more follow: narrow the filter, or go on with --after {page.after}", "yellow"))
    say(console, told + broken(known.unverified))


def _show(
    index: "ReviewIndex", group: str, wanted: "HeldQuery", after: str | None, limit: int, where: str, *, as_json: bool
) -> None:
    from memsluice.cli.render.held import differing, entries
    from memsluice.cli.render.pages import group_as_data, heading, page_as_data
    from memsluice.operations.review.decide import Differences
    from memsluice.operations.review.groups import LOOKED_AT_MAX
    from memsluice.operations.review.rows import Cursor

    place = None if after is None else Cursor.parse(after)
    row = group_of(index, group, wanted)
    members = wanted.narrowed(group=row.id, tenant=row.tenant)
    page, now_ms = index.page(members, tenants=None, after=place, limit=limit), wall_ms()
    newest = index.page(members, tenants=None, limit=LOOKED_AT_MAX).rows
    differs = replace(Differences.within(one.seen for one in newest), chars=row.chars)
    known = Known.of(index, members, empty=False)
    if as_json:
        told = page_as_data(page, known.total, known.unverified, known.hints, now_ms)
        values = {field: dict(counts) for field, counts in differs.fields.items()}
        print(json.dumps({"group": group_as_data(row, now_ms), "differs": values, **told}))
        return
    console = Console(highlight=False)
    for part in heading(row, now_ms):
        console.print(part)
    console.print(differing(differs, f"the newest {len(newest)}" if row.count > len(newest) else f"{row.count} in all"))
    if page.rows:
        console.print(entries([one.seen for one in page.rows], now_ms))
    sum_up_page(console, page, known, members, where, first=place is None)


def group_of(index: "ReviewIndex", group: str, wanted: "HeldQuery") -> "GroupRow":
    """Return a group, of the members that a query asks for. Raises NotFound."""
    found = index.group(group, tenants=None, query=wanted)
    if found is None:
        known = index.group(group, tenants=None)
        told = "no member of group {} is asked for" if known else "there is no group {} among the held writes"
        raise NotFound(f"{told.format(visible(group, 80))}: `memsluice quarantine groups` lists them")
    return found
