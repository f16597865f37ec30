"""``memsluice blast-radius``: everything that was made from an entry, or that a source led to, from the audit alone."""

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json, TenantOfEntry
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms

if TYPE_CHECKING:
    from memsluice.operations.provenance.spread import Radius, Spread

app = typer.Typer(add_completion=False)
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENTRY|SOURCE",
        help="An event id; or session:, agent:, principal:, key:, observation:, origin: or entry: and a name.",
    ),
]
SHOWN_MAX = 100
NOT_FOLLOWED = "incomplete: not every descendant was followed to its end, so this may not be all"


@app.command("blast-radius")
def blast_radius(
    source: SourceArgument, tenant: TenantOfEntry = None,
    limit: Annotated[int, typer.Option(min=1, max=50_000, help="Rows at most; the nearest descendants.")] = SHOWN_MAX,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """List every descendant of an entry or source, landed or held: its children, and what sessions that saw it wrote.

    The result is incomplete where there are more descendants than fit in memory, or than were followed.
    """
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.provenance.sources import parse
    from memsluice.operations.provenance.spread import radius
    from memsluice.operations.trace.opening import audit_topic
    from memsluice.topics.names import PARTITIONS

    with audit_topic(home) as audit, waiting("reading the audit"):
        found = radius(audit, KeyStore(home).keyring(), parse(source), tenant, PARTITIONS)
    if as_json:
        print(json.dumps(as_data(found, source, limit, wall_ms())))
    else:
        console = Console(highlight=False, soft_wrap=True)
        if not found.spreads:
            say_absent(source, tenant, found.read)
        for spread in found.spreads.values():
            show(console, spread, limit, wall_ms())
        sum_up(console, found)
    if not found.whole:
        raise typer.Exit(ExitCode.INCOMPLETE)
    if not found.spreads:
        raise typer.Exit(ExitCode.NOT_FOUND)


def show(console: Console, spread: "Spread", limit: int, now_ms: int) -> None:
    """Print one tenant's part, the nearest first. Names that somebody chose stand last and act on no terminal."""
    from memsluice.escaping import visible

    say_namesake(console, spread)
    rows = sorted(spread.reached.values(), key=lambda one: (one.depth, one.entry.offset))
    console.print(Text(f"{visible(spread.tenant, 80)}: {visible(str(spread.source), 160)}", "bold"))
    for one in rows[:limit]:
        entry = one.entry
        style = {"guidance": "red", "held": "yellow", "external": "yellow"}.get(entry.standing(now_ms).value, "dim")
        line = Text(f"  {one.depth:>2}  ")
        line.append(f"{entry.standing(now_ms).value:<9}", style)
        line.append(f" tier {entry.placed.tier}  {'tainted' if entry.tainted else 'clean  '}  ")
        line.append(visible(entry.event_id, 160), "bold")
        line.append(f"  {visible(one.why, 160)}", "dim")
        if entry.looked_back:
            line.append(f"  look back by {visible(entry.placed.by, 160)}", "dim")
        console.print(line)
    if len(rows) > limit:
        console.print(Text(f"  {len(rows) - limit} more are not shown: raise --limit", "yellow"))
    for session, touched in list(spread.sessions.items())[:limit]:
        after = ", revoked since" if touched.revoked else ""
        console.print(Text(f"  session {visible(session, 160)}  {visible(touched.why, 160)}{after}", "dim"))


def say_absent(source: str, tenant: str | None, read: int) -> None:
    """Say on standard error that nobody has such an entry, or that the source led to nothing that is in the audit."""
    from memsluice.escaping import visible
    from memsluice.operations.provenance.sources import ENTRY, parse

    who = "no tenant has" if tenant is None else f"tenant {visible(tenant, 80)} does not have"
    asked = parse(source)
    kind = "an entry" if asked.kind == ENTRY else "anything from"
    Console(stderr=True, soft_wrap=True, highlight=False).print(
        Text(f"not found: {who} {kind} {visible(str(asked), 160)} in the audit, of {read} records", "yellow")
    )


def say_namesake(console: Console, spread: "Spread") -> None:
    """Print that an entry's id reads like the source that was asked for: producers choose ids."""
    from memsluice.escaping import visible

    if spread.namesake:
        name = visible(f"entry:{spread.source}", 160)
        console.print(Text(f"an entry has the same id as this source; to ask about the entry, write {name}", "yellow"))


def sum_up(console: Console, found: "Radius") -> None:
    """Print how many there are, where, and what is not shown and why."""
    reached = [one.entry for spread in found.spreads.values() for one in spread.reached.values()]
    where = Counter(entry.standing(wall_ms()).value for entry in reached)
    told = ", ".join(f"{count} {name}" for name, count in where.most_common()) or "nothing"
    sessions = sum(len(spread.sessions) for spread in found.spreads.values())
    if found.spreads:
        shown = f"{len(reached)} entries ({told}), {sessions} sessions, of {found.read} audit records"
        console.print(Text(shown, "dim"))
    if found.left_out:
        console.print(Text(f"incomplete: {found.left_out} further descendants did not fit in memory", "red"))
    elif not found.whole:
        console.print(Text(NOT_FOLLOWED, "red"))
    if found.unverified:
        console.print(
            Text(f"{found.unverified} audit records do not verify under this home's keys and are not counted", "red")
        )


def as_data(found: "Radius", source: str, limit: int, now_ms: int) -> dict[str, object]:
    """Return a blast radius as JSON values."""
    return {
        "source": source,
        "read": found.read,
        "unverified": found.unverified,
        "left_out": found.left_out,
        "whole": found.whole,
        "tenants": [
            {
                "tenant": spread.tenant,
                "found": len(spread.reached),
                "entries": [
                    {**one.entry.as_data(now_ms), "why": one.why, "depth": one.depth}
                    for one in sorted(spread.reached.values(), key=lambda one: (one.depth, one.entry.offset))[:limit]
                ],
                "sessions": [
                    {"session": name, "why": touched.why, "depth": touched.depth, "revoked": touched.revoked}
                    for name, touched in spread.sessions.items()
                ],
            }
            for spread in found.spreads.values()
        ],
    }
