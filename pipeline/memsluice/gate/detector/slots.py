"""Who takes a candidate's place: what lies nearest, but no principal that is one of many fills all the places.

Without that, a dozen near texts of one account would hide from a question, or from a write, all that lies behind them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.gate.detector.kept import Kept
from memsluice.gate.detector.parts import Owners
from memsluice.gate.versions import Numbers, Places

CANDIDATES = 12
EACH_MAX = CANDIDATES // 4
"""Places that one of the limited principals takes."""
LOOKED_AT_MAX = 4 * CANDIDATES
"""Candidates that may be asked about before the places are filled."""
Near = tuple[Places, Numbers]
"""Positions and cosines, both shape (n,), nearest first."""


def fill(
    kept: Kept[Any],
    vector: Vector,
    limited: Owners,
    *,
    out: NDArray[np.bool_] | None = None,
    fit: Callable[[int], bool] | None = None,
    limited_max: int = CANDIDATES,
) -> Near:
    """Return at most CANDIDATES of the nearest, none of which is ``out``, shape (n,).

    ``limited``, shape (n,), has a code for each whose principal's places are limited, VOUCHED for the others; all such
    principals together take ``limited_max``. ``fit`` is asked of those that would have a place, of LOOKED_AT_MAX at
    most: beyond, nobody fits of whom it was not asked.
    """
    out = np.zeros(len(kept), np.bool_) if out is None else out
    bounds, known = kept.bounds(vector), dict[int, bool]()
    while True:
        near = kept.nearest(vector, bounds, out, limited, CANDIDATES, EACH_MAX, limited_max)
        fresh = [] if fit is None else [at for at in near[0].tolist() if at not in known]
        if fit is None or not fresh:
            return near
        some = fresh[: LOOKED_AT_MAX - len(known)]
        known |= {at: fit(at) for at in some}
        if len(some) < len(fresh):
            out = np.ones(len(kept), np.bool_)
            out[[at for at, fits in known.items() if fits]] = False
        elif all(known[at] for at in some):
            return near
        else:
            out = out.copy()
            out[[at for at in some if not known[at]]] = True
