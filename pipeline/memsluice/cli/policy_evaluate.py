"""``memsluice policy evaluate``: compare a candidate policy's detector with reviewers' decisions."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.options import Home, Json, Since, Tenant, Until
from memsluice.cli.rescreen import MaxEvents, history_told
from memsluice.cli.terminal import waiting

if TYPE_CHECKING:
    from memsluice.operations.rescreen.curve import RocPoint
    from memsluice.operations.rescreen.evaluation import Evaluation

POINTS_SHOWN = 10


def evaluate(
    file: Annotated[Path, typer.Argument(help="The candidate: a policy file.")],
    tenant: Tenant = None, since: Since = None, until: Until = None, max_events: MaxEvents = 50_000,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Compare a candidate policy's detector with what reviewers released (good) and rejected (bad). Reads only.

    Past events are decided under the candidate as in `memsluice rescreen`; its detector's scores of the labelled writes
    give the receiver operating characteristic (ROC), and the cost of each false-positive budget.
    """
    from memsluice.operations.commands.desk import open_desk
    from memsluice.operations.policies import files
    from memsluice.operations.rescreen.opening import evaluated, wanted

    candidate, want = files.load(file), wanted(tenant, since, until, max_events)
    with open_desk(home) as desk, waiting("reading the audit") as status:
        found, parts, events = evaluated(
            desk, candidate, want, lambda read: status.update(f"{read} records decided again")
        )
    if as_json:
        print(json.dumps({"candidate": candidate.default.digest, **found.as_data()}))
        return
    console = Console(highlight=False)
    for line in history_told(parts, tenant, events):
        console.print(line, soft_wrap=True)
    _labels(console, found)
    _curve(console, found)
    _budgets(console, found)


def _labels(console: Console, found: "Evaluation") -> None:
    good, bad = len(found.good), len(found.bad)
    told = f"n = {good + bad} labels: {good} released (good), {bad} rejected (bad)"
    console.print(Text(told, style="bold"))
    for count, what in (
        (
            sum(found.appealed),
            f"of them after their writer's appeal: {found.appealed[0]} good, {found.appealed[1]} bad",
        ),
        (found.lost, "more are of writes that the sealed log no longer holds, or that are outside of the period"),
        (
            found.unscreened,
            "more have no score under the candidate: it contains or refuses them, or has no reference yet",
        ),
        (
            found.labels.unplaced,
            "more name no held write: they are of withdrawn entries, or of verdicts that are too old",
        ),
        (found.labels.left_out, "more did not fit in memory"),
        (found.labels.unverified, "audit records do not verify under this home's keys and are left out"),
    ):
        if count:
            console.print(f"  {count} {what}")
    from memsluice.operations.rescreen.evaluation import BIASED

    console.print(Text(BIASED, style="dim"))


def _curve(console: Console, found: "Evaluation") -> None:
    from memsluice.operations.rescreen.curve import area, chart, interval, points
    from memsluice.operations.rescreen.evaluation import FEW

    good, bad = found.values()
    if not good or not bad:
        console.print("No curve: it needs at least one released and one rejected write.")
        return
    if len(found.scales) > 1:
        console.print("No curve: the scores of these tenants are not on one scale; choose one with --tenant.")
        return
    estimate = area(good, bad)
    low, high = interval(estimate, len(good), len(bad))
    console.print(f"AUROC {estimate:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    if min(len(good), len(bad)) < FEW:
        console.print(
            Text(f"fewer than {FEW} labels of one kind: rely on the interval, not on the number", style="yellow")
        )
    curve = points(good, bad)
    for line in chart(curve):
        console.print(line)
    table = Table("threshold", "bad held", "good held", box=None, pad_edge=False)
    for point in _some(curve):
        at = "above all" if math.isinf(point.threshold) else f"{point.threshold:.4f}"
        table.add_row(at, f"{point.bad:.0%}", f"{point.good:.0%}")
    console.print(table)


def _some(curve: "list[RocPoint]") -> "list[RocPoint]":
    """Return at most POINTS_SHOWN points, evenly spread along the curve, both ends among them."""
    if len(curve) <= POINTS_SHOWN:
        return curve
    return [curve[round(at * (len(curve) - 1) / (POINTS_SHOWN - 1))] for at in range(POINTS_SHOWN)]


def _budgets(console: Console, found: "Evaluation") -> None:
    if not found.budgeted:
        console.print(
            "This policy's calibration has no false-positive budget: the threshold is mu + kappa * sigma in every row."
        )
    table = Table("alpha", "good held", "bad passed", "the detector holds", box=None, pad_edge=False)
    for cost in found.costs():
        table.add_row(
            f"{cost.alpha:.1%}", f"{cost.good_held} of {len(found.good)}", f"{cost.bad_passed} of {len(found.bad)}",
            f"{cost.held} of {found.screened}",
        )  # fmt: skip
    console.print(table)
