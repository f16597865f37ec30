"""``memsluice quarantine``: what is held, why, and what a reviewer decides about it."""

import json
import uuid
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.held.desk import (
    Entry,
    Home,
    Json,
    MinScore,
    Offset,
    Reason,
    Since,
    Source,
    Tenant,
    Until,
    Wait,
    Why,
    Yes,
    build_filter,
    find_one,
    look_at,
    open_desk,
    sum_up,
)
from memsluice.cli.held.replay import replay
from memsluice.cli.held.withdrawn import list_withdrawn, look_back, tell_withdrawn
from memsluice.clock import wall_ms

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Held writes: see why, release or reject them.")
EXIT_REFUSED, EXIT_NO_ANSWER = 2, 3
LISTED_MAX = 100
RECENTLY = "24h"
"""How far back a list looks for what look back took out, unless it is told: an audit is long, a list is quick."""


@app.command("list")
def list_(
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, or is too old to be.")] = False,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="What look back took out, instead.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows at most; the oldest.")] = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Show what is held, oldest first: why, from where, how long, and what it says.

    `--withdrawn` shows what had landed, until a later recall showed it in a new light (look back).
    """
    from memsluice.cli.render.held import as_data, entries

    if withdrawn:
        list_withdrawn(tenant, since, limit, home, as_json=as_json)
        return
    wanted = build_filter(tenant, reason, since, until, source, min_score, everything=everything)
    with open_desk(home) as desk:
        found = look_at(desk, home, wanted)
        if as_json:
            print(json.dumps(as_data(found, limit, wall_ms())))
            return
        console = Console(highlight=False)
        if found.seen:
            console.print(entries(found.seen[:limit], wall_ms()))
        sum_up(console, found, desk, limit)
        tell_withdrawn(console, look_back(desk, tenant, since or RECENTLY), since or RECENTLY)


@app.command()
def show(entry: Entry, tenant: Tenant = None, offset: Offset = None, as_json: Json = False, home: Home = None) -> None:
    """Show one held write whole: content with what triggered marked, numbers, source, lineage, and what was decided.

    Control, zero-width and bidi characters are spelled out: <U+202E>.
    """
    from memsluice.cli.render.held import one_as_data, review

    with open_desk(home) as desk:
        seen = find_one(desk, home, entry, tenant, offset)
        if as_json:
            print(json.dumps(one_as_data(seen, wall_ms(), whole=True)))
        else:
            Console(highlight=False).print(review(seen, wall_ms()))


@app.command()
def stats(tenant: Tenant = None, since: Since = None, as_json: Json = False, home: Home = None) -> None:
    """Count what is held: by state, and what waits by tenant, reason and channel; and how long the oldest waits.

    Below stands how many entries look back took out of memory: they had landed, and are not held.
    """
    from memsluice.cli.render.held import counts
    from memsluice.operations.held.collect import stats as count

    with open_desk(home) as desk:
        found = look_at(desk, home, build_filter(tenant, None, since, None, None, None, everything=True))
        told, taken = count(found), look_back(desk, tenant, since)
        if as_json:
            by = {name: dict(getattr(told, name)) for name in ("states", "tenants", "reasons", "sources")}
            more = {"unverified": found.unverified, "withdrawn": taken.waiting}
            print(json.dumps({**by, "oldest_ms": told.oldest_ms, **more}))
            return
        console = Console(highlight=False)
        console.print(counts(told, wall_ms()))
        tell_withdrawn(console, taken, since)
        sum_up(console, found, desk, len(found.seen))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; must not exist. It will hold content: mode 0600.")],
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what was decided, or is too old to be.")] = False,
    home: Home = None,
) -> None:  # fmt: skip
    """Write held writes with content and verdict to a file, one JSON object a line, ASCII alone."""
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


@app.command()
def release(
    entry: Entry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="It had landed, and look back took it out.")] = False,
    home: Home = None,
) -> None:  # fmt: skip
    """Let a held write land, as if it had been accepted. Signed, bound to its content; never overrides taint.

    Refused while its key holds something newer. Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    if withdrawn:
        from memsluice.cli.signed_command import give
        from memsluice.events.models import Action

        give(Action.RELEASE, entry, tenant, (), why, None, home, yes=yes, wait_s=wait, as_json=False)
        return
    _decide("release", entry, tenant, offset, why, yes, wait, home)


@app.command()
def reject(
    entry: Entry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    home: Home = None,
) -> None:  # fmt: skip
    """Close a held write for good. Signed, bound to its content.

    Exit code 2 where the gate refuses, 3 where no answer came in time.
    """
    _decide("reject", entry, tenant, offset, why, yes, wait, home)


def _decide(
    what: str, entry: str, tenant: str | None, offset: int | None, why: str, yes: bool, wait_s: float, home: Path | None
) -> None:
    from datetime import UTC, datetime

    from memsluice.cli.render.held import answered, to_be_signed
    from memsluice.events.models import Action
    from memsluice.operations.commands.answers import Bookmark
    from memsluice.operations.held.commands import answers, order
    from memsluice.operations.held.entries import Outcome
    from memsluice.topics.names import PARTITIONS

    console = Console(highlight=False)
    with open_desk(home) as desk:
        seen = find_one(desk, home, entry, tenant, offset)
        command = order(seen.entry, Action(what), str(uuid.uuid4()), datetime.now(UTC), why)
        console.print(to_be_signed(seen, command, desk.signer(command.tenant)))
        if not yes:
            typer.confirm(f"Sign this {what}?", abort=True)
        since = Bookmark.at(desk.audit, command.tenant, PARTITIONS)
        console.print(Text(f"published to {desk.publish([command])[0]}"))
        desk.settle()
        told = answers(desk.audit, desk.keys.keyring(), [command], [since], wait_s).get(command.id)
        ruled = None if told is None else told.ruled
        console.print(answered(ruled, command, wait_s))
        if ruled is None:
            raise typer.Exit(EXIT_NO_ANSWER)
        if ruled.outcome is Outcome.REFUSED:
            raise typer.Exit(EXIT_REFUSED)


app.command()(replay)
