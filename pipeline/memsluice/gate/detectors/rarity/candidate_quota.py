"""Limits how many nearest candidates one principal may supply.

Without that, a dozen near texts of one account would hide from a question, or from a write, all that lies behind them.
Only a principal that is one of many is limited.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.gate.detectors.numeric.vector_set import Kept, Limits
from memsluice.gate.detectors.numeric.versions import Numbers, Places
from memsluice.gate.detectors.rarity.evidence import Owners

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
    principals together take ``limited_max``. ``fit`` is asked of those that would have a place, nearest first, of
    LOOKED_AT_MAX at most: beyond, nobody fits.
    """
    out = np.zeros(len(kept), np.bool_) if out is None else out
    search, known = kept.near(vector, limited, out, Limits(CANDIDATES, EACH_MAX, limited_max)), dict[int, bool]()
    search.take(CANDIDATES)
    if fit is None:
        return search.found

    def fits(at: int) -> bool:
        if at not in known:
            known[at] = fit(at)
        return known[at]

    if all(map(fits, search.found[0].tolist())):
        return search.found
    search.restart()  # mostly all fit; where one does not, it goes one by one
    taken = 0
    while taken < CANDIDATES and search.take(taken + 1) > taken:
        at = int(search.found[0][taken])
        if at not in known and len(known) == LOOKED_AT_MAX:
            search.drop()
            break
        if fits(at):
            taken += 1
        else:
            search.drop()
    return search.found
