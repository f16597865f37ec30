"""MEMSAD's memory of a tenant: FIFO history, reference set, thresholds of the current history, rows and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.gate.build import TENANT, Core, MemoryRows, axis

from memsluice.envelope.codec import (
    DIMENSIONS,
    coarse_from_text,
    coarse_to_text,
    vector_from_bytes,
    vector_to_bytes,
    vector_to_text,
)
from memsluice.envelope.verdict import Decision
from memsluice.gate.detectors.calibration.state import State
from memsluice.gate.detectors.memsad import scores
from memsluice.gate.detectors.memsad.check import asked_lately, check, judge
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.policy.model import CalibrationPolicy, MemsadPolicy, Mode, default, laid_over
from memsluice.gate.state.rows import TenantRows, encode_changes

FIXED = CalibrationPolicy(strategy="fixed")
"""The paper's Definition 6; what ships follows the drift."""


def near(value: float) -> object:
    """Compare to nine digits."""
    return pytest.approx(value, abs=1e-9)


def wire(vector: np.ndarray) -> np.ndarray:
    """Return the vector as it is after a journey over the wire."""
    return vector_from_bytes(vector_to_bytes(vector.astype(np.float32)))


def fed(policy: MemsadPolicy, questions: list[np.ndarray], entries: list[np.ndarray]) -> tuple[MemsadState, MemoryRows]:
    """Return the state after entries and questions took turns, and the rows it left."""
    state, rows = MemsadState.empty(policy), MemoryRows()
    for number in range(max(len(questions), len(entries))):
        view = TenantRows(rows, TENANT, 0)
        if number < len(entries):
            state = state.learned(view, entries[number])
        if number < len(questions):
            state = state.asked(view, questions[number])
        for key, value in encode_changes(TENANT, view.changes):
            rows.put(key, value)
    return state, rows


def test_history_is_first_in_first_out() -> None:
    """Definition 6's H is a FIFO: with m_max = 2 the third question replaces the first, the fourth the second.

    The reference e0 has cosines 1, 0, -1, 0 with the four questions, so s_max goes 1, 1, 0, 0.
    """
    policy = MemsadPolicy(mode=Mode.MAX, history_size=2, reference_size=2, calibration=FIXED)
    questions = [axis(0), axis(1), -axis(0), axis(2)]
    states = [fed(policy, questions[:n], [axis(0), axis(0)])[0] for n in (1, 2, 3, 4)]
    seen = [judge(state, 0.0, policy).mu for state in states]
    assert seen == [near(1), near(1), near(0), near(0)]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(2, 6), st.integers(1, 20), st.sampled_from(Mode), st.integers(0, 2**32 - 1))
def test_one_column_a_question_equals_recomputing_everything(capacity, size, asked, mode, seed) -> None:
    """The streaming form, the batch form, and the state loaded back from its rows give the same calibration."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(size + asked, DIMENSIONS))
    vectors = [wire(vector / np.linalg.norm(vector)) for vector in vectors]
    policy = MemsadPolicy(mode=mode, history_size=capacity, reference_size=size, calibration=FIXED)
    state, rows = fed(policy, vectors[size:], vectors[:size])
    window = np.array(vectors[size:][-capacity:], dtype=np.float64)
    reference = np.array([coarse_from_text(coarse_to_text(vector)) for vector in vectors[:size]], dtype=np.float64)
    mu, sigma = scores.moments(scores.reference_scores(reference, window, mode))
    as_sent = scores.moments(scores.reference_scores(np.array(vectors[:size]), window, mode))
    assert (mu, sigma) == pytest.approx(as_sent, abs=2e-4)
    for found in (state, MemsadState.load(rows, TENANT, policy)):
        said = judge(found, 0.0, policy)
        assert (said.mu, said.sigma) == (near(mu), near(sigma))
        assert check(found, vectors[0], policy, Decision.QUARANTINE) == check(
            state, vectors[0], policy, Decision.QUARANTINE
        )


def test_the_phases_are_declared_in_the_verdict() -> None:
    """Cold: nothing asked, nothing scored. Warming: the policy's prior threshold. Calibrated: mu + kappa sigma."""
    core = Core(laid_over(default().default, {"memsad": {"calibration": {"strategy": "fixed"}}}))
    first = core.write().verdict
    assert (first.score.phase, first.score.score, first.findings[0].code) == ("cold", None, "memsad.cold")
    core.recall()
    warming = core.write().verdict.score
    assert (warming.phase, warming.threshold, warming.mu) == ("warming", 0.6, None)
    for number in range(60):
        score = core.write(principal=f"p{number}", session=f"s{number}").verdict.score
    assert (score.phase, score.window_size, score.history_size) == ("calibrated", 50, 1)
    assert score.threshold == pytest.approx(score.mu + 2 * score.sigma, abs=2e-6)


def test_a_write_close_to_a_question_is_held_and_never_learned_from() -> None:
    """Algorithm 1: s > mu + kappa sigma is stopped; what was stopped does not join the reference set."""
    core = Core()
    core.recall(vector=axis(0))
    near_it = core.write(vector=axis(5, towards=0, cosine=0.9)).verdict
    assert near_it.score.s_max == pytest.approx(0.9, abs=1e-3)
    assert near_it.reasons == ("memsad.above_threshold",)
    assert len(core.memsad.reference) == 0


