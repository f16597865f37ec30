"""What reviewers said of held writes: a release is a label *good*, a rejection a label *bad*.

Only writes that were held have labels. What a detector never held, nobody looked at: such labels say how well a
candidate tells the held apart, not how much it misses.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.errors import SealError
from memsluice.events.models import Action
from memsluice.events.names import TARGET_HEADER
from memsluice.operations.held.entries import CommandOutcome, read_ruling
from memsluice.readers.base import TopicReader

LABELS_MAX = 50_000
LABELLING = (Action.RELEASE.value, Action.REJECT.value)
"""A replay's outcome is the gate's, not a person's: it labels nothing."""


@dataclass(slots=True)
class Labels:
    """Whether a held write is bad, by tenant and intake offset; ``appealed`` those whose writer asked for a review.

    ``unplaced`` orders name no write of an intake offset that is known, ``left_out`` are beyond LABELS_MAX,
    ``unverified`` records have no seal of this home's keys.
    """

    bad: dict[tuple[str, int], bool] = field(default_factory=dict)
    appealed: set[tuple[str, int]] = field(default_factory=set)
    unplaced: int = 0
    left_out: int = 0
    unverified: int = 0


def labels(audit: TopicReader, keyring: Keyring, partitions: Iterable[int], tenant: str | None = None) -> Labels:
    """Read every release and rejection that was carried out, and every appeal. Raises BrokerUnavailable."""
    found = Labels()
    for partition in partitions:
        for record in audit.read(partition):
            if tenant is not None and record.key != tenant.encode():
                continue
            if not any(name == TARGET_HEADER for name, _ in record.headers):
                continue
            try:
                ruled = read_ruling(keyring, record)
            except SealError:
                found.unverified += 1
                continue
            if ruled is None or ruled.outcome not in (
                CommandOutcome.RELEASED,
                CommandOutcome.REJECTED,
                CommandOutcome.APPEALED,
                CommandOutcome.REOPENED,
            ):
                continue
            if ruled.offset is None:
                found.unplaced += 1
                continue
            place = (ruled.tenant, ruled.offset)
            if ruled.outcome is CommandOutcome.APPEALED:
                found.appealed.add(place)
            elif ruled.outcome is CommandOutcome.REOPENED:  # the rejection is taken back, and says nothing
                found.bad.pop(place, None)
            elif ruled.action not in LABELLING:
                continue
            elif place not in found.bad and len(found.bad) >= LABELS_MAX:
                found.left_out += 1
            else:
                found.bad[place] = ruled.outcome is CommandOutcome.REJECTED
    return found
