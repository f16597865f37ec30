"""Whose vectors a tenant's detectors remember: vectors of two encoders are compared with each other nowhere.

The first vector of another encoder ends the memory of the last one's: questions, entries, reference and what was
calibrated on them begin anew, and the verdict says so. Rows of the last encoder go some with each event, or stay until
others take their place, and never count again, also not once its vectors come back: who the memory is of is a row, its
turns are counted, and rows say of which turn they are.

A command that would land an entry whose vector another encoder made is refused: no store could find it. Commands that
land nothing are carried out.
"""

from memsluice.envelope.codec import Vector
from memsluice.envelope.records import Accepted
from memsluice.envelope.seals import Sealed
from memsluice.envelope.space import Space, space_of
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action
from memsluice.gate.state.kinds import EncoderRow

CHANGED = "encoder.changed"
LANDING = (Action.RELEASE, Action.REPLAY, Action.PROMOTE, Action.DECLASSIFY, Action.RENEW)
"""Commands that may put a vector into the store that they carry."""


def entered(known: EncoderRow, sealed: Sealed, vector: Vector | None) -> EncoderRow | None:
    """Return the row of the encoder that an event's vector is of; None where that is the known one, or it has none."""
    if vector is None or (sealed.model == known.model and len(vector) == known.dimensions):
        return None
    space = space_of(sealed.model, vector)
    if space == _space(known):  # sealed before events named their model
        return None
    return EncoderRow(model=space.model, dimensions=space.dimensions, turn=known.turn + 1)


def changed(known: EncoderRow, after: EncoderRow, *, remembered: int) -> Finding | None:
    """Say that so many questions and entries of the last encoder are forgotten; None for a tenant that had none."""
    if not remembered and not known.turn:
        return None
    return Finding(CHANGED, Decision.ACCEPT, {"from": known.model, "to": after.model, "forgotten": remembered})


def against(known: EncoderRow, action: Action, carried: Sealed | Accepted | None) -> Finding | None:
    """Return why a command may not land what it carries: another encoder made the vector."""
    if action not in LANDING or carried is None:
        return None
    vector = carried.vector()
    space = None if vector is None else space_of(_model(carried), vector)
    if space is None or space == _space(known):
        return None
    return Finding("encoder.carried", Decision.REJECT, {"entry": space.model, "tenant": known.model})


def _model(carried: Sealed | Accepted) -> str:
    return carried.admission.model if isinstance(carried, Accepted) else carried.model


def _space(row: EncoderRow) -> Space:
    return Space(row.model, row.dimensions)
