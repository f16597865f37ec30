"""Who has a candidate's place, the rows that versions share, and the shortcuts that change no evidence."""

from typing import Any

import numpy as np
import pytest
from tests.gate.test_detector import cosines

from memsluice.envelope.codec import DIMENSIONS
from memsluice.gate.detectors.numeric.compiled import FOUR, rounded
from memsluice.gate.detectors.numeric.vector_set import WHOLE_MAX, Kept
from memsluice.gate.detectors.numeric.versions import Table
from memsluice.gate.detectors.rarity import covering, evidence
from memsluice.gate.detectors.rarity.candidate_quota import CANDIDATES, EACH_MAX, LOOKED_AT_MAX, fill


def crowded(rng: np.random.Generator, size: int) -> Kept[None]:
    """So many vectors about a few centres: many lie about as near as others."""
    centres = rng.normal(size=(5, DIMENSIONS))
    whole = centres[rng.integers(0, 5, size)] + rng.normal(size=(size, DIMENSIONS)) / 2
    whole[size // 3] = whole[size // 2]
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    return Kept[None].of([None] * size, whole.astype(np.float32))


def greedy(kept: Kept[None], probe: Any, owners: Any, out: Any, fits: Any, all_max: int) -> tuple[list[int], list[int]]:
    """Who has a place by the plain rule, one after the other of all; and who was asked about."""
    every, taken, asked = cosines(kept, probe), list[int](), list[int]()
    for at in np.lexsort((-np.arange(len(kept)), -every)).tolist():
        of = [owners[one] for one in taken if owners[one]]
        if out[at] or (owners[at] and (len(of) >= all_max or of.count(owners[at]) >= EACH_MAX)):
            continue
        if len(taken) == CANDIDATES or len(asked) == LOOKED_AT_MAX:
            break
        asked.append(at)
        if fits[at]:
            taken.append(at)
    return taken, asked


@pytest.mark.parametrize("size", [3, 60, WHOLE_MAX + 200])
def test_places_are_those_of_one_after_the_other(size: int) -> None:
    """Whoever is limited, out or unfit: who has a place, and who is asked about, is what one after the other gives."""
    rng, ended = np.random.default_rng(size), 0
    kept = crowded(rng, size)
    for _ in range(100):
        owners = rng.choice(4, size, p=rng.dirichlet(np.ones(4))).astype(np.int64)
        out, fits = rng.random(size) < 0.2, rng.random(size) < rng.choice([0.05, 0.2, 0.5, 0.9, 1.0])
        probe = kept.vector(int(rng.integers(size))).astype(np.float64) + rng.normal(size=DIMENSIONS) / 20
        probe = (probe / np.linalg.norm(probe)).astype(np.float32)
        all_max, asked = int(rng.choice([2, 6, CANDIDATES])), list[int]()

        def fit(at: int, asked: list[int] = asked, fits: Any = fits) -> bool:
            asked.append(at)
            return bool(fits[at])

        near, cosine = fill(kept, probe, owners, out=out, fit=fit, limited_max=all_max)
        expected, of = greedy(kept, probe, owners, out, fits, all_max)
        assert (near.tolist(), asked) == (expected, of)
        assert cosine.tolist() == cosines(kept, probe)[expected].tolist()
        ended += len(asked) == LOOKED_AT_MAX
    assert ended > 5 or size < WHOLE_MAX


def test_a_table_changes_only_for_who_changed_it() -> None:
    """A row that is changed, added or left out in one version is what it was in every other; so past a buffer's end."""
    table, rows = Table.of(np.zeros((0, 2))), list[list[float]]()
    kept: list[tuple[Table, list[list[float]]]] = []
    for number in range(700):
        row = [float(number), -float(number)]
        if number % 5 == 4:
            table, rows = table.changed(number % len(rows), np.array(row)), rows.copy()
            rows[number % len(rows)] = row
        elif number % 7 == 6:
            table, rows = table.without(2), rows[:2] + rows[3:]
        else:
            full = len(rows) >= 90
            table, rows = table.appended(np.array(row), drop=full), [*rows[full:], row]
        kept.append((table, rows))
        branch = table.appended(np.array([9.0, 9.0]))  # what grows beside it is not seen
        assert branch[-1].tolist() == [9.0, 9.0]
    assert all(one.among(slice(None)).tolist() == of for one, of in kept)
    assert kept[-1][0].column(1).tolist() == [row[1] for row in kept[-1][1]]


def test_what_a_run_cannot_reach_is_not_searched_for_in_vain() -> None:
    """The bound on a run's length spares work and changes nothing: every question is held against the whole text."""
    rng = np.random.default_rng(2)
    for _ in range(500):
        said = rng.integers(0, 12, rng.integers(1, 40)).astype(np.uint32)
        asked = [rng.integers(0, 14, rng.integers(1, 9)).astype(np.uint32) for _ in range(4)]
        near = np.sort(rng.random(4).round(5))[::-1].copy()
        best, by = 0.0, -1
        for at, question in enumerate(asked):
            length, _ = covering.longest_run(question, said)
            about = min(1.0, max(0.0, (near[at] - covering.CHANCE) / covering.ABOUT))
            share = rounded(min(length / len(question), about), FOUR)
            copy = not set(said.tolist()) - set(question.tolist())
            if share > best and not copy and len(question) >= covering.QUESTION_STEMS_MIN:
                best, by = share, at
        found = covering.held_against(said, *covering.one_behind_another(asked), near, 0.0, 0.0)
        assert found[:2] == (best, by)


def test_nearness_that_is_soon_said_is_said_right() -> None:
    """What is not worth a median's time would have been nothing with it, too."""
    rng, shown = np.random.default_rng(3), 0
    for _ in range(2_000):
        size = int(rng.integers(0, 60))
        column = np.where(rng.random(size) < 0.2, 0.0, rng.normal(rng.choice([0.3, 0.5, 0.6]), 0.1, size)).clip(0)
        owners, value = rng.integers(0, 4, size), float(rng.uniform(0.41, 1.0))
        near, who = column[column > 0], owners[column > 0]
        if len(near):
            near = near[evidence.stays(near > np.sort(near)[len(near) // 2], who)]
        prior = (evidence.NEAR_CENTRE, evidence.NEAR_SPREAD, evidence.NEAR_PRIOR_WEIGHT, evidence.NEAR_SPREAD_MIN)
        z = evidence.robust_z(value, near, *prior)
        worth = 0.8 * min(max(z - evidence.NEAR_Z_MIN, 0.0), 2.5)
        table = np.zeros((size, 6))
        table[:, evidence.W] = column
        values = np.array([-9.0, 0.0, 0.0, value, 0.0, 0.0])
        assert evidence.parts(values, table, np.arange(size), owners, habitual=False)[3] == rounded(worth, FOUR)
        shown += worth > 0
    assert 300 < shown < 1_700


def test_a_half_goes_to_the_even_digit_and_text_would_say_the_same() -> None:
    """By whole steps, as compiled code rounds: what differs from rounding by text is nothing but the halves."""
    assert [rounded(value, 1.0) for value in (0.5, 1.5, 2.5, -0.5)] == [0.0, 2.0, 2.0, 0.0]
    some = np.random.default_rng(4).normal(size=20_000)
    assert [rounded(float(value), FOUR) for value in some] == [round(float(value), 4) for value in some]


def test_a_copied_buffer_knows_who_is_near_as_before() -> None:
    """The eight bits of a component are carried along where a full buffer is copied, the last row's too."""
    rng = np.random.default_rng(5)
    kept = crowded(rng, WHOLE_MAX + 300)
    fresh, first = crowded(rng, 600), kept.buffer
    for at in range(600):
        kept = kept.appended((None, fresh.vector(at)), drop=True)
        probe = fresh.vector(at - 1)
        near, cosine = fill(kept, probe, np.zeros(len(kept), np.int64))
        every = cosines(kept, probe)
        order = np.lexsort((-np.arange(len(kept)), -every))[:CANDIDATES]
        assert (near.tolist(), cosine.tolist()) == (order.tolist(), every[order].tolist())
    assert kept.buffer is not first
