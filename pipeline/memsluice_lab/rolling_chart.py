"""The chart of docs/rolling-calibration.md: MEMSAD's scores and its line over a change of topic, fixed and by drift.

``python -m memsluice_lab.rolling_chart FOLDER FILE``, FOLDER with ``data/`` and ``bench/``, FILE a new SVG. Two
conversations live after each other as one tenant, honest writes alone, through the embedded runtime.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import orjson

from memsluice.encoder import load_encoder
from memsluice.gate.policy.model import PolicySet
from memsluice.operations.monitor.picture import Dot, Path, Picture, Shape, Words
from memsluice_lab.demo.caching_encoder import MemoEncoder
from memsluice_lab.figures.records import build
from memsluice_lab.figures.rolling import HELD, in_force
from memsluice_lab.run import decide
from memsluice_lab.streams import events_of
from memsluice_lab.table.changes import other_topic

TITLES = {
    "m_star": "published-rolling (m*): the window and the questions that count follow the drift",
    "fixed": "fixed, as published: mean + 2 deviations over the first 50 landed writes",
}
WIDTH, PANEL, LEFT, TOP = 760, 200, 40, 40
PAIR = "conversation-conv-43-then-conversation-conv-44"
MOST = 0.7
"""Highest score that is drawn."""
LANDED, STOPPED, LINE, CHANGE = "#5b7083", "#c0392b", "#1f6fb2", "#999999"


@dataclass(frozen=True, slots=True)
class Scored:
    """One honest write: MEMSAD's score, the line it was held against, and whether it was held and after the change."""

    score: float
    threshold: float
    held: bool
    after: bool


def scored(lines: Sequence[dict[str, Any]], strategy: str) -> list[Scored]:
    """Decide a stream under the shipped profile with another strategy, and return the writes that were scored."""
    clean = [{name: value for name, value in line.items() if name not in ("label", "category")} for line in lines]
    told = decide(
        events_of(clean), name="chart", encoder=MemoEncoder(load_encoder()), chosen=PolicySet(in_force(strategy), {})
    )
    after = {line["seq"]: line["phase"] != "before" for line in lines}
    return [
        Scored(one["score"], one["threshold"], one["decision"] in HELD, after[one["seq"]])
        for one in told
        if one.get("score") is not None and one["threshold"] is not None
    ]


def panel(points: Sequence[Scored], title: str, top: float) -> list[Shape]:
    """Return the shapes of one strategy, below ``top``."""
    if not points:
        return [Words(LEFT, top, f"{title}: nothing was scored", 12)]

    def place(at: int, value: float) -> tuple[float, float]:
        return LEFT + at * (WIDTH - 2 * LEFT) / len(points), top + PANEL * (1 - min(max(value, 0.0), MOST) / MOST)

    after = [one.held for one in points if one.after]
    change = next((at for at, one in enumerate(points) if one.after), len(points))
    shapes: list[Shape] = [
        Words(LEFT, top - 8, f"{title}. After the change {sum(after)} of {len(after)} held", 12),
        Path((place(change, 0.0), place(change, MOST)), CHANGE, True),
        *(Words(6, place(0, value)[1] + 4, f"{value:.1f}", 10) for value in (0.0, 0.2, 0.4, 0.6)),
    ]
    shapes += [Dot(*place(at, one.score), STOPPED if one.held else LANDED, 1.6) for at, one in enumerate(points)]
    return [*shapes, Path(tuple(place(at, one.threshold) for at, one in enumerate(points)), LINE, False)]


def drawn(by_strategy: dict[str, Sequence[Scored]]) -> Picture:
    """Return the chart: a panel a strategy, one below the other."""
    shapes: list[Shape] = []
    for number, (strategy, points) in enumerate(by_strategy.items()):
        shapes += panel(points, TITLES[strategy], TOP + number * (PANEL + 2 * TOP))
    height = round(len(by_strategy) * (PANEL + 2 * TOP))
    return Picture(WIDTH, height, "MEMSAD's score and its line over a change of topic", shapes)


def main(folder: str, out: str) -> None:
    """Write the chart."""
    with tempfile.TemporaryDirectory() as streams:
        paths = build(File(folder), File(streams))
        plain = {path.stem: [orjson.loads(line) for line in path.read_bytes().splitlines()] for path in paths}
    lines = other_topic(plain, 7)[PAIR]
    File(out).write_text(drawn({name: scored(lines, name) for name in TITLES}).svg(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:3])
