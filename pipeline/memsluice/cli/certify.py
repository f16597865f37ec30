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


def _number(value: float) -> float:
    """Refuse what no bound compares with: not a number."""
    if isnan(value):
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
    as_json: Json = False,
    svg: Annotated[
        Path | None, typer.Option(help="Write the bound over the pool's size to this new file.", dir_okay=False)
    ] = None,
) -> None:
    """Show the smallest pools that certify: an attacker wins the majority of no more than DELTA of the questions.

    Each of n runs is shown k strata, drawn from the m nearest that verify. A stratum is an entry, or all that one
    author wrote. The judge of the answers is assumed to err in no answer's favour. m is at most 100: a recall's event
    names what any run was shown, and has room for no more.
    """
    from memsluice.cli.render.certificate import as_data, picture, table

    plans = _plans(hostile, delta, shown, runs)[:PLANS_SHOWN]
    if svg is not None:
        with svg.open("x", encoding="utf-8") as file:
            drawn = RUNS_DRAWN if runs is None else (runs,)
            file.write(picture(shown or 5, drawn, hostile, delta).svg())
    if as_json:
        print(json.dumps(as_data(plans, hostile)))
        return
    console = Console(highlight=False)
    if not plans:
        console.print("No pool of up to 100 certifies that: allow more runs, fewer strata a run, or a larger delta.")
        return
    console.print(table(plans))
    console.print(LEGEND)


def _plans(hostile: int, delta: float, shown: int | None, runs: int | None) -> "list[Plan]":
    """Return the plans that certify, those first whose runs read the fewest entries."""
    from memsluice.recall.smoothing.certificate import RUNS_ODD, SHOWN, certifying

    every = certifying(hostile, delta, SHOWN if shown is None else (shown,), RUNS_ODD if runs is None else (runs,))
    return sorted(every, key=lambda plan: (plan.runs * plan.shown, plan.pool))
