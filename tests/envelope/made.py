"""Verdicts made by hand, for tests that are about a few of the fields."""

from dataclasses import replace
from typing import Any

from memsluice.envelope.verdict import Decision, Finding, Score, Usual, Verdict
from memsluice.events.models import Tier

_VERDICT = Verdict(
    tenant="acme",
    event_id="e0",
    type="memory.write.v1",
    decision=Decision.ACCEPT,
    reasons=(),
    findings=(),
    decided_ms=0,
    topic="memory.events.v1",
    partition=0,
    offset=0,
    sealed_offset=0,
    kid="key-agent",
    role="producer",
    credential_tier=Tier.USER_OBSERVED,
    channel="agent",
    tier=Tier.USER_OBSERVED,
    taint=False,
    taint_causes=(),
    agent="helper",
    principal="ana",
    session="s1",
    policy="default@0",
    model="",
    content_digest="",
)
_SCORE = Score(
    phase="calibrated", mode="max", score=0.5, s_max=0.5, s_mean=0.1, mu=0.1, sigma=0.1, kappa=2.0, threshold=0.4,
    bound=None, window_id=1, window_size=50, history_size=1,
)  # fmt: skip
_USUAL = Usual(strategy="conformal", phase="calibrated", size=400, score=0.0, p=None, level=0.01, threshold=None)


def made(**fields: Any) -> Verdict:
    """Return the verdict on an accepted write, with some fields changed."""
    return replace(_VERDICT, **fields)


def score(**fields: Any) -> Score:
    """Return MEMSAD's part of a verdict, with some fields changed."""
    return replace(_SCORE, **fields)


def usual(**fields: Any) -> Usual:
    """Return what the default detector's calibration says, with some fields changed."""
    return replace(_USUAL, **fields)


def finding(code: str, decision: Decision = Decision.ACCEPT, **detail: Any) -> Finding:
    """Return what a check found."""
    return Finding(code, decision, detail)
