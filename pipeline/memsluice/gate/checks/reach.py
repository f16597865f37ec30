"""Who could be given a write: the farther it reaches, the stricter it is judged.

What a user writes is given to that user alone until somebody promotes it; what anybody else writes, an agent as a rule,
is given to whoever relies on that; and some asks to be shared, or is. By the authenticated channel, never by what the
payload says of its writer.
"""

from memsluice.envelope.seals import Identity
from memsluice.events.models import Visibility, Write
from memsluice.gate.policy.wording import Reach


def of(write: Write, identity: Identity) -> Reach:
    """Return how far a write reaches, or asks to."""
    if write.visibility is Visibility.SHARED:
        return Reach.SHARED
    return Reach.OWN if identity.channel == "user" else Reach.RELIED
