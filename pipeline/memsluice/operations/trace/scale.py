"""A score, its threshold and the window they come from, drawn as one line of text."""

from dataclasses import dataclass

CELLS = 48
MARGIN = 0.06
"""Free room at both ends, as a share of what is drawn."""
SCORE, THRESHOLD, MEAN, LEFT, RIGHT, INSIDE, OUTSIDE = "●", "│", "μ", "[", "]", "─", "·"


@dataclass(frozen=True, slots=True)
class Scale:
    """The line, and the scores at its two ends."""

    cells: str
    low: float
    high: float


def scale(
    score: float, threshold: float, mu: float | None = None, sigma: float | None = None, cells: int = CELLS
) -> Scale:
    """Return score and threshold on a line of ``cells`` characters (at least 8); with a calibrated window, its
    mean and mean ± one deviation.

    Score and threshold always stand in the order of their numbers, on different cells unless they are equal: what is
    seen never contradicts the decision. Where they are equal the score is seen.
    """
    points = [score, threshold]
    if mu is not None and sigma is not None:
        points += [mu, mu - sigma, mu + sigma]
    room = max(max(points) - min(points), 1e-6) * MARGIN
    low, high = min(points) - room, max(points) + room

    def cell(value: float) -> int:
        return round((value - low) / (high - low) * (cells - 1))

    line = [OUTSIDE] * cells
    if mu is not None and sigma is not None:
        left, right = cell(mu - sigma), cell(mu + sigma)
        line[left : right + 1] = [INSIDE] * (right + 1 - left)
        line[left], line[right], line[cell(mu)] = LEFT, RIGHT, MEAN
    at, limit = cell(score), cell(threshold)
    if at == limit and score != threshold:
        at += 1 if score > threshold else -1
    if at in (-1, cells):
        at, limit = (0, 1) if at < 0 else (cells - 1, cells - 2)
    line[limit], line[at] = THRESHOLD, SCORE
    return Scale("".join(line), low, high)
