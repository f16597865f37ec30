"""MEMSAD's part of a decision: Algorithm 1 by the policy's calibration, and the variant that the policy names.

- ``memsad``: the score alone (Definition 6, Algorithm 1);
- ``memsad_plus``: the score, or the divergence of character n-grams (Proposition 27);
- ``composite``: watermark, score or proactive probes (Appendix C);
- ``weighted``: the weighted sum of Section 5, which Appendix C deprecates.

Every term is a finding of its own, but for those of the sum; the composite's watermark is absent where the policy
names no seed.
"""

from functools import lru_cache, partial

from msgspec import Struct

from memsluice.envelope.codec import Vector
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.envelope.verdict import Decision, Finding, Score
from memsluice.gate.checks import instructions
from memsluice.gate.checks.spelled import spelled
from memsluice.gate.detectors.calibration.base import Judged, Phase, Settings
from memsluice.gate.detectors.calibration.conformal import declared_tail
from memsluice.gate.detectors.calibration.moments import within
from memsluice.gate.detectors.calibration.state import State
from memsluice.gate.detectors.calibration.strategies import strategy
from memsluice.gate.detectors.memsad import composite, proactive, watermark
from memsluice.gate.detectors.memsad import scores as memsad
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.numeric.compiled import FOUR, SIX, rounded
from memsluice.gate.policy.model import MemsadPolicy
from memsluice.gate.state.rows import TenantRows

PRIOR_SHARE, PRIOR_WIDTH = 0.01, 0.05
"""Prior tail of the score on honest writes: a hundredth lies beyond the declared threshold, falling by e every .05."""


def check(
    state: MemsadState, entry: Vector, policy: MemsadPolicy, least: Decision, content: str = ""
) -> tuple[Score, list[Finding]]:
    """Score a write against the questions asked before it, and say what the policy's variant finds in it.

    Until N reference entries were seen, the policy's declared prior threshold stands in; with an empty history nothing
    can be scored, which a finding says.
    """
    if not state.numbers:
        score = _score(state, policy, Judged(False, Phase.COLD, len(state.reference)), None)
        return score, [Finding("memsad.cold", Decision.ACCEPT), *_others(state, policy, least, entry, content)]
    scores = memsad.score(entry, asked_lately(state, policy))
    judged = judge(state, scores.of(policy.mode), policy)
    score = _score(state, policy, judged, scores)
    flagged = judged.flagged if score.threshold is None else _above(score)
    alone = policy.variant != "weighted"
    found = [Finding("memsad.above_threshold", least if alone else Decision.ACCEPT, _detail(score))] if flagged else []
    return score, [*found, *_others(state, policy, least, entry, content)]


def asked_lately(state: MemsadState, policy: MemsadPolicy) -> memsad.Floats:
    """Return the questions that count, shape (m, d): the whole history, or under ``m_star`` the last m* of it.

    Theorem 12 of seed 000 is about m_max, the history's size: m* = (sigma / Delta)^(2/3), sigma and Delta the deviation
    and the drift a step of the last reference scores (:func:`memsluice.gate.detectors.calibration.moments.within`).
    """
    history = state.history
    if policy.calibration.strategy != "m_star":
        return history
    return history[len(history) - within(len(history), state.scores.values) :]


def judge(state: MemsadState, value: float, policy: MemsadPolicy) -> Judged:
    """Judge a score by the policy's calibration: the paper's is over the current history, others are over scores."""
    rules = settings(policy)
    if rules.name == "fixed":
        return strategy(rules).judge(value, State(state.reference_scores(policy.mode)))
    return strategy(rules).judge(value, state.scores)


@lru_cache(256)  # one a policy; made anew it costs as much as the score
def settings(policy: MemsadPolicy) -> Settings:
    """Return how MEMSAD's score is calibrated."""
    chosen = policy.calibration
    return Settings(
        name=chosen.strategy,
        window=max(policy.window, policy.reference_size),
        full=policy.reference_size,
        least=0,
        kappa=policy.kappa,
        prior_threshold=policy.cold_threshold,
        ewma_weight=chosen.ewma_weight,
        alpha=policy.alpha,
        gamma=chosen.gamma,
        credit=chosen.credit,
        frozen=policy.frozen,
        prior_tail=partial(declared_tail, PRIOR_SHARE, policy.cold_threshold, PRIOR_WIDTH),
        prior_weight=float(policy.reference_size),
    )


def learned(
    state: MemsadState, rows: TenantRows, event_id: str, content: str, entry: Vector, policy: MemsadPolicy
) -> MemsadState:
    """Return the state after a write landed over a trusted channel: reference, scores, and what the variant keeps."""
    if policy.frozen:
        return state
    after = state.learned(rows, entry)
    rules = settings(policy)
    if rules.name != "fixed" and len(state.history):
        value = memsad.score(entry, asked_lately(state, policy)).of(policy.mode)
        after = after.calibrated(rows, state.scores.landed(rules, event_id, value))
    if policy.variant == "memsad_plus":
        after = after.worded(rows, after.lexical.landed(content, policy.reference_size))
    return after


