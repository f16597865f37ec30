"""``memsluice quarantine``: list, show and decide held writes."""

import json
import uuid
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli import exit_codes
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
from memsluice.cli.held.replay import replay
from memsluice.cli.held.withdrawn import list_withdrawn, look_back, tell_withdrawn
from memsluice.cli.options import Home, Json, Limit, Reason, Since, Tenant, Until, Wait, Why, Yes
from memsluice.clock import wall_ms

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Held writes: list, show, release, reject, replay.")
LISTED_MAX = 100
RECENTLY = "24h"
"""How far back `list` counts withdrawn entries, unless --since says: reading the whole audit takes long."""


@app.command("list")
def list_(
    tenant: Tenant = None, reason: Reason = None, since: Since = None, until: Until = None, source: Source = None,
    min_score: MinScore = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were decided, or lapsed.")] = False,
    refused: Refused = False,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Entries that look back withdrew.")] = False,
    limit: Limit = LISTED_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """List held writes, oldest first: the reason, the source, the age, and the beginning of the content.

    With --refused, list writes that were rejected; a replay under a later policy (`replay --refused`) may let them in.
    With --withdrawn, list entries that had landed and were withdrawn later, when a recall re-examined them (look back).
    """
    from memsluice.cli.render.held import as_data, entries

    if withdrawn:
        list_withdrawn(tenant, since, limit, home, as_json=as_json)
        return
    wanted = build_filter(tenant, reason, since, until, source, min_score, everything=everything, refused=refused)
    with open_desk(home) as desk:
        found = look_at(desk, home, wanted)
        if as_json:
            print(json.dumps(as_data(found, limit, wall_ms())))
            return
        console = Console(highlight=False)
        if found.seen:
            console.print(entries(found.seen[:limit], wall_ms()))
        sum_up(console, found, desk, limit, refused=refused)
        tell_withdrawn(console, look_back(desk, tenant, since or RECENTLY), since or RECENTLY)


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
    everything: Annotated[bool, typer.Option("--all", help="Also those that were decided, or lapsed.")] = False,
    home: Home = None,
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


@app.command()
def release(
    entry: HeldEntry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Return an entry that look back withdrew.")] = False,
    home: Home = None,
) -> None:  # fmt: skip
    """Release a held write: it lands as if it had been accepted. Signed, bound to its content; taint stays.

    The gate refuses it while a newer entry lies under the same key.
    """
    if withdrawn:
        from memsluice.cli.signed_command import give
        from memsluice.events.models import Action

        give(Action.RELEASE, entry, tenant, (), why, None, home, yes=yes, wait_s=wait, as_json=False)
        return
    _decide("release", entry, tenant, offset, why, yes, wait, home)


@app.command()
def reject(
    entry: HeldEntry, tenant: Tenant = None, offset: Offset = None, why: Why = "", yes: Yes = False, wait: Wait = 30.0,
    home: Home = None,
) -> None:  # fmt: skip
    """Reject a held or refused write for good: no replay lets it in. Signed, bound to its content."""
    _decide("reject", entry, tenant, offset, why, yes, wait, home)


def _decide(
    what: str, entry: str, tenant: str | None, offset: int | None, why: str, yes: bool, wait_s: float, home: Path | None
) -> None:
    from datetime import UTC, datetime

    from memsluice.cli.render.held import answered, to_be_signed
    from memsluice.events.models import Action
    from memsluice.operations.commands.answers import Bookmark
    from memsluice.operations.held.commands import answers, order
    from memsluice.operations.held.entries import CommandOutcome, HeldState
    from memsluice.recall.show import moment
    from memsluice.topics.names import PARTITIONS

    console = Console(highlight=False)
    with open_desk(home) as desk:
        seen = find_one(desk, home, entry, tenant, offset)
        command = order(seen.entry, Action(what), str(uuid.uuid4()), datetime.now(UTC), why)
        console.print(to_be_signed(seen, command, desk.signer(command.tenant)))
        if seen.state is HeldState.LAPSED:  # the gate goes by the broker's clock and its own row, and has the last word
            lapsed = f"by this machine's clock it lapsed on {moment(seen.until_ms)}; the gate may know it no more"
            console.print(Text(lapsed, style="yellow"), soft_wrap=True)
        if not yes:
            typer.confirm(f"Sign this {what}?", abort=True)
        since = Bookmark.at(desk.audit, command.tenant, PARTITIONS)
        console.print(Text(f"published to {desk.publish([command])[0]}"))
        desk.settle()
        told = answers(desk.audit, desk.keys.keyring(), [command], [since], wait_s).get(command.id)
        ruled = None if told is None else told.ruled
        console.print(answered(ruled, command, wait_s))
        if ruled is None or ruled.outcome is CommandOutcome.REFUSED:
            raise typer.Exit(exit_codes.of_answers(missing=ruled is None, refused=True))


app.command()(replay)
