"""Calibration: each strategy by values worked out by hand; one interface, bounded rows, nothing counted twice."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memsluice.gate.detectors.calibration.base import Phase, Settings
from memsluice.gate.detectors.calibration.conformal import credited, p_value
from memsluice.gate.detectors.calibration.drift import adwin, hinkley
from memsluice.gate.detectors.calibration.moments import M_STAR_MIN, weighted, window_by_drift
from memsluice.gate.detectors.calibration.state import EMPTY, HELD_MAX, State
from memsluice.gate.detectors.calibration.strategies import strategy
from memsluice.gate.policy.model import Strategy
from memsluice.gate.state.kinds import DETECT_CALIBRATION
from memsluice.gate.state.rows import dump

NAMES: tuple[str, ...] = Strategy.__args__
SMALL = 64 * 1024
PAGE = Path(__file__).parents[2] / "docs" / "detection.md"


def near(value: float | list[float], abs_: float = 1e-9) -> object:
    """Compare by absolute difference."""
    return pytest.approx(value, rel=0, abs=abs_)


def fed(rules: Settings, values: list[float] | np.ndarray) -> State:
    """The state after so many writes landed."""
    state = EMPTY
    for number, value in enumerate(values):
        state = state.landed(rules, f"w{number}", float(value))
    return state


def steps(shift: float, before: int, after: int, seed: int = 1) -> np.ndarray:
    """Honest scores, mean .4 and deviation .1, whose mean rises by ``shift`` deviations at one place."""
    random = np.random.default_rng(seed)
    return np.concatenate((random.normal(0.4, 0.1, before), random.normal(0.4 + 0.1 * shift, 0.1, after)))


def test_fixed_by_hand() -> None:
    """The first N alone: of 1, 2, 3 and then 100, 100 with N = 3: mean 2, deviation 1, so the line is 2 + 2 x 1 = 4."""
    rules = Settings("fixed", full=3, prior_threshold=9.0)
    said = strategy(rules).judge(4.0, fed(rules, [1, 2, 3, 100, 100]))
    assert (said.mu, said.sigma, said.threshold, said.size) == (near(2), near(1), near(4), 3)
    assert not said.flagged
    assert strategy(rules).judge(4.0001, fed(rules, [1, 2, 3])).flagged


def test_rolling_by_hand() -> None:
    """The last of the window: of 100, 1, 2, 3 with window 3 the line is 2 + 2 x 1 = 4."""
    rules = Settings("rolling", full=3, window=3)
    assert strategy(rules).judge(4.1, fed(rules, [100, 1, 2, 3])).threshold == near(4)


def test_ewma_by_hand() -> None:
    """Lambda 1/2, values 0, 1: weights 1/2 and 1, so V1 = 3/2 and V2 = 5/4; the mean is 2/3.

    The squares are 1/2 x 4/9 + 1 x 1/9 = 1/3, the divisor 3/2 - (5/4) / (3/2) = 2/3, so the variance is 1/2 (as it is
    of 0 and 1 unweighted: two values always differ by sigma sqrt 2).
    """
    mu, sigma = weighted(np.array([0.0, 1.0]), 0.5)
    assert (mu, sigma) == (near(2 / 3), near(math.sqrt(0.5)))
    rules = Settings("ewma", full=2, ewma_weight=0.5)
    assert strategy(rules).judge(0.0, fed(rules, [0, 1])).threshold == near(2 / 3 + 2 * math.sqrt(0.5))


def test_m_star_by_hand() -> None:
    """Theorem 12. 200 scores: 100 of 0, 100 of 1. sigma^2 = 200 x .25 / 199 = .251256. The halves' means differ by 1;
    of the square of that 2 sigma^2 / 100 = .005025 is noise, so Delta = sqrt(.994975) / 100, and m* = (.501255 /
    .00997484)^(2/3) = 13.6, below the least window of 20.

    With 100 of 0 and 1 in turn, and then the same plus .2: sigma^2 = 200 x .26 / 199 = .261307, the square .04 less
    .005226, Delta = .00186478, sigma = .511182: m* = 274.12^(2/3) = 42.2. Plus .02 is within the noise: no drift.
    """
    assert window_by_drift(np.repeat([0.0, 1.0], 100)) == M_STAR_MIN
    turns = np.tile([0.0, 1.0], 50)
    assert window_by_drift(np.concatenate((turns, turns + 0.2))) == 42
    assert window_by_drift(np.concatenate((turns, turns + 0.02))) == 200
    assert window_by_drift(np.tile([0.0, 1.0], 100)) == 200  # no drift at all: everything
    assert window_by_drift(np.tile([0.0, 1.0], 20)) == 40  # twice the least window: not cut for want of drift


def test_the_conformal_p_value_by_hand() -> None:
    """(m + w t) / (n + w) with w fading to a tenth at 300: 2 of 300 above, w = 3, t = .5 gives 3.5 / 303."""
    assert p_value(1.0, np.array([0.0] * 298 + [1.0, 2.0]), 0.5, 30) == pytest.approx(3.5 / 303)
    assert p_value(1.0, np.zeros(0), 0.004, 30) == pytest.approx(0.004)
    assert p_value(1.0, np.zeros(0), 0.0, 0) == 1.0  # nothing known and no prior: nothing is rare


def test_the_adaptive_level_by_hand() -> None:
    """alpha .1, gamma .05: a write that passes adds .05 x .1 = .005, a held one takes .05 x .9 = .045 away, and the
    level stays within [.02, .2].
    """
    rules = Settings("conformal", alpha=0.1, gamma=0.05)
    state = EMPTY.screened(rules, "a", 0.1, held=False)
    assert state.level == near(0.105)
    state = state.screened(rules, "b", 0.9, held=True)
    assert state.level == near(0.06)
    assert state.screened(rules, "c", 0.9, held=True).screened(rules, "d", 0.9, held=True).level == near(0.02)
    for number in range(40):
        state = state.screened(rules, f"ok{number}", 0.1, held=False)
    assert state.level == near(0.2)


def test_the_credit_by_hand() -> None:
    """Of 20 screened writes at alpha .1 the floor(2) lowest held scores count as honest: .5 and .6 of .9 .5 .6 .8."""
    rules = Settings("conformal", alpha=0.1, credit=True)
    state = EMPTY
    for number, score in enumerate((0.9, 0.5, 0.6, 0.8)):
        state = state.screened(rules, f"h{number}", score, held=True)
    assert credited(state, rules) == []  # floor(.1 x 4) is none
    for number in range(16):
        state = state.screened(rules, f"p{number}", 0.1, held=False)
    assert credited(state, rules) == [0.5, 0.6]
    assert strategy(rules).judge(0.55, replace(state, values=np.zeros(8))).p == near(1 / 10)


@pytest.mark.parametrize(("find", "first", "last"), [(hinkley, 180, 230), (adwin, 120, 200)])
def test_a_change_is_found_and_what_was_before_it_forgotten(find, first, last) -> None:
    """A shift by three deviations at 200 of 300: most of what counts afterwards came after it; without one, all counts.

    ADWIN forgets whole buckets, so some of what was before stays.
    """
    assert first <= find(steps(3, 200, 100)) <= last
    assert find(steps(0, 300, 0)) == 0


def test_a_change_is_declared_until_enough_came_after_it() -> None:
    """Drifting from the change on until N scores have come after it, then calibrated; the line follows."""
    rules = Settings("page_hinkley", window=400, full=50)
    before, during, after = (strategy(rules).judge(0.6, fed(rules, steps(3, 200, n))) for n in (0, 40, 90))
    assert [one.phase for one in (before, during, after)] == [Phase.CALIBRATED, Phase.DRIFTING, Phase.CALIBRATED]
    assert after.threshold is not None
    assert before.threshold is not None
    assert after.threshold > before.threshold + 0.2


def test_phases() -> None:
    """Cold below ``least``, warming below ``full``, then calibrated; frozen says so and learns nothing."""
    rules = Settings("rolling", full=5, least=2)
    said = [strategy(rules).judge(0.1, fed(rules, range(n))).phase for n in (1, 2, 5)]
    assert said == [Phase.COLD, Phase.WARMING, Phase.CALIBRATED]
    frozen = replace(rules, frozen=True)
    state = fed(rules, range(5))
    assert state.landed(frozen, "more", 9.0) is state
    assert strategy(frozen).judge(0.1, state).phase is Phase.FROZEN


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.lists(st.tuples(st.integers(0, 60), st.floats(-20, 20, width=32), st.booleans()), max_size=150),
)
def test_a_state_is_bounded_and_the_same_from_its_row(name, events) -> None:
    """Whatever comes: a row below 64 KiB that gives the same state back, bit by bit, and the same judgement."""
    rules = Settings(name, window=40, full=20, gamma=0.005, credit=True, prior_weight=10)
    state = EMPTY
    for number, value, held in events:
        state = state.screened(rules, f"e{number}", value, held=held)
        if not held:
            state = state.landed(rules, f"e{number}", value)
    row = dump(state.dumped())
    again = State.loaded(DETECT_CALIBRATION.load(row))
    assert dump(again.dumped()) == row
    assert len(row) < SMALL
    assert len(state.values) <= 40
    assert len(state.held) <= HELD_MAX
    assert strategy(rules).judge(0.5, again) == strategy(rules).judge(0.5, state)


@pytest.mark.parametrize("name", NAMES)
def test_an_event_counts_once(name) -> None:
    """A redelivered event changes nothing: neither the window nor the level nor the held scores."""
    rules = Settings(name, full=500, window=500, gamma=0.005, credit=True)
    state = fed(rules, [0.1, 0.2]).screened(rules, "h", 0.9, held=True)
    assert state.landed(rules, "w1", 0.7) is state
    assert state.screened(rules, "h", 0.9, held=True) is state


@cache
def moved(name: str) -> tuple[float, float]:
    """The share of attacks above the line before and after a fifth of 600 landed writes were put just below it."""
    random = np.random.default_rng(7)
    honest, attacks = random.gumbel(0.3, 0.08, 800), random.normal(0.85, 0.12, 400)
    rules = Settings(name, window=200, full=50, alpha=0.01, gamma=0.005, credit=True, prior_weight=0)
    rule, state, grid = strategy(rules), fed(rules, honest[:200]), np.linspace(0, 1.5, 60)
    first = np.mean([rule.judge(value, state).flagged for value in attacks])
    for number, value in enumerate(honest[200:]):
        if number % 5 == 0:
            just = max(v for v in grid if not rule.judge(v, state).flagged)
            state = state.landed(rules, f"x{number}", just)
        else:
            flagged = rule.judge(value, state).flagged
            state = state.screened(rules, f"y{number}", value, held=flagged)
            state = state if flagged else state.landed(rules, f"y{number}", value)
    return float(first), float(np.mean([rule.judge(value, state).flagged for value in attacks]))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_what_an_attacker_below_the_line_does_to_a_strategy(name) -> None:
    """docs/detection.md quotes every strategy's shares before and after, to two digits: these, worked out anew."""
    said = PAGE.read_text(encoding="utf-8").partition("**An attacker who writes just below the line**")[2]
    quoted = re.search(rf"[ *]{name} (\d?\.\d+), (\d?\.\d+)", said)
    assert quoted is not None
    assert [float(share) for share in quoted.groups()] == near(list(moved(name)), 0.0051)


def test_an_attacker_below_the_line_moves_mean_and_deviation() -> None:
    """The known weakness, kept visible: a fifth of the landed writes just below the line, and it moves out."""
    before, after = moved("rolling")
    assert after < before - 0.2


def test_an_attacker_below_the_line_moves_ranks_hardly() -> None:
    """With ranks, the adaptive level and the credit, no more than 3 % of the attacks are lost."""
    before, after = moved("conformal")
    assert after >= before - 0.03


def test_without_credit_nothing_held_is_kept() -> None:
    """A level that follows the budget needs no held score; with credit the lowest are kept, of six digits."""
    moving = Settings("conformal", gamma=0.01)
    assert EMPTY.screened(moving, "w0", 2.0, held=True).held == ()
    crediting = Settings("conformal", credit=True)
    ((number, _, value),) = EMPTY.screened(crediting, "w0", 1.23456789, held=True).held
    assert (number, value) == (1, 1.234568)
    assert EMPTY.screened(crediting, "w0", 2.0, held=False).held == ()


def test_a_score_is_kept_to_six_digits() -> None:
    """What the rows keep is what decides, before a restart and after it."""
    assert EMPTY.landed(Settings("rolling"), "w0", 0.123456789).values.tolist() == [0.123457]
