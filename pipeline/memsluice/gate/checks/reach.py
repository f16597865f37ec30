"""Who could be given a write: the farther it reaches, the stricter it is judged.

What a user writes is given to that user alone until somebody promotes it; what anybody else writes, an agent as a rule,
is given to whoever relies on that; and some asks to be shared, or is. By the authenticated channel, never by what the
payload says of its writer.
"""

from memsluice.envelope.seals import Admission, Identity
from memsluice.events.models import Visibility, Write
from memsluice.gate.policy.wording import Reach


def of(write: Write, identity: Identity) -> Reach:
    """Return how far a write reaches, or asks to."""
    return _of(write.visibility, identity.channel)


def landed(admission: Admission) -> Reach:
    """Return how far an entry reaches where it lies now: a promotion may have moved it."""
    return _of(admission.visibility, admission.channel)


def _of(visibility: Visibility, channel: str) -> Reach:
    if visibility is Visibility.SHARED:
        return Reach.SHARED
    return Reach.OWN if channel == "user" else Reach.RELIED
