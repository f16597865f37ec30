"""Drift of tenants' calibration, by the scores of their verdicts. Pure."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from memsluice.envelope.verdict import Score

DRIFT_TENANTS_MAX = 1_024
"""Tenants whose calibration is followed for the drift gauge; those scored last."""
DRIFT_KEPT_S = 6 * 3_600.0
"""How long a shift that was found shows: of a tenant that writes no more there is no next window to replace it."""


class DriftGauge:
    """How far each tenant's mean reference score moved since one whole window before, in standard deviations.

    ``now_s`` is a monotonic clock in seconds; a shift is forgotten DRIFT_KEPT_S after it was found.
    """

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._seen: OrderedDict[str, tuple[int, float, float, float]] = OrderedDict()

    def see(self, tenant: str, score: Score) -> None:
        """Take in one score of a verdict; one without mean or spread says nothing."""
        mu, sigma, window, size = score.mu, score.sigma, score.window_id, score.window_size
        if mu is None or not sigma or not size:
            return
        since, reference, shift, found_s = self._seen.get(tenant, (window, mu, 0.0, 0.0))
        if window - since >= size:
            since, reference, shift, found_s = window, mu, abs(mu - reference) / sigma, self._now_s()
        self._seen[tenant] = (since, reference, shift, found_s)
        self._seen.move_to_end(tenant)
        while len(self._seen) > DRIFT_TENANTS_MAX:
            self._seen.popitem(last=False)

    def largest(self) -> float:
        """Return the largest shift; 0 before any window was whole."""
        return max(self.shifts().values(), default=0.0)

    def shifts(self) -> dict[str, float]:
        """Return the shift of every tenant that has one."""
        oldest_s = self._now_s() - DRIFT_KEPT_S
        return {tenant: seen[2] for tenant, seen in tuple(self._seen.items()) if seen[2] and seen[3] > oldest_s}
