"""What the paper of MEMSAD has besides the score (seed 000), by values worked out by hand, and through a decision."""

import math
from typing import Any

import numpy as np
import pytest
from tests.gate.build import TENANT, Core, axis

from memsluice.envelope.verdict import Decision
from memsluice.errors import PolicyError
from memsluice.gate.detectors.memsad import composite, lexical, proactive, watermark
from memsluice.gate.detectors.memsad.check import check, judge, learned, settings
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import MemsadPolicy
from memsluice.gate.state.kinds import MEMSAD_CALIBRATION


def near(value: float, abs_: float = 1e-9) -> object:
    """Compare by absolute difference."""
    return pytest.approx(value, rel=0, abs=abs_)


def core(**settings: Any) -> Core:
    """A core that MEMSAD decides, with N = 4 and without patterns."""
    base = policies.default().default
    part = {**base.memsad.model_dump(), "reference_size": 4, "calibration": {"strategy": "fixed"}, **settings}
    changed = {"detector": "memsad", "memsad": part, "instructions": {"enabled": False}, "writes_per_day": {}}
    return Core(policies.Policy.model_validate({**base.model_dump(), **changed}))


def calibrated(cosines: tuple[float, ...] = (0.1, 0.2, 0.3, 0.2), **settings: Any) -> Core:
    """The same after one question along axis 0 and writes at these cosines to it."""
    one = core(**settings)
    one.recall(vector=axis(0))
    for number, cosine in enumerate(cosines):
        one.write(vector=axis(10 + number, towards=0, cosine=cosine), content="Ana takes the early train.")
    return one


