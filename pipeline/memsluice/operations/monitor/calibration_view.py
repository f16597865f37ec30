"""A tenant's calibration in words, as a picture and as JSON, for a terminal and for the console. Pure."""

from collections.abc import Sequence
from typing import Any

from memsluice.escaping import visible
from memsluice.operations.monitor.calibration import Detector, History, PhaseChange, ScoredWrite
from memsluice.operations.monitor.picture import Dot, Path, Picture, Shape, Words
from memsluice.operations.trace.telling import NAME_CHARS_MAX
from memsluice.recall.show import moment

CHANGES_SHOWN = 8
DOTS = ("#1565c0", "#c62828")
LINE, MARKS = "#2e7d32", "#999999"
WIDTH, HEIGHT, MARGIN = 960, 320, 48
MEANINGS = {
    "cold": "too few writes to know what is usual",
    "warming": "the threshold still uses a default prior",
    "calibrated": "the threshold comes from this tenant's writes",
    "drifting": "what is usual is changing",
    "frozen": "the policy has stopped calibration",
}
OTHER_SCALE = "another strategy judged the writes before these, on another scale: not drawn"


def recent(history: History, detector: Detector, last: int) -> list[ScoredWrite]:
    """Return at most ``last`` of the latest scored writes, as far back as they are on one scale.

    Ranks and distances have none in common: before a change between them, nothing is drawn beside what came after.
    """
    points = list(history.points[detector])[-last:]
    ranked = points[-1].ranked
    begins = next((at for at in range(len(points), 0, -1) if points[at - 1].ranked != ranked), 0)
    return points[begins:]


def phase_told(history: History, detector: Detector, last: int) -> tuple[str, str]:
    """Return the phase, and what that means."""
    phase = recent(history, detector, last)[-1].phase
    return phase, MEANINGS.get(phase, "")


def line_told(history: History, detector: Detector, last: int) -> str:
    """Return where the line lies, and what it comes from."""
    now = recent(history, detector, last)[-1]
    none = "not told, by ranks" if now.ranked else "none yet"
    line = none if now.line is None else f"{now.line:.4f}"
    return f"{line}, over {now.size} reference scores"


def above_told(history: History, detector: Detector, last: int) -> str:
    """Return how many writes were beyond the line of their time."""
    points = recent(history, detector, last)
    beyond = sum(point.beyond for point in points)
    return f"{beyond} of {len(points)} writes exceeded the threshold in force then"


def period_told(points: Sequence[ScoredWrite]) -> str:
    """Return from when to when writes were scored."""
    return f"{moment(points[0].at_ms)} to {moment(points[-1].at_ms)}"


def scale_changed(history: History, detector: Detector, last: int) -> bool:
    """Whether earlier writes are left out because another strategy judged them."""
    return len(recent(history, detector, last)) < min(last, len(history.points[detector]))


def changes_told(history: History, detector: Detector) -> list[str]:
    """Return the latest changes of the phase."""
    return [_told(change) for change in list(history.changes[detector])[-CHANGES_SHOWN:]]


def detector_named(detector: Detector) -> str:
    """Return a detector's name in words."""
    return "default detector" if detector == "default" else "MEMSAD"


def _told(change: PhaseChange) -> str:
    return f"{change.phase:<10} from write {change.number} on, {moment(change.at_ms)}"


def bounds(points: Sequence[ScoredWrite]) -> tuple[float, float]:
    """Return the lowest and highest value or line, never equal."""
    values = [point.value for point in points] + [point.line for point in points if point.line is not None]
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


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
    low, high = bounds(points)
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
    title = f"{name}: {detector_named(detector)}, {points[-1].strategy}, {points[-1].phase}"
    ends = period_told(points)
    shapes += [Words(MARGIN, 20, title, size=14), Words(MARGIN, HEIGHT - 14, ends)]
    shapes += [Words(2, MARGIN + 4, f"{high:.3f}"), Words(2, HEIGHT - MARGIN, f"{low:.3f}")]
    return Picture(WIDTH, HEIGHT, title, shapes)
