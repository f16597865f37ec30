"""What a smoothed recall certifies, as a person sees it: a table of plans, and the bound over the pool as a picture."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.table import Table

from memsluice.operations.monitor.picture import Path, Picture, Shape, Words
from memsluice.recall.smoothing.certificate import POOL_MAX, Plan
from memsluice.recall.smoothing.end_to_end import end_to_end

HOSTILE_SHOWN = 3
"""Numbers of hostile strata, from one on, whose bound a table gives."""
WIDTH, HEIGHT, MARGIN = 720, 360, 48
COLOURS = ("#1565c0", "#c62828", "#2e7d32", "#6a1b9a", "#ef6c00")
GOAL = "#999999"


class Gate(NamedTuple):
    """What is told to the gate: how much an attacker tries to land, and the chance that it misses one of it, 0 to 1."""

    attempts: int
    missed: float

    def won(self, plan: Plan) -> float:
        """Return how often the attacker wins through gate and vote together, at most, 0 to 1."""
        return end_to_end(plan, self.attempts, self.missed)


def as_data(plans: Iterable[Plan], hostile: int, gate: Gate | None = None) -> list[dict[str, Any]]:
    """Return plans as JSON values, with the bound for every number of hostile strata up to ``hostile``, one at least
    as far as a table goes."""
    return [
        {
            "pool": plan.pool,
            "shown": plan.shown,
            "runs": plan.runs,
            "calls": 2 * plan.runs,
            "strata_read": plan.shown * plan.runs,
            "delta": {str(some): round(plan.delta(some), 6) for some in range(1, max(hostile, HOSTILE_SHOWN) + 1)},
            **({} if gate is None else {"end_to_end": round(gate.won(plan), 6)}),
        }
        for plan in plans
    ]


def table(plans: Iterable[Plan], gate: Gate | None = None) -> Table:
    """Return plans, cheapest first as they come: what each asks for, what it costs, and its bounds in per cent, of gate
    and vote together where there is one."""
    made = Table(box=box.SIMPLE_HEAD)
    for name in ("m", "k", "n", "model calls", "strata read"):
        made.add_column(name, justify="right")
    for some in range(1, HOSTILE_SHOWN + 1):
        made.add_column(f"t = {some}", justify="right")
    if gate is not None:
        made.add_column("both", justify="right")
    for plan in plans:
        costs = (plan.pool, plan.shown, plan.runs, 2 * plan.runs, plan.shown * plan.runs)
        bounds = (f"{100 * plan.delta(some):.2f} %" for some in range(1, HOSTILE_SHOWN + 1))
        both = () if gate is None else (f"{100 * gate.won(plan):.2f} %",)
        made.add_row(*map(str, costs), *bounds, *both)
    return made


def picture(shown: int, runs: Sequence[int], hostile: int, delta_max: float) -> Picture:
    """Return the bound over the pool's size, a line for each number of runs, and the bound that is wanted, dashed."""
    pools = range(shown, POOL_MAX + 1)

    def place(pool: int, delta: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (pool - pools[0]) / max(len(pools) - 1, 1)
        return x, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * delta

    shapes: list[Shape] = [Path([place(pools[0], delta_max), place(pools[-1], delta_max)], GOAL, dashed=True)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        shapes.append(Words(8, place(pools[0], share)[1] + 4, f"{100 * share:.0f} %"))
    for pool in range(20, POOL_MAX + 1, 20):
        shapes.append(Words(place(pool, 0)[0] - 8, HEIGHT - MARGIN + 18, str(pool)))
    for number, some in enumerate(runs):
        points = [place(pool, Plan(pool, shown, some).delta(hostile)) for pool in pools]
        colour, x, y = COLOURS[number % len(COLOURS)], WIDTH - MARGIN - 80, MARGIN + 18 * (number + 1)
        shapes.append(Path(points, colour))
        shapes.append(Path([(x, y - 4), (x + 24, y - 4)], colour))
        shapes.append(Words(x + 32, y, f"n = {some}"))
    head = f"How often {hostile} hostile of m strata win at most, by m; k = {shown}; dashed: {100 * delta_max:g} %"
    shapes.append(Words(MARGIN, 24, head, size=13))
    return Picture(WIDTH, HEIGHT, head, shapes)
