"""Drift by many small steps: one principal's writes that each say little to do, and together much (seed 002).

Seed 002's tool permission drift is "repeated exposure to crafted scenarios" of which none is an order. A one-sided
CUSUM (Page 1954) of ln(1 / p), p being the share of honest texts that tell agents as much to do: S = max(0, S +
ln(1 / p) - allowance), for each principal and channel, over the writes that land as guidance. What is above the limit,
and adds to it, is told; where `wording` lets it land, one write at P_MIN exceeds the limit that ships by itself. It
forgets after so many days without such a write.

It sees neither steps of several principals, nor ones that read like any honest text. Nor does it know which tool is
meant: it counts how much is said to do, whatever that is.
"""

from math import log

from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.policy.drift import DriftPolicy
from memsluice.gate.state.kinds import DRIFT, DriftRow
from memsluice.gate.state.rows import SEPARATOR, TenantRows
from memsluice.gate.state.windows import DAY_MS

P_MIN = 1e-3
"""One write counts for no more than this share does: what says more is the wording's own rule to hold."""
DIGITS = 3


def check(rows: TenantRows, principal: str, identity: Identity, p: float | None, policy: DriftPolicy) -> Finding | None:
    """Add a write that is about to land as guidance to what its principal's said before, and return what that shows.

    ``p`` is the share of honest texts that say as much to do, above 0 to 1; None, where nobody read it, adds nothing.
    A write that is held for it is not added.
    """
    if policy.action == "ignore" or p is None:
        return None
    row_id = SEPARATOR.join((principal, identity.channel))
    before = rows.get(DRIFT, row_id)
    step = -log(max(p, P_MIN)) - policy.allowance
    total, steps = (0.0, 1) if before is None else (before.total, before.steps + 1)
    total, found = round(max(total + step, 0.0), DIGITS), None
    if total > policy.limit and step > 0:
        asks = Decision.QUARANTINE if policy.action == "hold" else Decision.ACCEPT
        found = Finding("drift.nudged", asks, {"sum": total, "limit": policy.limit, "writes": steps, "p": p})
        if asks is Decision.QUARANTINE:
            return found
    if total > 0:
        rows.put(DRIFT, row_id, DriftRow(total=total, steps=steps, expires_ms=rows.now_ms + policy.days * DAY_MS))
    elif before is not None:
        rows.delete(DRIFT, row_id)
    return found
