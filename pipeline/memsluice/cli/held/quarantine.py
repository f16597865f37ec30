"""``memsluice quarantine``: list, show and decide held writes."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from memsluice.cli.held import filters
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
)
from memsluice.cli.held.decisions import reject, release, reopen
from memsluice.cli.held.desk import (
    HeldEntry,
    MinScore,
    Offset,
    Refused,
    Source,
    build_filter,
    find_one,
    look_at,
    open_desk,
    same_text_as,
    sum_up,
)
from memsluice.cli.held.groups import groups
from memsluice.cli.held.noting import note
from memsluice.cli.held.pages import Known, sum_up_page
from memsluice.cli.held.replay import replay
from memsluice.cli.held.withdrawn import list_withdrawn, look_back, tell_withdrawn
from memsluice.cli.options import Home, Json, Reason, Since, Tenant, Until
from memsluice.clock import wall_ms

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Held writes: list, group, show, decide, note, replay."
)
LISTED_MAX = 100
RECENTLY = "24h"
"""How far back `list` counts withdrawn entries, unless --since says: reading the whole audit takes long."""


@app.command("list")
def list_(
    tenant: HeldTenant = None, reason: HeldReason = None, since: Since = None, until: Until = None,
    source: Source = None, min_score: MinScore = None, state: State = None, everything: Everything = False,
    refused: Refused = False,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Entries that look back withdrew.")] = False,
    query: Query = None, filter_name: FilterName = None, after: After = None, limit: Newest = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """List held writes, newest first: the reason, the source, the age, and the beginning of the content.

    With --refused, list writes that were rejected; a replay under a later policy (`replay --refused`) may let them in.
    With --withdrawn, list entries that had landed and were withdrawn later, when a recall re-examined them (look back).
    """
    from memsluice.cli.render.held import entries
    from memsluice.cli.render.pages import page_as_data
    from memsluice.operations.review.rows import Cursor

    if withdrawn:
        list_withdrawn(tenant, since, limit, home, as_json=as_json)
        return
    place = None if after is None else Cursor.parse(after)
    wanted = narrowed(
        saved_query(home, tenant, query, filter_name), reason, since, until, source, min_score, state,
        everything=everything, refused=refused,
    )  # fmt: skip
    with open_desk(home) as desk, fed_index(desk, home) as index:
        page, now_ms = index.page(wanted, tenants=None, after=place, limit=limit), wall_ms()
        known = Known.of(index, wanted, empty=not page.found)
        if as_json:
            print(json.dumps(page_as_data(page, known.total, known.unverified, known.hints, now_ms)))
            return
        console = Console(highlight=False)
        if page.rows:
            console.print(entries([row.seen for row in page.rows], now_ms))
        sum_up_page(console, page, known, wanted, desk.name, first=place is None)
        tell_withdrawn(console, look_back(desk, wanted.tenant, since or RECENTLY), since or RECENTLY)


@app.command()
def show(
    entry: HeldEntry, tenant: Tenant = None, offset: Offset = None, as_json: Json = False, home: Home = None
) -> None:
    """Show one held write: its content with the suspicious parts marked, scores, source, lineage, and decisions.

    Where another write of the same text got another decision, it says which, and what differed.

    Control, zero-width and bidirectional characters are written out: <U+202E>.
    """
    from memsluice.cli.render.held import one_as_data, review

    with open_desk(home) as desk:
        seen = find_one(desk, home, entry, tenant, offset)
        same_text = same_text_as(desk, seen)
        if as_json:
            print(json.dumps({**one_as_data(seen, wall_ms(), whole=True), "same_text": same_text.as_data()}))
        else:
            Console(highlight=False).print(review(seen, wall_ms(), same_text))


@app.command()
def stats(tenant: Tenant = None, since: Since = None, as_json: Json = False, home: Home = None) -> None:
    """Count held writes by state; and those that wait by tenant, reason and channel, with the age of the oldest.

    Writes that were rejected, and are kept for a replay, are counted beside them, in lines that begin with `refused`.
    The last line counts entries that look back withdrew from memory: they had landed, and are not held.
    """
    from memsluice.cli.render.held import counts, counts_as_data
    from memsluice.operations.held.collect import stats as count

    with open_desk(home) as desk:
        found = look_at(desk, home, build_filter(tenant, None, since, None, None, None, everything=True))
        told, taken = count(found), look_back(desk, tenant, since)
        if as_json:
            more = {"unverified": found.unverified, "withdrawn": taken.waiting}
            print(json.dumps({**counts_as_data(told), **more}))
            return
        console = Console(highlight=False)
        console.print(counts(told, wall_ms()))
        tell_withdrawn(console, taken, since)
        sum_up(console, found, desk, len(found.seen))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="New file to write, mode 0600: it will hold content.")],
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Everything = False, home: Home = None,
) -> None:  # fmt: skip
    """Write held writes with content and verdict to a file: one JSON object per line, in ASCII."""
    from memsluice.cli.render.held import one_as_data
    from memsluice.operations.held.collect import look_whole

    wanted = build_filter(tenant, reason, since, until, source, min_score, everything=everything)
    with open_desk(home) as desk:
        found = look_at(desk, home, wanted)
        file.touch(mode=0o600, exist_ok=False)
        with file.open("w", encoding="ascii") as out:
            for seen in look_whole(desk.held, desk.keys.keyring(), found.seen):
                out.write(json.dumps(one_as_data(seen, wall_ms(), whole=True)) + "\n")
        sum_up(Console(stderr=True, highlight=False), found, desk, len(found.seen))


app.command()(groups)
app.add_typer(filters.app, name="filters")
app.command()(release)
app.command()(reject)
app.command()(reopen)
app.command()(note)
app.command()(replay)
