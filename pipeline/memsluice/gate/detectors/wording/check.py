"""What a text says to do, against the budget of its reach and its tier: cold or warm, the same text the same finding.

It rests on the text and the policy alone. Nothing that landed before, however much, makes an order usual.
"""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Tier
from memsluice.gate.detectors.wording.classifier import Judged
from memsluice.gate.policy.wording import Reach, WordingPolicy

TOLD_MAX = 0.1
"""Shares above are not worth a word in the verdict."""


def check(
    judged: Judged, policy: WordingPolicy, reach: Reach, tier: Tier, *, pattern: bool, least: Decision, model: str
) -> Finding | None:
    """Return what is found of a text's wording; ``pattern``: an instruction pattern occurs in it."""
    budget = policy.budget(reach, tier, pattern=pattern)
    if pattern and not judged.both:  # where the head read nothing, a pattern holds by itself, as published
        budget = 1.0
    if judged.p > max(budget, TOLD_MAX):
        return None
    detail = {
        "p": judged.p,
        "budget": round(budget, 6),
        "reach": reach.value,
        "pattern": pattern,
        "unit": [judged.first, judged.end],
        "model": model,
    }
    if judged.p <= budget and policy.action == "hold":
        return Finding("wording.held", least, detail)
    return Finding("wording.scored", Decision.ACCEPT, detail)
