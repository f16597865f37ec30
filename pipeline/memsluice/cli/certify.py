"""``memsluice certify``: which smoothed recall certifies a bound, and at what cost. It computes, and reads nothing."""

import json
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from memsluice.cli.options import Json

if TYPE_CHECKING:
    from memsluice.recall.smoothing.certificate import Plan

app = typer.Typer(add_completion=False, help="Which smoothed recall certifies a bound, and what it costs.")
PLANS_SHOWN = 12
RUNS_DRAWN = (1, 3, 5, 9, 15)
LEGEND = """m strata are recalled; each of n runs is shown k of them; t of the m are hostile.
A bound holds where the judge of the answers errs in no answer's favour."""
SMALL = "A store with fewer strata than m has a larger bound: give their number with --available."
BOTH = "both: {attempts} attempts, of which the gate misses {missed:g} each, in whatever way, and then the vote."


def _number(value: float | None) -> float | None:
    """Refuse what no bound compares with: not a number."""
    if value is not None and isnan(value):
        raise typer.BadParameter("nan is no share: give a number from 0 to 1")
    return value


@app.command()
def certify(
    hostile: Annotated[
        int, typer.Option("-t", "--hostile", min=1, max=100, help="Hostile strata in the pool: entries, or authors.")
    ] = 2,
    delta: Annotated[
        float, typer.Option("--delta", min=0.0, max=1.0, callback=_number, help="Share of questions that they may win.")
    ] = 0.05,
    shown: Annotated[
        int | None, typer.Option("-k", "--shown", min=1, max=100, help="Strata that each run is shown. Default: any.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option("-n", "--runs", min=1, max=99, help="Runs whose majority answers. Default: any.")
    ] = None,
    available: Annotated[
        int | None,
        typer.Option("--available", min=1, help="Strata that there are to recall (m'), the hostile ones among them."),
    ] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", min=0, max=10**9, help="What an attacker tries to land, with --missed.")
    ] = None,
    missed: Annotated[
        float | None,
        typer.Option(
            "--missed", min=0.0, max=1.0, callback=_number, help="Chance that the gate lets one attempt land, at most."
        ),
    ] = None,
    as_json: Json = False,
    svg: Annotated[
        Path | None, typer.Option(help="Write the bound over the pool's size to this new file.", dir_okay=False)
    ] = None,
) -> None:
    """Show the smallest pools that certify: an attacker wins the majority of no more than DELTA of the questions.

    Each of n runs is shown k strata, drawn from the m nearest that verify. A stratum is an entry, or all that one
    author wrote. The judge of the answers is assumed to err in no answer's favour. m is at most 100: a recall's event
    names what any run was shown, and has room for no more; and no larger than the store, where --available says so.

    With --attempts and --missed it also tells what an attacker wins through the gate and the vote together.
    """
    from memsluice.cli.render.certificate import Gate, as_data, picture, table

    if (attempts is None) is not (missed is None):
        raise typer.BadParameter("--attempts and --missed go together")
    gate = None if attempts is None or missed is None else Gate(attempts, missed)
    plans = _plans(hostile, delta, shown, runs, available)[:PLANS_SHOWN]
    if svg is not None:
        with svg.open("x", encoding="utf-8") as file:
            drawn = RUNS_DRAWN if runs is None else (runs,)
            file.write(picture(shown or 5, drawn, hostile, delta).svg())
    if as_json:
        print(json.dumps(as_data(plans, hostile, gate)))
        return
    console = Console(highlight=False)
    if not plans:
        most = 100 if available is None else min(available, 100)
        more = "allow more runs, fewer strata a run, or a larger delta"
        console.print(f"No pool of up to {most} certifies that: {more}.")
        return
    console.print(table(plans, gate))
    console.print(LEGEND)
    if gate is not None:
        console.print(BOTH.format(attempts=gate.attempts, missed=gate.missed))
    if available is None:
        console.print(SMALL)


def _plans(hostile: int, delta: float, shown: int | None, runs: int | None, available: int | None) -> "list[Plan]":
    """Return the plans that certify, those first whose runs read the fewest entries."""
    from memsluice.recall.smoothing.certificate import POOL_MAX, RUNS_ODD, SHOWN, certifying

    looked = (SHOWN if shown is None else (shown,), RUNS_ODD if runs is None else (runs,))
    every = certifying(hostile, delta, *looked, POOL_MAX if available is None else available)
    return sorted(every, key=lambda plan: (plan.runs * plan.shown, plan.pool))
