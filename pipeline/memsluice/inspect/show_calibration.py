"""A tenant's calibration as a person sees it: a chart in the terminal, the same as SVG, the same as JSON. Pure."""

from collections.abc import Sequence
from html import escape
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from memsluice.inspect.calibration import Change, Detector, History, Point
from memsluice.inspect.show import NAME_CHARS_MAX, moment
from memsluice.printable import visible

ROWS = 12
COLUMNS = 68
CHANGES_SHOWN = 8
DOTS = ("#1565c0", "#c62828")
SVG_WIDTH, SVG_HEIGHT, SVG_MARGIN = 960, 320, 48
STYLES = {"cold": "dim", "warming": "yellow", "calibrated": "green", "drifting": "red", "frozen": "cyan"}
MEANINGS = {
    "cold": "too little is known to say what is usual",
    "warming": "a declared prior stands in for what is not known yet",
    "calibrated": "the line is the tenant's own",
    "drifting": "what is usual is changing",
    "frozen": "the policy lets nothing more be learned",
}


def render(history: History, detector: Detector, last: int) -> RenderableType:
    """Return the picture of a detector's last ``last`` scored writes: the phase, the line, the chart, the changes."""
    points = list(history.points[detector])[-last:]
    now = points[-1]
    head = Text.assemble((visible(history.tenant, NAME_CHARS_MAX), "bold"), f": {_detector(detector)}, {now.strategy}")
    phase = Text.assemble("phase  ", (now.phase, STYLES.get(now.phase, "")), f": {MEANINGS.get(now.phase, '')}")
    beyond = sum(point.beyond for point in points)
    line = "none yet" if now.line is None else f"{now.line:.4f}"
    said = f"line   {line}, over {now.size} reference scores; {beyond} of {len(points)} writes lay beyond theirs"
    parts: list[RenderableType] = [head, phase, Text(said), Text(""), *_chart(points), Text(""), _from_to(points)]
    parts += [Text(_told(change)) for change in list(history.changes[detector])[-CHANGES_SHOWN:]]
    if history.unverified:
        parts.append(Text(f"{history.unverified} audit records do not verify under this home's keys", style="red"))
    return Group(*parts)


def _detector(detector: Detector) -> str:
    return "default detector" if detector == "default" else "MEMSAD"


def _told(change: Change) -> str:
    return f"{change.phase:<10} from write {change.number} on, {moment(change.at_ms)}"


def _from_to(points: Sequence[Point]) -> Text:
    legend = f"● highest of its writes   ─ line   {moment(points[0].at_ms)} to {moment(points[-1].at_ms)}"
    return Text(legend, style="dim")


def _bounds(points: Sequence[Point]) -> tuple[float, float]:
    """Return the lowest and highest value or line, never equal."""
    values = [point.value for point in points] + [point.line for point in points if point.line is not None]
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _chart(points: Sequence[Point]) -> list[Text]:
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
    points = list(history.points[detector])[-last:]
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


def as_svg(history: History, detector: Detector, last: int) -> str:
    """Return the chart as an SVG image of its own: points, the line, and where phases changed."""
    points = list(history.points[detector])[-last:]
    low, high = _bounds(points)
    inner, tall = SVG_WIDTH - 2 * SVG_MARGIN, SVG_HEIGHT - 2 * SVG_MARGIN

    def across(number: int) -> float:
        return SVG_MARGIN + inner * number / max(len(points) - 1, 1)

    def down(value: float) -> float:
        return SVG_MARGIN + tall * (high - value) / (high - low)

    dots = "".join(
        f'<circle cx="{across(n):.1f}" cy="{down(one.value):.1f}" r="2.5" fill="{DOTS[one.beyond]}"/>'
        for n, one in enumerate(points)
    )
    limit = " ".join(f"{across(n):.1f},{down(one.line):.1f}" for n, one in enumerate(points) if one.line is not None)
    first = history.totals[detector] - len(points) + 1
    marks = "".join(
        f'<line x1="{(x := across(max(one.number - first, 0))):.1f}" x2="{x:.1f}" y1="{SVG_MARGIN}" '
        f'y2="{SVG_HEIGHT - SVG_MARGIN}" stroke="#999" stroke-dasharray="3 3"/>'
        f'<text x="{x + 3:.1f}" y="{SVG_MARGIN - 6}">{escape(one.phase)}</text>'
        for one in history.changes[detector]
        if one.number > first or one is history.changes[detector][-1]
    )
    name = escape(visible(history.tenant, NAME_CHARS_MAX))
    title = f"{name}: {_detector(detector)}, {escape(points[-1].strategy)}, {escape(points[-1].phase)}"
    ends = f"{moment(points[0].at_ms)} to {moment(points[-1].at_ms)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SVG_WIDTH}" height="{SVG_HEIGHT}" '
        f'font-family="sans-serif" font-size="11"><title>{title}</title><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{SVG_MARGIN}" y="20" font-size="14">{title}</text>{marks}'
        f'<polyline points="{limit}" fill="none" stroke="#2e7d32" stroke-width="1.5"/>{dots}'
        f'<text x="4" y="{SVG_MARGIN + 4}">{high:.3f}</text><text x="4" y="{SVG_HEIGHT - SVG_MARGIN}">{low:.3f}</text>'
        f'<text x="{SVG_MARGIN}" y="{SVG_HEIGHT - 14}">{ends}</text></svg>\n'
    )
