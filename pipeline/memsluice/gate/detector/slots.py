"""Who takes a candidate's place: what lies nearest, but no principal that is one of many fills all the places.

Without that, a dozen near texts of one account would hide from a question, or from a write, all that lies behind them.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.gate.compiled import compiled
from memsluice.gate.detector.parts import VOUCHED, Owners
from memsluice.gate.detector.vectors import Nearest, Vectors

CANDIDATES = 12
EACH_MAX = CANDIDATES // 4
"""Places that one of the limited principals takes."""
LOOKED_AT_MAX = 4 * CANDIDATES
"""So many of the nearest are ranked at first; all of them where that leaves places free."""
Near = list[tuple[int, float]]
"""(position, cosine), nearest first."""


def fill(
    vectors: Vectors,
    vector: Vector,
    limited: Owners,
    *,
    fit: Callable[[int], bool] = lambda _: True,
    limited_max: int = CANDIDATES,
) -> Near:
    """Return at most CANDIDATES of the nearest.

    ``limited``, shape (n,), has a code for each whose principal's places are limited, VOUCHED for the others; all such
    principals together take ``limited_max``. ``fit`` is asked only of those that would have a place.
    """
    near = vectors.nearest(vector, LOOKED_AT_MAX)
    taken = _taken(near, limited, fit, limited_max)
    if len(taken) < CANDIDATES and len(near.positions) < len(vectors):
        taken = _taken(vectors.nearest(vector, len(vectors)), limited, fit, limited_max)
    return taken


def _taken(near: Nearest, limited: Owners, fit: Callable[[int], bool], limited_max: int) -> Near:
    taken: Near = []
    held = np.zeros(CANDIDATES, np.int64)
    rank, of_limited = _next(near.positions, limited, 0, held, 0, limited_max), 0
    while rank >= 0 and len(taken) < CANDIDATES:
        at = int(near.positions[rank])
        if fit(at):
            taken.append((at, float(near.cosines[rank])))
            if limited[at] != VOUCHED:
                held[of_limited] = limited[at]
                of_limited += 1
        rank = _next(near.positions, limited, rank + 1, held, of_limited, limited_max)
    return taken


@compiled("int64(int64[::1], int64[::1], int64, int64[::1], int64, int64)")
def _next(
    positions: NDArray[np.int64],
    limited: Owners,
    first: int,
    held: Owners,
    of_limited: int,
    limited_max: int,
) -> int:
    """Return the first rank from ``first`` on whose principal has a place left, -1 for none.

    ``held`` has the codes of the limited principals that have places, one for each place of theirs.
    """
    for rank in range(first, len(positions)):
        code, has = limited[positions[rank]], 0
        if code == 0:
            return rank
        for place in range(of_limited):
            has += held[place] == code
        if has < EACH_MAX and of_limited < limited_max:
            return rank
    return -1
