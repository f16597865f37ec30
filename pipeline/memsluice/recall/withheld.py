"""Why an entry was not returned, and what is said of one that was returned all the same."""

from enum import StrEnum


class Withheld(StrEnum):
    """Why an entry was not returned. One reason each: the first check that fails."""

    FORGED = "forged"
    """No admission, or none that the gate signed: written behind its back."""
    MOVED = "moved"
    """Admitted for another tenant, zone or object than where it was found."""
    PROPERTY = "property"
    """A stored property (tier, owner, version, …) is not what was admitted."""
    CONTENT = "content"
    """The content is not what was admitted."""
    VECTOR = "vector"
    """The vector is not what was admitted: it would be found for other questions."""
    ENCODER = "encoder"
    """Another encoder than the question's made its vector: how near they are means nothing."""
    SCOPE = "scope"
    """It belongs to another principal, session or namespace."""
    EXPIRED = "expired"
    UNRECORDED = "unrecorded"
    """The log of landed objects does not know it (yet)."""
    STALE = "stale"
    """An older version than the current one: validly sealed, and put back."""
    WITHDRAWN = "withdrawn"
    """The log says that it was taken out: put back, or on its way out at this moment."""
    TIER = "tier"
    """Less trusted than who asked allows (seed 002, pattern 2)."""
    INSTRUCTION = "instruction"
    """Reads like an instruction to the agent (seed 002, pattern 6)."""
    WORDING = "wording"
    """Its wording tells agents what to do, more than its reach and tier allow: the gate's own detector, at read."""
    MISSING = "missing"
    """The log says that it lies in this scope, and the store does not give it: deleted or hidden there, or being
    withdrawn at this moment."""


class Flag(StrEnum):
    """What an entry that was returned reads like: somebody trusted said it, so it is shown, and marked."""

    PATTERN = "instruction"
    """Instruction patterns occur in it (seed 002, pattern 6), no more of them than a trusted tier may have."""
    WORDING = "wording"
    """Its wording tells agents what to do, more than its reach and tier would allow somebody less trusted."""
