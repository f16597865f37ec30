"""``memsluice rescreen``: decide past events again under another policy. Reads only."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.options import Home, Json, Since, Tenant, Until
from memsluice.cli.terminal import waiting
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.rescreen.report import RescreenReport
    from memsluice.operations.rescreen.rerun import Part

MaxEvents = Annotated[int, typer.Option(min=1, max=500_000, help="Records of each partition at most; the oldest.")]
LISTED = 20
ID_CHARS_MAX = 64
app = typer.Typer(add_completion=False)


@app.command()
def rescreen(
    policy: Annotated[Path, typer.Option("--policy", help="The candidate: a policy file.")],
    tenant: Tenant = None, since: Since = None, until: Until = None, max_events: MaxEvents = 50_000,
    control: Annotated[
        bool, typer.Option("--control/--no-control", help="Also decide under the policies of that time, to compare.")
    ] = True,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Changed events to list at most.")] = LISTED,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Decide past events again under a candidate policy and report what would change. Nothing is published.

    Everything that the sealed log still holds is decided in order, from an empty state, by the gate's own code; --since
    and --until only choose what is reported.
    """
    from memsluice.deployment.home import Home as Place
    from memsluice.gate.policy import model as policies
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.policies import files
    from memsluice.operations.rescreen.history import PolicyBook
    from memsluice.operations.rescreen.opening import log_of, wanted
    from memsluice.operations.rescreen.report import RescreenReport
    from memsluice.operations.rescreen.rerun import Rerun

    candidate, want = files.load(policy), wanted(tenant, since, until, max_events)
    book = PolicyBook([policies.load_or_default(Place.at(home).policy_file)]) if control else None
    with open_desk(home) as desk:
        run, report = Rerun(log_of(desk), candidate, book), RescreenReport()
        with waiting("reading the sealed log") as status:
            for one in run.events(want, lambda read: status.update(f"{read} records decided again")):
                report.take(one)
    if as_json:
        print(json.dumps({"candidate": candidate.default.digest, **report.as_data(run.parts, limit)}))
        return
    console = Console(highlight=False)
    for line in history_told(run.parts, tenant, report.compared + report.unknown):
        console.print(line, soft_wrap=True)
    _show(console, report, limit, control=control)


def history_told(parts: Sequence["Part"], tenant: str | None, events: int) -> Iterator[Text]:
    """Say how far back the history goes, what of it could not be used, and whether no event was of the tenant."""
    if not parts and tenant is None:
        yield Text("The sealed log is empty.")
    if tenant is not None and not events:
        yield Text(
            f"the sealed log has no event of tenant {visible(tenant, ID_CHARS_MAX)}, or none in this period", "yellow"
        )
    for part in parts:
        begins = datetime.fromtimestamp(part.first_ms / 1000, UTC).isoformat(timespec="seconds")
        told = f"partition {part.partition}: history begins at offset {part.first_offset}, {begins}; "
        told += f"{part.read} records"
        if not part.whole:
            told += ". Older records are past retention, so the state begins empty there."
        yield Text(told, style="dim" if part.whole else "yellow")
        if part.unverified:
            yield Text(
                f"  {part.unverified} records do not verify under this home's keys and are left out", style="red"
            )
        if part.beyond:
            yield Text("  more records were not read: raise --max-events", style="yellow")


def _show(console: Console, report: "RescreenReport", limit: int, *, control: bool) -> None:
    told = f"{report.changed} of {report.compared} events would be decided differently"
    if report.same_other_reasons:
        told += f"; {report.same_other_reasons} the same for other reasons"
    console.print(Text(told, style="bold"))
    if report.unknown:
        console.print(f"{report.unknown} events have no verdict in the audit, so there is nothing to compare them with")
    if report.pairs:
        table = Table("events", "tenant", "type", "before", "after", box=None, pad_edge=False)
        for (tenant, type_, before, after), count in report.pairs.most_common(limit or None):
            kind = type_.removeprefix("memory.").removesuffix(".v1")
            table.add_row(str(count), Text(visible(tenant, ID_CHARS_MAX)), Text(visible(kind)), before, after)
        console.print(table)
    if reasons := report.other_reasons():
        table = Table("reason of writes", "before", "after", box=None, pad_edge=False)
        for code, old, new in reasons[:LISTED]:
            table.add_row(Text(visible(code)), str(old), str(new))
        console.print(table)
    for name, (old, new) in (("landed in shadow mode", report.shadowed), ("taken back", report.taken_back)):
        if old or new:
            console.print(f"{name}: {old} before, {new} after")
    if control:
        _control(console, report)
    _list(console, report, limit)


def _control(console: Console, report: "RescreenReport") -> None:
    """Say how much of the audit the run reproduces under the policies of that time: how far it can be relied on."""
    checked = report.reproduced + report.not_reproduced
    told = [
        (f"control: {report.reproduced} of {checked} are decided as in the audit under the policy of that time", "dim")
    ]
    if report.not_reproduced:
        told.append((
            f"  the others differ even without the candidate, {report.own_changes} of the changes above among them "
            "(marked *): older records are past retention, or another version decided them", "yellow",
        ))  # fmt: skip
    if report.no_control:
        told.append(
            (
                f"  {report.no_control} were decided by a policy that is neither in a file here nor in the audit",
                "yellow",
            )
        )
    for text, style in told:
        console.print(Text(text, style=style), soft_wrap=True)


def _list(console: Console, report: "RescreenReport", limit: int) -> None:
    for one in report.listed[:limit]:
        mark = "*" if one.own else " "
        ids = f"{visible(one.was.event_id, ID_CHARS_MAX)}  {visible(one.was.tenant, ID_CHARS_MAX)}"
        before, after = (f"{told.fate} {' '.join(map(visible, told.reasons))}".strip() for told in (one.was, one.now))
        console.print(Text(f"{mark} {ids}  {before} → {after}"), soft_wrap=True)
    if (rest := report.changed - min(limit, len(report.listed))) > 0 and limit:
        console.print(Text(f"{rest} more are not listed: raise --limit", style="yellow"))