def test_divergence_by_hand() -> None:
    """p = (1/2, 1/2), q = (1, 0), middle (3/4, 1/4): KL(p) = 1/2 log2 2/3 + 1/2 log2 2 = .207519, KL(q) = log2 4/3 =
    .415037, half of the sum .311278. Alike 0, nothing in common 1.
    """
    assert lexical.divergence(np.array([5.0, 5.0]), np.array([3.0, 0.0])) == near(0.311278, 5e-7)
    assert lexical.divergence(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == near(0)
    assert lexical.divergence(np.array([1.0, 0.0]), np.array([0.0, 9.0])) == near(1)


def test_the_lexical_threshold_by_hand() -> None:
    """N = 4: two entries are the baseline, two calibrate. Baseline "aaaa" twice: one trigram. "aaaa" diverges by 0;
    "bbbb" by 1; mean 1/2, deviation sqrt(1/2), so with kappa 2 the threshold is .5 + 2 x .707107 = 1.914214.
    """
    learned_from = lexical.Lexical.loaded(None)
    for text in ("aaaa", "AAAA", "aaaa"):
        assert learned_from.judge("bbbb", 4, 2.0) is None
        learned_from = learned_from.landed(text, 4)
    learned_from = learned_from.landed("bbbb", 4).landed("cccc", 4)
    assert learned_from.judge("bbbb", 4, 2.0) == (near(1), near(1.914214, 5e-7))
    assert lexical.Lexical.loaded(learned_from.dumped()).judge("bbbb", 4, 2.0) == learned_from.judge("bbbb", 4, 2.0)


def test_the_watermark_by_hand() -> None:
    """z = (g - gamma n) / sqrt(gamma (1 - gamma) n). 40 green of 60 at gamma .45: (40 - 27) / sqrt(14.85) = 3.373495.

    Appendix C's token level, p_green .711 at n = 50, g = 35.55: "mean z 7.5" is (35.55 - 12.5) / sqrt(9.375) = 7.528
    with gamma .25, and (35.55 - 22.5) / sqrt(12.375) = 3.710 with the .45 that the paper gives for characters. .711 is
    gamma e^2 / (gamma e^2 + 1 - gamma) at gamma = .25: 1.847264 / 2.597264 = .711235.
    """
    assert watermark.z_score(40, 60) == near(3.373495, 5e-7)
    assert 0.25 * math.e**2 / (0.25 * math.e**2 + 0.75) == near(0.711235, 5e-7)
    z = [(35.55 - gamma * 50) / math.sqrt(gamma * (1 - gamma) * 50) for gamma in (0.25, 0.45)]
    assert z == [near(7.528, 5e-4), near(3.710, 5e-4)]


def test_a_watermark_is_embedded_and_found_by_its_seed_alone() -> None:
    """43 of 95 characters are green (.45 x 95 = 42.75); a marked text reaches z 1.5, under another seed it need not."""
    green = watermark.green_list("a")
    assert len(green) == 43
    marked = [watermark.embed(text, green) for text in ("", "zzzz", "Ana takes the early train to work every day.")]
    assert all(watermark.detect(text, green) >= 1.5 for text in marked)
    others = [watermark.detect(marked[2], watermark.green_list(seed)) for seed in "bcdefgh"]
    assert min(others) < 1.5
    assert watermark.detect("\u3042", green) == 0.0


def test_the_weighted_sum_by_hand() -> None:
    """Section 5: .5 for the watermark alone is not above .5, nor is .2 + .3; .5 + .2 is."""
    sums = [
        composite.weighted_sum(watermark=w, validation=v, proactive=p)
        for w, v, p in ((True, False, False), (False, True, True), (True, True, False), (True, True, True))
    ]
    assert sums == [0.5, 0.5, 0.7, 1.0]
    assert [total > composite.THETA for total in sums] == [False, False, True, True]


def test_the_probes_are_sixteen_unit_vectors() -> None:
    """Sixteen questions, two a subtopic; what ships is what the encoder makes of them (see tests/encoder)."""
    assert proactive.vectors().shape == (len(proactive.PROBES), 384) == (16, 384)
    assert np.linalg.norm(proactive.vectors(), axis=1) == pytest.approx(np.ones(16), abs=2e-3)
    mean = proactive.vectors().mean(axis=0)
    assert proactive.similarity(mean / np.linalg.norm(mean)) == pytest.approx(float(np.linalg.norm(mean)))


def test_the_verdict_says_what_it_guarantees() -> None:
    """N = 18, the least for delta = .05: scores .1 and .3 nine times each (one question: maximum, mean and their half
    sum are one): mean .2, sigma^ sqrt(.18 / 17) = .102899. eta = .102899 (1 / sqrt 18 + 2 / sqrt 34) 2.960414 =
    .176286; radius 2 x .102899 + .176286 = .382084. A write at cosine .9: Delta_s = .9 - .3 = .6 > .382084, so Lemma 8
    certifies it; one at .65 (gap .35) is held all the same.
    """
    one = calibrated((0.1, 0.3) * 9, reference_size=18)
    certain = one.write(vector=axis(30, towards=0, cosine=0.9)).verdict
    score = certain.score
    assert score is not None
    assert (score.mu, score.sigma) == (near(0.2, 2e-4), near(0.102899, 2e-4))
    assert (score.bound, score.radius) == (near(0.176286, 5e-4), near(0.382084, 1e-3))
    assert (score.gap, score.certified) == (near(0.6, 1e-3), True)
    assert certain.reasons == ("memsad.above_threshold",)
    less = one.write(vector=axis(31, towards=0, cosine=0.65)).verdict
    assert less.score is not None
    assert (less.score.certified, less.reasons) == (False, ("memsad.above_threshold",))


def test_of_fewer_entries_than_the_proof_needs_nothing_is_guaranteed() -> None:
    """Theorem 11's proof needs N >= 4 ln(4 / delta), 18 at delta = .05: of 17 no bound is said, and no certificate."""
    score = calibrated((0.2,) + (0.1, 0.3) * 8, reference_size=17).write(vector=axis(30, 0, 0.9)).verdict.score
    assert score is not None
    assert (score.phase, score.sigma) == ("calibrated", near(0.1, 1e-3))
    assert [score.bound, score.gap, score.radius, score.certified] == [None] * 4


@pytest.mark.parametrize("name", ["rolling", "ewma", "page_hinkley", "adwin", "m_star", "conformal"])
def test_another_strategy_than_the_paper_s_guarantees_nothing(name: str) -> None:
    """Its deviation is of its own window, Delta_s of the reference entries: the lemma is about neither pair."""
    one = calibrated((0.1, 0.3) * 20, reference_size=20, calibration={"strategy": name})
    score = one.write(vector=axis(300, 0, 0.9)).verdict.score
    assert score is not None
    assert (score.strategy, score.phase) == (name, "calibrated")
    assert [score.bound, score.gap, score.radius, score.certified] == [None] * 4


def test_memsad_plus_holds_what_is_written_like_nothing_else() -> None:
    """MEMSAD+ flags the score or the divergence: the same far vector lands with usual words and not with odd ones."""
    one = core(variant="memsad_plus", reference_size=8, kappa=3.0)
    one.recall(vector=axis(0))
    for number in range(8):
        one.write(content=f"Ana takes the {('early', 'late', 'slow', 'fast')[number % 4]} train on day {number}.")
    assert one.write(content="Ana takes the early train on day 9.").verdict.decision is Decision.ACCEPT
    odd = one.write(content="qzx vjk wqp zzk xvq").verdict
    assert odd.reasons == ("memsad.unlike_the_rest",)
    loaded = MemsadState.load(one.rows, "acme", one.policy.memsad)
    assert loaded.lexical.dumped() == one.memsad.lexical.dumped()
    assert loaded.lexical.learned == 8


def test_the_composite_holds_what_any_part_flags() -> None:
    """Near the probes, or without the watermark: each is a finding of its own; with both in order the write lands."""
    near_probes = proactive.vectors().mean(axis=0)
    near_probes = (near_probes / np.linalg.norm(near_probes)).astype(np.float32)
    green = watermark.green_list("seed")
    marked = watermark.embed("Ana takes the early train.", green)
    one = core(variant="composite", watermark="seed")
    one.recall(vector=-near_probes)
    assert one.write(content=marked).verdict.decision is Decision.ACCEPT
    flagged = one.write(content=marked, vector=near_probes).verdict
    assert flagged.reasons == ("memsad.near_probes",)
    (told,) = [found.detail for found in flagged.findings if found.code == "memsad.near_probes"]
    assert told is not None
    assert told["similarity"] > one.policy.memsad.proactive_threshold
    unmarked = next(seed for seed in "abcdefgh" if watermark.detect("zzzz", watermark.green_list(seed)) < 1.5)
    other = core(variant="composite", watermark=unmarked)
    other.recall(vector=axis(0))
    assert other.write(content="zzzz").verdict.reasons == ("memsad.no_watermark",)


def test_the_weighted_sum_needs_two_and_never_the_score() -> None:
    """Section 5's sum: a write far above MEMSAD's line lands, one without watermark and near the probes is held."""
    unmarked = next(seed for seed in "abcdefgh" if watermark.detect("zzzz", watermark.green_list(seed)) < 1.5)
    one = core(variant="weighted", watermark=unmarked)
    probes = proactive.vectors().mean(axis=0)
    probes = (probes / np.linalg.norm(probes)).astype(np.float32)
    one.recall(vector=axis(0))
    reported = one.write(content="zzzz", vector=axis(9, towards=0, cosine=0.95)).verdict
    assert reported.decision is Decision.ACCEPT
    assert any(found.code == "memsad.above_threshold" for found in reported.findings)
    held = one.write(content="zzzz", vector=probes).verdict
    assert held.reasons == ("memsad.weighted_sum",)


@pytest.mark.parametrize("name", ["rolling", "ewma", "page_hinkley", "adwin", "m_star", "conformal"])
def test_another_calibration_decides_the_same_before_and_after_a_restart(name: str) -> None:
    """Scores of landed writes alone say where the line lies; what is far above it is held; rows give the state back."""
    policy = MemsadPolicy.model_validate(
        {"reference_size": 20, "calibration": {"strategy": name, "gamma": 0.005, "credit": True}}
    )
    one = core(reference_size=20, calibration=policy.calibration.model_dump())
    one.recall(vector=axis(0))
    for number in range(60):
        one.write(vector=axis(10 + number, towards=0, cosine=0.1 + 0.005 * (number % 7)))
    held = one.write(vector=axis(99, towards=0, cosine=0.8)).verdict
    assert held.reasons == ("memsad.above_threshold",)
    assert held.score is not None
    assert (held.score.strategy, held.score.phase) == (name, "calibrated")
    assert len(one.memsad.scores.values) == 60
    loaded = MemsadState.load(one.rows, "acme", one.policy.memsad)
    entry = axis(120, towards=0, cosine=0.14)
    assert check(loaded, entry, one.policy.memsad, Decision.QUARANTINE) == check(
        one.memsad, entry, one.policy.memsad, Decision.QUARANTINE
    )


def test_the_budget_moves_the_line_of_a_conformal_memsad_before_anything_landed() -> None:
    """The declared tail, .01 at the declared .6 and falling by e every .05, makes .62 rare for 1 % and not for .5 %."""
    for alpha, value, rare in ((0.01, 0.62, True), (0.005, 0.62, False), (0.005, 0.64, True), (0.01, 0.59, False)):
        policy = MemsadPolicy.model_validate({"alpha": alpha, "calibration": {"strategy": "conformal"}})
        judged = judge(MemsadState.empty(policy), value, policy)
        assert (judged.flagged, judged.level) == (rare, alpha)
    assert settings(MemsadPolicy()).prior_tail(0.65) == near(0.01 / math.e)


def test_frozen_learns_nothing_more_and_says_so() -> None:
    """A frozen calibration keeps its reference and its line whatever lands."""
    one = calibrated()
    frozen = one.policy.memsad.model_copy(update={"frozen": True, "reference_size": 4})
    assert judge(one.memsad, 0.2, frozen).phase == "frozen"
    assert learned(one.memsad, None, "w", "text", axis(3), frozen) is one.memsad  # type: ignore[arg-type]


def test_a_strategy_that_is_none_is_refused() -> None:
    """A policy that names another calibration is no policy."""
    with pytest.raises(PolicyError, match="strategy"):
        policies.parse("name: x\nmemsad: {calibration: {strategy: magic}}\n")


def test_a_watermark_adds_no_more_than_it_needs() -> None:
    """What is marked already stays as it is; else the last character added is the one that reaches the line."""
    green = watermark.green_list("a")
    marked = watermark.embed("Ana takes the early train to work every day.", green)
    assert watermark.embed(marked, green) == marked
    assert watermark.detect(marked[:-1], green) < watermark.Z_MIN <= watermark.detect(marked, green)
    beyond = watermark.embed("\u3042", green, 1e9)
    assert (len(beyond), beyond[0]) == (1 + watermark.PADDING_MAX, "\u3042")


def test_unlike_what_was_learned_is_not_said_before_enough_was_learned() -> None:
    """Two divergences make a mean and a deviation, and a threshold only once the reference is full."""
    known = lexical.Lexical.loaded(None)
    for text in ("aaaa", "aaaa", "aaaa", "aaab", "aaba"):
        known = known.landed(text, 6)
    assert len(known.divergences) == 2
    assert known.judge("bbbb", 6, 2.0) is None
    assert known.landed("abaa", 6).judge("bbbb", 6, 2.0) is not None


def test_the_papers_own_calibration_keeps_no_scores_of_another() -> None:
    """Fixed rests on the reference set, whose vectors are kept: no row of scores is written beside them."""
    one = calibrated()
    assert not [key for key in one.rows if key.endswith(MEMSAD_CALIBRATION.key(TENANT, "0"))]
    other = calibrated(calibration={"strategy": "rolling"})
    assert [key for key in other.rows if key.endswith(MEMSAD_CALIBRATION.key(TENANT, "0"))]
