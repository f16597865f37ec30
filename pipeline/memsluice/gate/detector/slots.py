"""Who takes a candidate's place: what lies nearest, but no principal that is one of many fills all the places.

Without that, a dozen near texts of one account would hide from a question, or from a write, all that lies behind them.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from memsluice.envelope.codec import Vector
from memsluice.gate.detector.vectors import Vectors

CANDIDATES = 12
EACH_MAX = CANDIDATES // 4
"""Places that one of the limited principals takes."""
LOOKED_AT_MAX = 4 * CANDIDATES
"""So many of the nearest are ranked at first; all of them only where that leaves places free."""
Near = list[tuple[int, float]]
"""(position, cosine), nearest first."""


def fill(
    vectors: Vectors,
    vector: Vector,
    limited: Callable[[int], str],
    *,
    fit: Callable[[int], bool] = lambda _: True,
    limited_max: int = CANDIDATES,
) -> Near:
    """Return at most CANDIDATES of the nearest.

    ``limited`` names the principal at a position whose places are limited, "" where they are not; all such principals
    together take ``limited_max``. ``fit`` is asked only of those that would have a place.
    """
    near = vectors.nearest(vector, LOOKED_AT_MAX)
    taken = _taken(near, limited, fit, limited_max)
    if len(taken) < CANDIDATES and len(near) < len(vectors):
        taken = _taken(vectors.ranked(vector), limited, fit, limited_max)
    return taken


def _taken(
    near: Iterable[tuple[int, float]], limited: Callable[[int], str], fit: Callable[[int], bool], limited_max: int
) -> Near:
    taken: Near = []
    of = Counter[str]()
    for at, cosine in near:
        who = limited(at)
        if who and (of[who] >= EACH_MAX or of.total() >= limited_max):
            continue
        if fit(at):
            taken.append((at, cosine))
            of[who] += bool(who)
            if len(taken) == CANDIDATES:
                break
    return taken
