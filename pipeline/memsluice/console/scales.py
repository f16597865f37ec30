"""Small drawings, made on the server as SVG: of numbers alone, each with its numbers in words beside it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from memsluice.operations.held.collect import HeldReview

WIDTH, HEIGHT = 320, 34
MARGIN = 0.06
"""Free room at both ends of a scale, as a share of what is drawn."""
TREND_WIDTH, TREND_HEIGHT = 96, 20


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawing and what it says, for whoever does not see it."""

    title: str
    svg: Markup
    told: str


def scale(value: float, threshold: float, mean: float | None = None, deviation: float | None = None) -> Markup:
    """Return a value and its threshold on a line, with mean and mean ± one deviation where they are known."""
    points = [value, threshold]
    if mean is not None and deviation is not None:
        points += [mean, mean - deviation, mean + deviation]
    room = max(max(points) - min(points), 1e-6) * MARGIN
    low, high = min(points) - room, max(points) + room

    def at(point: float) -> str:
        return f"{(point - low) / (high - low) * WIDTH:.1f}"

    usual = Markup("")
    if mean is not None and deviation is not None:
        wide = f"{2 * deviation / (high - low) * WIDTH:.1f}"
        usual = Markup(
            '<rect class="usual" x="{}" y="12" width="{}" height="8"/><path class="mean" d="M{} 9v14"/>'
        ).format(at(mean - deviation), wide, at(mean))
    return Markup(
        '<svg class="scale" viewBox="-6 0 {} {}" aria-hidden="true" focusable="false">'
        '<path class="line" d="M0 16h{}"/>{}<path class="threshold" d="M{} 4v24"/>'
        '<circle class="value" cx="{}" cy="16" r="5"/></svg>'
    ).format(WIDTH + 12, HEIGHT, WIDTH, usual, at(threshold), at(value))


def scales(seen: HeldReview) -> list[Drawn]:
    """Return the scores of an entry that was read with its content, each on its scale."""
    verdict, drawn = seen.entry.verdict, list[Drawn]()
    if verdict is None:
        return drawn
    held = next((one.detail for one in verdict.findings if one.code == "detect.held"), None)
    if held is not None:
        value, threshold = float(held["score"]), float(held["threshold"])
        told = f"{value:.3f}, held from {threshold:g} on"
        drawn.append(Drawn("Evidence", scale(value, threshold), told))
    score = verdict.score
    if score is not None and score.score is not None and score.threshold is not None:
        told = f"{score.score:.3f} against the threshold {score.threshold:.3f}"
        if score.mu is not None and score.sigma is not None:
            told += f"; usual is {score.mu:.3f} ± {score.sigma:.3f}"
        drawn.append(Drawn("Anomaly (MEMSAD)", scale(score.score, score.threshold, score.mu, score.sigma), told))
    return drawn


def trend(counts: Sequence[int]) -> Markup:
    """Return counts by hour as bars, the present one last."""
    most, wide = max(counts, default=0) or 1, TREND_WIDTH / max(len(counts), 1)
    bars = Markup("").join(
        Markup('<rect x="{}" y="{}" width="{}" height="{}"/>').format(
            f"{number * wide:.1f}", f"{TREND_HEIGHT - tall:.1f}", f"{wide - 1:.1f}", f"{tall:.1f}"
        )
        for number, count in enumerate(counts)
        if (tall := count / most * TREND_HEIGHT)
    )
    told = f"{sum(counts)} in the last {len(counts)} hours, at most {max(counts, default=0)} in one"
    return Markup(
        '<svg class="trend" role="img" aria-label="{}" viewBox="0 0 {} {}"><path class="line" d="M0 {}h{}"/>{}</svg>'
    ).format(told, TREND_WIDTH, TREND_HEIGHT, TREND_HEIGHT - 0.5, TREND_WIDTH, bars)


def share(part: float) -> Markup:
    """Return a share of one (0 to 1) as a bar."""
    wide = f"{max(0.0, min(part, 1.0)) * 100:.1f}"
    return Markup(
        '<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="all" width="100" height="8"/><rect class="part" width="{}" height="8"/></svg>'
    ).format(wide)
