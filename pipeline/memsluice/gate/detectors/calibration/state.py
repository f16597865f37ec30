"""The state of one calibration: the last reference scores, the held ones, and the level of the conformal strategy.

Bounded: ``window`` pairs of an 8-digit tag and a score of six digits (about 25 bytes each), and HELD_MAX held ones.
Idempotent: an event that is in the window, or among the last screened ones, changes nothing the second time; what is
older the gate's own duplicate check refuses. Immutable: each change returns the next state. One JSON object is one row.

Only what landed over a trusted channel is given to :meth:`State.landed`: see
:meth:`memsluice.gate.decision.Draft.learn`.
"""

from hashlib import sha256

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memsluice.gate.detectors.calibration.base import Settings, Values
from memsluice.gate.state.kinds import CalibrationRow

TAG_DIGITS = 8
HELD_MAX = 32
"""Held scores that are kept for credit: the lowest of those within the last ``window`` screened writes."""
RECENT_MAX = 32
DIGITS = 6


def event_tag(event_id: str) -> str:
    """Return eight hex digits that stand for an event."""
    return sha256(event_id.encode()).hexdigest()[:TAG_DIGITS]


class State(Struct, frozen=True):
    """``values`` float64 of shape (n,), oldest first, and the events they are of; ``held`` is (number, tag, score).

    ``screened_total`` counts screened writes; ``level`` is the conformal strategy's alpha in force, None until it
    moved. A state may stand :meth:`over` scores that are kept elsewhere; it then has no tags.
    """

    values: Values
    tags: tuple[str, ...] = ()
    held: tuple[tuple[int, str, float], ...] = ()
    screened_total: int = 0
    level: float | None = None
    recent: tuple[str, ...] = ()
    """The last RECENT_MAX screened events, which move the level once."""

    @staticmethod
    def loaded(row: CalibrationRow | None) -> "State":
        """Return the state that a row holds; the empty one for None."""
        if row is None:
            return EMPTY
        values, tags, recent = np.array(row.values, dtype=np.float64), row.tags.split(), row.recent.split()
        return State(values, tuple(tags), row.held, row.screened, row.level, tuple(recent))

    def dumped(self) -> CalibrationRow:
        """Return the row, the same for the same state."""
        return CalibrationRow(
            values=tuple(self.values.tolist()),
            tags=" ".join(self.tags),
            held=self.held,
            screened=self.screened_total,
            level=self.level,
            recent=" ".join(self.recent),
        )

    def over(self, values: Values) -> "State":
        """Return the same held scores and level over reference scores that are kept elsewhere."""
        return State(values, held=self.held, screened_total=self.screened_total, level=self.level, recent=self.recent)

    def landed(self, settings: Settings, event_id: str, value: float) -> "State":
        """Return the state after one more write landed over a trusted channel."""
        name = event_tag(event_id)
        if settings.frozen or name in self.tags:
            return self
        if settings.name == "fixed" and len(self.values) >= settings.full:
            return self
        values = np.append(self.values, round(value, DIGITS))[-settings.window :]
        return replace(self, values=values, tags=(*self.tags, name)[-settings.window :])

    def screened(self, settings: Settings, event_id: str, value: float, *, held: bool) -> "State":
        """Return the state after one more write was screened: its score joins the held ones, the level moves.

        The level follows the adaptive rule of Gibbs and Candès, ``alpha + gamma (alpha - held)``, within
        [alpha / 5, 2 alpha]: where more is held than the budget allows it falls, and with it what is held. A write of a
        tier whose budget has a factor is expected to be held by that much more, or less.
        """
        if settings.frozen or not (settings.gamma or settings.credit):
            return self
        name = event_tag(event_id)
        if name in self.recent:
            return self
        number = self.screened_total + 1
        kept = tuple(one for one in self.held if one[0] > number - settings.window)
        if held and settings.credit:
            kept = tuple(sorted((*kept, (number, name, round(value, DIGITS))), key=lambda one: (one[2], one[0])))
        level = self.level
        if settings.gamma:
            moved = (settings.alpha if level is None else level) + settings.gamma * (
                settings.alpha * settings.factor - held
            )
            level = round(min(max(moved, settings.alpha / 5), 2 * settings.alpha), 8)
        recent = (*self.recent, name)[-RECENT_MAX:]
        return replace(self, held=kept[:HELD_MAX], screened_total=number, level=level, recent=recent)


EMPTY = State(np.zeros(0))
"""The state of a tenant of which nothing landed yet."""
