"""Who takes a candidate's place: what lies nearest, but no principal that is one of many fills all the places.

Without that, a dozen near texts of one account would hide from a question, or from a write, all that lies behind them.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.gate.detector.parts import VOUCHED, Owners
from memsluice.gate.detector.vectors import Nearest, Vectors

CANDIDATES = 12
EACH_MAX = CANDIDATES // 4
"""Places that one of the limited principals takes."""
LOOKED_AT_MAX = 4 * CANDIDATES
"""Candidates that may be asked about before the places are filled."""
RANKED_MORE = 4
"""So many times as many are ranked where the first leave places free, before all who could have one are."""
Near = list[tuple[int, float]]
"""(position, cosine), nearest first."""


def fill(
    vectors: Vectors,
    vector: Vector,
    limited: Owners,
    *,
    fit: Callable[[int], bool] = lambda _: True,
    limited_max: int = CANDIDATES,
    ranked: int = LOOKED_AT_MAX,
) -> Near:
    """Return at most CANDIDATES of the nearest.

    ``limited``, shape (n,), has a code for each whose principal's places are limited, VOUCHED for the others; all such
    principals together take ``limited_max``. ``fit`` is asked only of those that would have a place. So many of the
    nearest are ``ranked`` at first, and more only where that leaves places free.
    """
    taken: Near = []
    for some in (ranked, RANKED_MORE * ranked):
        near = vectors.nearest(vector, some)
        taken = _taken(near, limited, fit, limited_max)
        if len(taken) == CANDIDATES or len(near.positions) == len(vectors):
            return taken
    left = _left(taken, limited, limited_max)
    near = vectors.among(left).nearest(vector, len(left))
    return _taken(Nearest(left[near.positions], near.cosines), limited, fit, limited_max)


def _left(taken: Near, limited: Owners, limited_max: int) -> NDArray[np.int64]:
    """Return who has a place or could have one: nobody else of a limited principal that has all of its places."""
    has = [at for at, _ in taken]
    of = Counter(code for code in limited[has].tolist() if code != VOUCHED)
    if of.total() >= limited_max:
        some = limited == VOUCHED
    else:
        some = ~np.isin(limited, [code for code, places in of.items() if places >= EACH_MAX])
    some[has] = True
    return np.flatnonzero(some)


def _taken(near: Nearest, limited: Owners, fit: Callable[[int], bool], limited_max: int) -> Near:
    taken: Near = []
    of, of_limited = dict[int, int](), 0
    codes = limited[near.positions].tolist()
    for at, cosine, code in zip(near.positions.tolist(), near.cosines.tolist(), codes, strict=True):
        if code != VOUCHED and (of_limited >= limited_max or of.get(code, 0) >= EACH_MAX):
            continue
        if fit(at):
            taken.append((at, cosine))
            if len(taken) == CANDIDATES:
                break
            if code != VOUCHED:
                of[code] = of.get(code, 0) + 1
                of_limited += 1
    return taken