def screened(
    state: MemsadState, rows: TenantRows, event_id: str, score: Score | None, *, held: bool, policy: MemsadPolicy
) -> MemsadState:
    """Return the state after one more write was scored, whatever became of it: the level follows, held scores wait."""
    if score is None or score.score is None or policy.calibration.strategy != "conformal":
        return state
    after = state.scores.screened(settings(policy), event_id, score.score, held=held)
    return state.calibrated(rows, after)


def _above(score: Score) -> bool:
    assert score.score is not None
    assert score.threshold is not None
    return score.score > score.threshold


def _detail(score: Score) -> dict[str, object]:
    return {"phase": score.phase} if score.p is None else {"phase": score.phase, "p": score.p}


def _score(state: MemsadState, policy: MemsadPolicy, judged: Judged, scores: memsad.Scores | None) -> Score:
    seen = Guarantee() if scores is None else _guarantee(state, policy, judged, scores)
    return Score(
        phase=judged.phase.value,
        mode=policy.mode.value,
        score=None if scores is None else _rounded(scores.of(policy.mode)),
        s_max=None if scores is None else _rounded(scores.s_max),
        s_mean=None if scores is None else _rounded(scores.s_mean),
        mu=_rounded(judged.mu),
        sigma=_rounded(judged.sigma),
        kappa=policy.kappa,
        threshold=_rounded(judged.threshold),
        bound=_rounded(seen.bound),
        window_id=state.asked_total,
        window_size=judged.size,
        history_size=len(state.numbers) if scores is None else len(scores.cosines),
        nearest="" if scores is None else state.nearest(scores.cosines),
        strategy=policy.calibration.strategy,
        p=_rounded(judged.p),
        gap=_rounded(seen.gap),
        radius=_rounded(seen.radius),
        certified=seen.certified,
    )


class Guarantee(Struct, frozen=True):
    """Theorem 11's bound eta, Lemma 8's gap Delta_s and radius kappa sigma^ + eta, and whether the gap exceeds it.

    None is what the paper does not say of this decision.
    """

    bound: float | None = None
    gap: float | None = None
    radius: float | None = None
    certified: bool | None = None


def _guarantee(state: MemsadState, policy: MemsadPolicy, judged: Judged, scores: memsad.Scores) -> Guarantee:
    """Return what the paper says of this decision, the victim question q* being the nearest one that was asked.

    Assumption 9 holds for it by itself: a greatest similarity is no lower than the mean less kappa deviations. Nothing
    is said under another strategy than the paper's, whose deviation is of another window than the ceiling of Delta_s,
    nor of fewer reference entries than Theorem 11's proof needs.
    """
    fixed = policy.calibration.strategy == "fixed"
    if not fixed or judged.sigma is None or judged.size < memsad.calibration_size_min(policy.delta):
        return Guarantee()
    bound = memsad.calibration_bound(judged.sigma, judged.size, kappa=policy.kappa, delta=policy.delta)
    gap = memsad.similarity_gap(scores.s_max, state.cosine_rows.window[scores.nearest])
    radius = memsad.certified_radius(judged.sigma, bound, kappa=policy.kappa)
    return Guarantee(bound, gap, radius, rounded(gap, SIX) > rounded(radius, SIX))


def _others(state: MemsadState, policy: MemsadPolicy, least: Decision, entry: Vector, content: str) -> list[Finding]:
    """Return what the variant finds besides the score."""
    if policy.variant == "memsad":
        return []
    if policy.variant == "memsad_plus":
        told = state.lexical.judge(content, policy.reference_size, policy.kappa)
        if told is None or told[0] <= told[1]:
            return []
        return [Finding("memsad.unlike_the_rest", least, {"divergence": told[0], "threshold": told[1]})]
    probes = state.encoder.model == DEFAULT_MODEL  # the published rule has none of another encoder
    near = rounded(proactive.similarity(entry), SIX) if probes else 0.0
    probed = probes and near > policy.proactive_threshold
    unknown = [] if probes else [Finding("memsad.no_probes", Decision.ACCEPT, {"encoder": state.encoder.model})]
    z, unmarked = 0.0, False
    if policy.watermark is not None:
        z = rounded(watermark.detect(content, watermark.green_list(policy.watermark)), FOUR)
        unmarked = z < policy.watermark_z
    if policy.variant == "composite":
        found = [Finding("memsad.near_probes", least, {"similarity": near})] if probed else []
        return unknown + found + ([Finding("memsad.no_watermark", least, {"z": z})] if unmarked else [])
    validated = bool(instructions.find(spelled(content)))
    total = composite.weighted_sum(watermark=unmarked, validation=validated, proactive=probed)
    return unknown + ([Finding("memsad.weighted_sum", least, {"sum": total})] if total > composite.THETA else [])


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(float(value), SIX)
