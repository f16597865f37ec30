"""A tenant's calibration as a person sees it: a chart in the terminal, as a picture, and as JSON. Pure."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from memsluice.cli.render.life import NAME_CHARS_MAX
from memsluice.cli.render.picture import Dot, Path, Picture, Shape, Words
from memsluice.escaping import visible
from memsluice.operations.monitor.calibration import Detector, History, PhaseChange, ScoredWrite
from memsluice.recall.show import moment

ROWS = 12
COLUMNS = 68
CHANGES_SHOWN = 8
DOTS = ("#1565c0", "#c62828")
LINE, MARKS = "#2e7d32", "#999999"
WIDTH, HEIGHT, MARGIN = 960, 320, 48
STYLES = {"cold": "dim", "warming": "yellow", "calibrated": "green", "drifting": "red", "frozen": "cyan"}
MEANINGS = {
    "cold": "too few writes to know what is usual",
    "warming": "the threshold still uses a default prior",
    "calibrated": "the threshold comes from this tenant's writes",
    "drifting": "what is usual is changing",
    "frozen": "the policy has stopped calibration",
}


def recent(history: History, detector: Detector, last: int) -> list[ScoredWrite]:
    """Return at most ``last`` of the latest scored writes, as far back as they are on one scale.

    Ranks and distances have none in common: before a change between them, nothing is drawn beside what came after.
    """
    points = list(history.points[detector])[-last:]
    ranked = points[-1].ranked
    begins = next((at for at in range(len(points), 0, -1) if points[at - 1].ranked != ranked), 0)
    return points[begins:]


def render(history: History, detector: Detector, last: int) -> RenderableType:
    """Return the picture of a detector's last ``last`` scored writes: the phase, the line, the chart, the changes."""
    points = recent(history, detector, last)
    now = points[-1]
    head = Text.assemble((visible(history.tenant, NAME_CHARS_MAX), "bold"), f": {_detector(detector)}, {now.strategy}")
    phase = Text.assemble("phase  ", (now.phase, STYLES.get(now.phase, "")), f": {MEANINGS.get(now.phase, '')}")
    beyond = sum(point.beyond for point in points)
    none = "not told, by ranks" if now.ranked else "none yet"
    line = none if now.line is None else f"{now.line:.4f}"
    above = f"above  {beyond} of {len(points)} writes exceeded the threshold in force then"
    said = f"line   {line}, over {now.size} reference scores"
    parts: list[RenderableType] = [head, phase, Text(said), Text(above), Text("")]
    parts += [*_chart(points), Text(""), _from_to(points)]
    if len(points) < min(last, len(history.points[detector])):
        parts.append(Text("another strategy judged the writes before these, on another scale: not drawn", "yellow"))
    parts += [Text(_told(change)) for change in list(history.changes[detector])[-CHANGES_SHOWN:]]
    if history.unverified:
        parts.append(Text(f"{history.unverified} audit records do not verify under this home's keys", style="red"))
    return Group(*parts)


def _detector(detector: Detector) -> str:
    return "default detector" if detector == "default" else "MEMSAD"


def _told(change: PhaseChange) -> str:
    return f"{change.phase:<10} from write {change.number} on, {moment(change.at_ms)}"


def _from_to(points: Sequence[ScoredWrite]) -> Text:
    legend = f"● highest of its writes   ─ line   {moment(points[0].at_ms)} to {moment(points[-1].at_ms)}"
    return Text(legend, style="dim")


def _bounds(points: Sequence[ScoredWrite]) -> tuple[float, float]:
    """Return the lowest and highest value or line, never equal."""
    values = [point.value for point in points] + [point.line for point in points if point.line is not None]
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _chart(points: Sequence[ScoredWrite]) -> list[Text]:
    """Return ROWS lines, highest and lowest one free: each column is an equal share of the writes, in their order."""
    low, high = _bounds(points)
    columns = min(COLUMNS, len(points))
    cells = [[" "] * columns for _ in range(ROWS)]

    def row(value: float) -> int:
        return ROWS - 2 - round((value - low) / (high - low) * (ROWS - 3))

    for column in range(columns):
        some = points[column * len(points) // columns : (column + 1) * len(points) // columns]
        limit = some[-1].line
        if limit is not None:
            cells[row(limit)][column] = "─"
        top = max(some, key=lambda point: point.value - (point.line or 0.0))
        at = row(top.value)
        if limit is not None and at == row(limit):  # which side of the line it is on is always seen
            at += -1 if top.beyond else 1
        cells[at][column] = "●"
    labels = [" " * 9] * ROWS
    labels[1], labels[-2] = f"{high:8.3f} ", f"{low:8.3f} "
    return [Text(label + "".join(line)) for label, line in zip(labels, cells, strict=True)]


def as_data(history: History, detector: Detector, last: int) -> dict[str, Any]:
    """Return the same as JSON values."""
    points = recent(history, detector, last)
    return {
        "tenant": history.tenant,
        "detector": detector,
        "strategy": points[-1].strategy,
        "phase": points[-1].phase,
        "line": points[-1].line,
        "reference_size": points[-1].size,
        "scored": history.totals[detector],
        "records_read": history.read,
        "unverified": history.unverified,
        "changes": [
            {"at_ms": change.at_ms, "number": change.number, "phase": change.phase}
            for change in history.changes[detector]
        ],
        "points": [
            {
                "at_ms": point.at_ms,
                "event_id": point.event_id,
                "decision": point.decision,
                "value": point.value,
                "line": point.line,
                "phase": point.phase,
            }
            for point in points
        ],
    }


def picture(history: History, detector: Detector, last: int) -> Picture:
    """Return the chart as a picture to keep: points, the line, and where phases changed."""
    points = recent(history, detector, last)
    low, high = _bounds(points)
    inner, tall = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def across(number: int) -> float:
        return MARGIN + inner * number / max(len(points) - 1, 1)

    def down(value: float) -> float:
        return MARGIN + tall * (high - value) / (high - low)

    first = history.totals[detector] - len(points) + 1
    shapes: list[Shape] = []
    for one in history.changes[detector]:
        if one.number > first or one is history.changes[detector][-1]:
            x = across(max(one.number - first, 0))
            shapes += [Path(((x, MARGIN), (x, HEIGHT - MARGIN)), MARKS, dashed=True)]
            shapes += [Words(x + 3, MARGIN - 6, one.phase)]
    limit = [(across(n), down(one.line)) for n, one in enumerate(points) if one.line is not None]
    shapes += [Path(limit, LINE)] if limit else []
    shapes += [Dot(across(n), down(one.value), DOTS[one.beyond]) for n, one in enumerate(points)]
    name = visible(history.tenant, NAME_CHARS_MAX)
    title = f"{name}: {_detector(detector)}, {points[-1].strategy}, {points[-1].phase}"
    ends = f"{moment(points[0].at_ms)} to {moment(points[-1].at_ms)}"
    shapes += [Words(MARGIN, 20, title, size=14), Words(MARGIN, HEIGHT - 14, ends)]
    shapes += [Words(2, MARGIN + 4, f"{high:.3f}"), Words(2, HEIGHT - MARGIN, f"{low:.3f}")]
    return Picture(WIDTH, HEIGHT, title, shapes)
