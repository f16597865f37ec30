"""Patterns, orders and wording: the detectors that screened the write, asked again when it would be shown.

What landed was screened once, by the models and the policy of that day, or in shadow mode. Here it is read as it would
be if it were written now; what a person let in despite its wording is flagged and shown. What a content shows
depends on the content and the model alone, so it is kept by object, version and digest; what follows from that is
decided anew, by the policy.

The wording signal's first half is a head on the encoder's inner states. No vector that a store holds has them, so a
content that is not known here yet costs one pass of the encoder.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

from memsluice.encoder import Encoder
from memsluice.encoder.base import read
from memsluice.envelope.seals import RELEASED, Admission, Wording
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Zone
from memsluice.gate.checks import instructions, overrides, reach
from memsluice.gate.checks.spelled import spelled
from memsluice.gate.detectors.wording import check as wording
from memsluice.gate.detectors.wording.classifier import Classifier, Judged
from memsluice.gate.detectors.wording.shipped import shipped
from memsluice.gate.policy.model import Policy
from memsluice.recall.instructions.patterns import by_patterns
from memsluice.recall.instructions.policy import InstructionPolicy
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.withheld import Flag, Withheld

CACHED_MAX = 50_000
"""Contents whose reading is kept (some 400 bytes each), the last that were asked for."""
HELD = "wording.held"
_Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a content shows, whoever wrote it: how many of pattern 6's patterns, any pattern at all, an order to set
    aside what one was told, its wording."""

    risk: int
    pattern: bool
    overrides: bool
    judged: Judged


def reading(content: str, shown: Wording | None, model: Classifier) -> Reading:
    """Return what a content shows; ``shown`` is what the encoder's head read in it, None where it read nothing."""
    text = spelled(content)
    matches, ordered = instructions.find(text), overrides.find(text) is not None
    told = instructions.told(text, matches)
    return Reading(instructions.risk(matches), told, ordered, model.judge(content, shown))


def decide(found: Reading, admission: Admission, policy: InstructionPolicy, model: str) -> Withheld | tuple[Flag, ...]:
    """Return why an entry is withheld, or its flags. ``model`` names the classifier."""
    by = by_patterns(found.risk, admission.tier, policy)
    if isinstance(by, Withheld):
        return by
    finding = wording.check(
        found.judged, policy.wording, reach.landed(admission), admission.tier,
        pattern=found.pattern, least=Decision.QUARANTINE, model=model,
    )  # fmt: skip
    ordered = found.overrides and policy.overrides
    if not ordered and (finding is None or not _over(finding)):
        return by
    held = (finding is not None and finding.code == HELD) or (ordered and policy.wording.action == "hold")
    data = admission.zone is Zone.EXTERNAL and not policy.withhold_data
    trusted = admission.tier <= policy.flagged_tier_max or admission.decision == RELEASED
    if held and not data and not trusted:
        return Withheld.WORDING
    return (*by, Flag.WORDING)


def _over(finding: Finding) -> bool:
    """Whether a text is beyond its budget; with the action "report" the finding alone does not say so."""
    return bool(finding.code == HELD or finding.detail["p"] <= finding.detail["budget"])


@lru_cache(maxsize=256)
def of_gate(policy: Policy) -> InstructionPolicy:
    """Return what goes with a policy of the gate: its budgets, and no stricter than it is itself.

    In shadow mode, and where another detector decides, wording withholds nothing: the gate lets such a write land.
    """
    decides = policy.detector == "default" and policy.mode != "shadow"
    rules = policy.wording if decides else policy.wording.model_copy(update={"action": "report"})
    asked = policy.instructions
    return InstructionPolicy(wording=rules, withhold_data=asked.hold_contained, overrides=asked.enabled)


class DetectorCheck:
    """Flags or withholds by all of the gate's wording detectors; see :class:`.policy.InstructionCheck`.

    ``encoder`` is the one that the memory's vectors are of; one without a head leaves wording to the n-grams, and then
    a pattern holds by itself, as at write. ``policy`` gives a tenant's, None the default. ``model`` is the classifier,
    None the one that ships (StateError where it cannot be read). ``cached_max`` bounds what is kept.
    """

    def __init__(
        self,
        encoder: Encoder,
        policy: Callable[[str], InstructionPolicy] | None = None,
        *,
        model: Classifier | None = None,
        cached_max: int = CACHED_MAX,
    ) -> None:
        self._encoder = encoder
        standard = InstructionPolicy()
        self._policy = policy or (lambda _tenant: standard)
        self._model = model or shipped()
        self._cached_max = cached_max
        self._cached: OrderedDict[_Key, Reading] = OrderedDict()
        self._lock = Lock()

    def of(self, entries: Sequence[VerifiedEntry], reads_max: int) -> tuple[list[VerifiedEntry | Withheld], int]:
        """Return what becomes of each entry. What the encoder did not read is not kept: another recall may read it."""
        found = [self._known(entry) for entry in entries]
        new = [at for at, one in enumerate(found) if one is None]
        some, rest = new[: max(reads_max, 0)], new[max(reads_max, 0) :]
        if some:
            shown = read(self._encoder, [entries[at].content for at in some])[1]
            for at, one in zip(some, shown, strict=True):
                found[at] = self._keep(entries[at], reading(entries[at].content, one, self._model))
        for at in rest:
            found[at] = reading(entries[at].content, None, self._model)
        return [self._decided(entry, one) for entry, one in zip(entries, found, strict=True)], len(some)

    def _decided(self, entry: VerifiedEntry, found: Reading | None) -> VerifiedEntry | Withheld:
        assert found is not None
        decided = decide(found, entry.admission, self._policy(entry.admission.tenant), self._model.digest)
        return decided if isinstance(decided, Withheld) else replace(entry, flags=decided)

    def _known(self, entry: VerifiedEntry) -> Reading | None:
        with self._lock:
            found = self._cached.get(_key(entry))
            if found is not None:
                self._cached.move_to_end(_key(entry))
            return found

    def _keep(self, entry: VerifiedEntry, found: Reading) -> Reading:
        with self._lock:
            self._cached[_key(entry)] = found
            while len(self._cached) > self._cached_max:
                self._cached.popitem(last=False)
        return found


def _key(entry: VerifiedEntry) -> _Key:
    """An object's id is of its tenant, and the digest of its content holds by then: no two contents share a key."""
    return entry.admission.object_id, entry.admission.version, entry.admission.content_digest
