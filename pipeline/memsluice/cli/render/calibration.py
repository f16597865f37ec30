"""A tenant's calibration as a person sees it in a terminal: a chart of text, and what it says. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from memsluice.escaping import visible
from memsluice.operations.monitor.calibration import Detector, History, ScoredWrite
from memsluice.operations.monitor.calibration_view import (
    OTHER_SCALE,
    above_told,
    bounds,
    changes_told,
    detector_named,
    line_told,
    period_told,
    phase_told,
    recent,
    scale_changed,
)
from memsluice.operations.trace.telling import NAME_CHARS_MAX

ROWS = 12
COLUMNS = 68
STYLES = {"cold": "dim", "warming": "yellow", "calibrated": "green", "drifting": "red", "frozen": "cyan"}


def render(history: History, detector: Detector, last: int) -> RenderableType:
    """Return the picture of a detector's last ``last`` scored writes: the phase, the line, the chart, the changes."""
    points = recent(history, detector, last)
    named, (phase, meaning) = detector_named(detector), phase_told(history, detector, last)
    head = Text.assemble((visible(history.tenant, NAME_CHARS_MAX), "bold"), f": {named}, {points[-1].strategy}")
    parts: list[RenderableType] = [
        head,
        Text.assemble("phase  ", (phase, STYLES.get(phase, "")), f": {meaning}"),
        Text(f"line   {line_told(history, detector, last)}"),
        Text(f"above  {above_told(history, detector, last)}"),
        Text(""),
        *_chart(points),
        Text(""),
        Text(f"● highest of its writes   ─ line   {period_told(points)}", style="dim"),
    ]
    if scale_changed(history, detector, last):
        parts.append(Text(OTHER_SCALE, "yellow"))
    parts += [Text(change) for change in changes_told(history, detector)]
    if history.unverified:
        parts.append(Text(f"{history.unverified} audit records do not verify under this home's keys", style="red"))
    return Group(*parts)


def _chart(points: Sequence[ScoredWrite]) -> list[Text]:
    """Return ROWS lines, highest and lowest one free: each column is an equal share of the writes, in their order."""
    low, high = bounds(points)
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