def test_outside_content_and_tainted_writes_never_calibrate() -> None:
    """Calibration learns from accepted writes of trusted principals alone: a page cannot move the threshold."""
    core = Core()
    core.observe("open")
    core.observe("web")
    for who in ("web", "tool", "agent"):
        core.write(who)
    assert len(core.memsad.reference) == 0
    core.write("user")
    assert len(core.memsad.reference) == 1


def test_the_nearest_recall_is_named_alike_before_and_after_a_restart() -> None:
    """The event id of the nearest question's recall, of equally near ones the latest, wherever its row lies."""
    policy = MemsadPolicy(history_size=3, reference_size=2)
    state, rows = MemsadState.empty(policy), MemoryRows()
    for number, question in enumerate((axis(0), axis(1), axis(1), axis(0), axis(2))):
        view = TenantRows(rows, TENANT, 0)
        state = state.asked(view, question, f"r{number}")
        for key, value in encode_changes(TENANT, view.changes):
            rows.put(key, value)
    loaded = MemsadState.load(rows, TENANT, policy)
    for one in (state, loaded):
        named = [check(one, axis(9, number, 0.5), policy, Decision.QUARANTINE)[0].nearest for number in (0, 1, 2)]
        assert named == ["r3", "r2", "r4"]
    assert sorted(state.askers) == sorted(loaded.askers) == ["r2", "r3", "r4"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, DIMENSIONS), st.integers(0, 2**32 - 1))
def test_a_coarse_vector_says_of_any_other_what_it_said(components: int, seed: int) -> None:
    """12 bits a component, a unit vector again, whether few components carry it all or each carries its share."""
    random = np.random.default_rng(seed)
    vector, other = np.zeros(DIMENSIONS), random.normal(size=DIMENSIONS)
    vector[:components] = random.normal(size=components)
    vector, other = vector / np.linalg.norm(vector), other / np.linalg.norm(other)
    text = coarse_to_text(vector.astype(np.float32))
    kept = coarse_from_text(text).astype(np.float64)
    assert len(text) == 768
    assert np.linalg.norm(kept) == pytest.approx(1, abs=1e-6)
    assert kept @ other == pytest.approx(vector @ other, abs=3e-4)
    assert coarse_to_text(kept.astype(np.float32)) == text


def test_a_reference_kept_in_full_is_read() -> None:
    """Rows written before references were kept short calibrate as they did."""
    policy = MemsadPolicy(reference_size=2, calibration=FIXED)
    _, rows = fed(policy, [axis(0)], [])
    for number, entry in enumerate((axis(1), axis(5, towards=0, cosine=0.25))):
        put = {(("memsad"), f"r{number}"): {"n": number, "v": vector_to_text(entry)}}
        for key, value in encode_changes(TENANT, put):
            rows.put(key, value)
    said = judge(MemsadState.load(rows, TENANT, policy), 0.0, policy)
    assert said.mu == pytest.approx(0.125, abs=1e-3)


def test_scores_and_words_that_did_not_change_are_written_to_no_row() -> None:
    """Of a tenant that learns nothing no row of several kB goes to the changelog with every event."""
    state, rows = MemsadState.empty(MemsadPolicy()), TenantRows(MemoryRows(), TENANT, 0)
    assert state.calibrated(rows, state.scores) is state
    assert state.worded(rows, state.lexical) is state
    assert not rows.changes


def test_the_questions_that_count_follow_the_drift() -> None:
    """Theorem 12's m* is the history's size: of 100 scores half at .1 and half at .3 (a deviation of .1005, a drift of
    .2 / 50 a step) it is (.1005 / .004)^(2/3) = 8.6, so the least, 20, of 60 questions count. Scores that do not drift,
    or are too few to tell, leave all that were kept; so does any other strategy.
    """
    policy = MemsadPolicy()
    state, _ = fed(policy, [wire(axis(number)) for number in range(60)], [])
    turned = replace(state, scores=State(np.array([0.1] * 50 + [0.3] * 50)))
    assert np.array_equal(asked_lately(turned, policy), state.history[-20:])
    for values in ([0.1, 0.3] * 50, [0.1] * 20 + [0.3] * 19):
        assert len(asked_lately(replace(state, scores=State(np.array(values))), policy)) == 60
    for strategy in ("fixed", "rolling", "ewma", "conformal"):
        other = policy.model_copy(update={"calibration": CalibrationPolicy(strategy=strategy)})
        assert len(asked_lately(turned, other)) == 60


def test_a_verdict_names_the_nearest_of_the_questions_that_count() -> None:
    """After a change of topic the last 20 questions are what a write is scored against, and what its verdict names."""
    policy = MemsadPolicy()
    state, _ = fed(policy, [wire(axis(number)) for number in range(60)], [])
    state = replace(state, askers=tuple(f"r{n}" for n in range(60)), scores=State(np.array([0.1] * 50 + [0.3] * 50)))
    for asked, named, found in ((59, "r59", 1.0), (3, "r59", 0.0)):
        score, _ = check(state, wire(axis(asked)), policy, Decision.QUARANTINE)
        assert (score.history_size, score.nearest, score.s_max) == (20, named, found)
