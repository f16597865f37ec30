"""The chart of docs/profile.md: landed writes a second by the cores that broker, store and stages may use.

``python -m memsluice_lab.cores_chart docs``: what ``cores_scaling`` measured, by class of machine, as docs/cores.svg.
"""

import sys
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path as File

import orjson

from memsluice.operations.monitor.picture import Dot, Path, Picture, Shape, Words
from memsluice_lab.figures.cores import COUNTS, rate_row

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 560, 320, 60, 40, 40
COLOURS = ("#1f6fb2", "#c0392b", "#2e7d32", "#6a4c93")
"""A class of machine's; a fifth has the first's."""
PROPORTIONAL = "#999999"
Rates = Mapping[int, float]
"""Landed writes a second, by the number of cores."""


def recorded(figures: bytes) -> dict[str, Rates]:
    """Return what figures.json has of it, by class of machine."""
    found = dict[str, Rates]()
    for one in orjson.loads(figures)["measurements"]:
        if one["name"] == "cores_scaling":
            rows = dict(one["rows"])
            values = {count: rows[rate_row(count)] for count in COUNTS if rate_row(count) in rows}
            found[one["machine_class"]] = {count: float(value.split(";")[0]) for count, value in values.items()}
    return found


def drawn(by_class: Mapping[str, Rates]) -> Picture:
    """Return the chart: a line a class of machine, dashed what one core's rate would come to."""
    cores = max((count for rates in by_class.values() for count in rates), default=1)
    most = max((count * rates[1] for rates in by_class.values() for count in rates), default=1.0)

    def place(count: float, rate: float) -> tuple[float, float]:
        across, up = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM
        return LEFT + across * count / cores, TOP + up * (1 - min(rate / most, 1.0))

    shapes: list[Shape] = [Words(LEFT, 20, "Landed writes a second, by cores; dashed: in proportion to one core", 12)]
    shapes += [Words(place(count, 0)[0] - 4, HEIGHT - 20, str(count), 11) for count in COUNTS if count <= cores]
    shapes += [Words(8, place(0, share * most)[1] + 4, f"{share * most:.0f}", 11) for share in (0.0, 0.5, 1.0)]
    for (name, rates), colour in zip(sorted(by_class.items()), cycle(COLOURS), strict=False):
        last = max(rates)
        points = tuple(place(count, rates[count]) for count in sorted(rates))
        shapes.append(Path((place(0, 0), place(last, last * rates[1])), PROPORTIONAL, True))
        shapes += [Path((place(0, 0), *points), colour), *(Dot(*point, colour, 3.5) for point in points)]
        shapes.append(Words(points[-1][0] - 60, points[-1][1] + 18, name, 11))
    return Picture(WIDTH, HEIGHT, "Landed writes a second by the number of cores", shapes)


def main(docs: str) -> None:
    """Write the chart."""
    by_class = recorded(File(docs, "figures.json").read_bytes())
    File(docs, "cores.svg").write_text(drawn(by_class).svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
