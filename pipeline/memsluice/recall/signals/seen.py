"""What the detectors see of a recall, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from memsluice.recall.reader import VerifiedEntry


class SignalKind(StrEnum):
    """What was found."""

    POPULAR = "popular"
    """An entry suddenly answers far more principals than it used to (seed 002)."""
    RANK_RISE = "rank_rise"
    """An entry is suddenly the nearest far more often than it used to be."""
    RANK_FALL = "rank_fall"
    """An entry that used to be the nearest suddenly is so no more: something else took its place."""
    SWEEP = "sweep"
    """A principal was given far more different entries, over days, than others of its tenant (seed 002)."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One finding. ``subject`` is the object's id, of a sweep the principal.

    ``hits`` of ``trials`` is what was seen now, ``usual`` the share, or of a sweep the number, that was expected.
    """

    kind: SignalKind
    tenant: str
    subject: str
    hits: int
    trials: int
    usual: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One answered recall: who asked, a mark of the question, and the objects' ids, nearest first."""

    tenant: str
    principal: str
    question: int
    objects: tuple[str, ...]

    @staticmethod
    def of(tenant: str, principal: str, question: str, entries: Sequence[VerifiedEntry]) -> "Seen":
        """Return what is kept of an answer: of the question a mark, of the entries their ids."""
        ordered = sorted(entries, key=lambda entry: -entry.similarity)
        return Seen(tenant, principal, mark(question), tuple(entry.admission.object_id for entry in ordered))


def mark(*parts: str) -> int:
    """Return 64 bits that stand for some strings."""
    return int.from_bytes(blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
