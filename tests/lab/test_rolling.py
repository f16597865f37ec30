"""The figure and the chart of calibration by drift: which policies they compare, whom they count, what is drawn."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.golden.ring import WordEncoder

from memsluice.gate.policy.model import parse, shipped
from memsluice.operations.monitor.picture import Dot, Words
from memsluice.operations.monitor.picture import Path as Drawn
from memsluice_lab import rolling_chart as chart
from memsluice_lab.demo.sample import turned
from memsluice_lab.figures import rolling
from memsluice_lab.figures.registry import Setting
from memsluice_lab.rolling_chart import Scored

POINTS = [
    Scored(0.1, 0.3, held=False, after=False),
    Scored(0.2, 0.3, held=True, after=False),
    Scored(0.4, 0.3, held=True, after=True),
    Scored(0.9, 0.35, held=False, after=True),
]


def changed() -> list[dict[str, Any]]:
    """Return a household's notes before and after its change of topic, with the hidden fields of a stream."""
    lines, first = list[dict[str, Any]](), 0
    for part, phase in ((turned.PARTS[0], "before"), (turned.PARTS[1], "first 100 after")):
        for line in turned.lines(part, "house", first, "2026-03-02T08:00:00+00:00"):
            lines.append({**line, "phase": phase, "label": "benign", "category": "fact"})
        first = len(lines)
    return lines


def test_the_chart_has_every_write_once_with_the_line_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot a write, marked by what decided and by the change; the fixed line and the one that follows part."""
    monkeypatch.setattr(chart, "load_encoder", WordEncoder)
    lines = changed()
    found = {strategy: chart.scored(lines, strategy) for strategy in chart.TITLES}
    for points in found.values():
        assert [one.after for one in points] == [line["phase"] != "before" for line in lines if line["kind"] == "write"]
        assert [one.held for one in points] == [one.score > one.threshold for one in points]
    rolled, fixed = (found[name] for name in ("m_star", "fixed"))
    assert [one.threshold for one in rolled[:40]] == [one.threshold for one in fixed[:40]]  # declared, while warming
    assert rolled[-1].threshold != fixed[-1].threshold


def test_a_panel_counts_what_was_held_after_the_change_and_marks_it() -> None:
    """Its words count the writes after the change alone; red is what was held; the dashed line is at the change."""
    shapes = chart.panel(POINTS, "title", 100)
    words, (dots, paths) = [one.text for one in shapes if isinstance(one, Words)], (
        [one for one in shapes if isinstance(one, Dot)],
        [one for one in shapes if isinstance(one, Drawn)],
    )  # fmt: skip
    assert words[0] == "title. After the change 1 of 2 held"
    assert [one.colour == chart.STOPPED for one in dots] == [one.held for one in POINTS]
    (change,), (line,) = ([one for one in paths if one.dashed is dashed] for dashed in (True, False))
    assert {x for x, _ in change.points} == {dots[2].x}
    assert dots[0].y > dots[1].y > dots[2].y > dots[3].y == 100  # higher scores stand higher, none beyond the panel
    assert [x for x, _ in line.points] == [one.x for one in dots]
    assert "nothing was scored" in chart.panel([], "title", 100)[0].text  # type: ignore[union-attr]


def test_the_picture_has_a_panel_a_strategy_one_below_the_other() -> None:
    """Both titles are there, and no dot of the second panel lies among the first one's."""
    picture = chart.drawn({"m_star": POINTS, "fixed": POINTS})
    svg = picture.svg()
    assert [svg.find(f"{title}. After") > 0 for title in chart.TITLES.values()] == [True, True]
    heights = [one.y for one in picture.shapes if isinstance(one, Dot)]
    assert max(heights[: len(POINTS)]) < min(heights[len(POINTS) :])
    assert max(heights) <= picture.height


def test_the_figure_measures_the_shipped_profile_and_the_papers_own_beside_it() -> None:
    """Only what months within a minute would trip over is lifted: limits a day, and the room for held writes."""
    ours = parse(shipped(rolling.PROFILE)).default.model_dump()
    there = rolling.in_force().model_dump()
    assert {name for name in ours if ours[name] != there[name]} == {"writes_per_day", "quarantine"}
    paper = rolling.in_force("fixed").memsad
    assert (paper.calibration.strategy, paper.kappa) == ("fixed", 2.0)
    assert paper.model_dump(exclude={"calibration", "kappa"}) == rolling.in_force().memsad.model_dump(
        exclude={"calibration", "kappa"}
    )


def test_only_what_people_and_agents_write_after_the_change_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A held page, a question and what was held before the change say nothing about honest writes after it. A row says
    its κ, since the paper's calibration and the profile differ in that, too; another tells what provenance keeps of
    attacks by itself, without MEMSAD."""
    written = (
        ("write", "user", "before", "quarantine"),
        ("write", "web", "later", "quarantine"),
        ("query", "user", "later", ""),
        ("write", "user", "first 100 after", "quarantine"),
        ("write", "agent", "later", "reject"),
        ("write", "agent", "later", "accept"),
    )
    lines = [
        {"seq": seq, "kind": kind, "source": source, "phase": phase, "tenant": "a", "session": "s", "agent": "b",
         "label": "attack" if seq in (3, 5) else "benign", "principal": "p", "text": "t",
         "time": "2026-03-02T08:00:00+00:00"}
        for seq, (kind, source, phase, _) in enumerate(written)
    ]  # fmt: skip
    (path,) = rolling._written({"one": lines}, tmp_path)
    assert {orjson.loads(line)["tenant"] for line in path.read_bytes().splitlines()} == {path.stem}
    told = [{"seq": seq, "decision": decision} for seq, (*_, decision) in enumerate(written) if decision]
    used = list[tuple[Any, ...]]()

    def decide(items: Any, *, chosen: Any, **_: Any) -> list[dict[str, Any]]:
        memsad = chosen.default.memsad
        used.append((memsad.enabled, memsad.calibration.strategy, memsad.kappa))
        return told

    monkeypatch.setattr(rolling, "decide", decide)
    encoder: Any = WordEncoder()
    assert rolling._held_by_fixed([path], encoder, Setting(None, lambda line: None)) == [
        ("… by the strategy `fixed`, κ = 2, in one process", "2 of 3, 66.67 %"),
        ("… by the strategy `fixed`, κ = 3, in one process", "2 of 3, 66.67 %"),
    ]
    assert rolling._kept_without([path], encoder) == "1 of 2, 50.00 %"
    assert used == [(True, "fixed", 2.0), (True, "fixed", 3.0), (False, "m_star", 3.0)]
