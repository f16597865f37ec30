"""What became of an event that was published: the gate's answer to whoever asked for something to be remembered."""

from dataclasses import dataclass
from enum import StrEnum

from memsluice.envelope.records import StoreRecord
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import NotRemembered, WriteHeld, WriteRefused
from memsluice.gate.reasons import WORDS

Place = tuple[str, int, int]
"""Where an event's record lies in the intake: topic, partition, offset."""
REASONS_TOLD_MAX = 3


class Status(StrEnum):
    """``accepted``: the broker has it, and nobody waited for more. ``recorded`` is a recall's or an observation's end;
    ``duplicate`` that of an event which was decided before under this id."""

    ACCEPTED = "accepted"
    LANDED = "landed"
    CONTAINED = "contained"
    HELD = "held"
    REFUSED = "refused"
    DEAD_LETTER = "dead_letter"
    RECORDED = "recorded"
    DUPLICATE = "duplicate"


BECAME: dict[Status, tuple[str, str]] = {
    Status.ACCEPTED: ("was taken by the broker, and nothing was heard of it yet", "ask again, with ?wait=SECONDS"),
    Status.LANDED: ("is in memory, and agents can read it", ""),
    Status.CONTAINED: ("is kept as outside data, apart from what agents follow", "a reviewer may lift its label"),
    Status.HELD: (
        "is held in quarantine, and a reviewer decides",
        "its writer may appeal once: publish memory.command.v1 with action appeal and this id as target",
    ),
    Status.REFUSED: ("was rejected", "nothing lands; a later policy may let it in by a reviewer's replay"),
    Status.DEAD_LETTER: ("is a dead letter: nobody could read or authenticate it", "mend it, and publish it anew"),
    Status.RECORDED: ("was recorded, and is no entry of memory", ""),
    Status.DUPLICATE: ("was decided before under this id", "ask for what lies there, or use another id"),
}
"""What became of an event, said after its name or "it", and what to do then."""
_STATUS = {
    Decision.ACCEPT: Status.LANDED,
    Decision.CONTAIN: Status.CONTAINED,
    Decision.QUARANTINE: Status.HELD,
    Decision.REJECT: Status.REFUSED,
    Decision.DUPLICATE: Status.DUPLICATE,
    Decision.RECORD: Status.RECORDED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one event. ``reasons`` are the verdict's codes, or a dead letter's one.

    ``object_id`` and ``version`` are the entry's where it landed; ``place`` is where the event lies in the intake.
    ``again``: it is that of the first one under its id, and the entry may have been replaced or taken out since.
    """

    event_id: str
    status: Status
    reasons: tuple[str, ...] = ()
    object_id: str | None = None
    version: int | None = None
    place: Place | None = None
    again: bool = False

    @property
    def remembered(self) -> bool:
        """Whether an agent can read it as guidance now, or nobody waited to know."""
        return self.status in (Status.LANDED, Status.ACCEPTED)

    def error(self) -> NotRemembered:
        """Return what to raise where an entry was wanted that its writer can read."""
        kind = WriteRefused if self.status in (Status.REFUSED, Status.DEAD_LETTER) else WriteHeld
        return kind(
            _told(self), event_id=self.event_id, reasons=self.reasons, place=self.place, became=self.status.value
        )


def outcome_of(verdict: Verdict) -> Outcome:
    """Return what a verdict says became of its event; where it lands, it has yet to."""
    status = _STATUS[verdict.decision]
    if status is Status.LANDED and verdict.object_id is None:  # an accepted event of which nothing lies anywhere
        status = Status.RECORDED
    return Outcome(verdict.event_id, status, verdict.reasons, verdict.object_id, verdict.sealed_offset, verdict.intake)


def landed_by(outcome: Outcome, stored: StoreRecord) -> bool:
    """Whether a record of the store's log says that the outcome's entry, or a later version of it, is there."""
    return stored.object_id == outcome.object_id and stored.version >= (outcome.version or 0)


def _told(outcome: Outcome) -> str:
    """Return what became of a write and what to do, in words; nothing of what it says."""
    why = "; ".join(WORDS.get(code, code) for code in outcome.reasons[:REASONS_TOLD_MAX]) or "no reason was given"
    what, then = BECAME[outcome.status]
    ask = f"`memsluice trace {outcome.event_id}` says all"
    return f"write {outcome.event_id} {what} ({why}); {f'{then}; ' if then else ''}{ask}"
