"""The evidence of a write, held against plain arithmetic of its definition, on references of every size."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.gate.detectors.rarity import evidence
from memsluice.gate.detectors.rarity.evidence import ANOMALY_MAX, ANOMALY_WEIGHT, COLD_WRITES, VOUCHED, A, C, Q, R, U, W
from memsluice.gate.detectors.rarity.principal_shares import CODES_SPARE, Standing

PARTS = ("wording", "question", "coverage", "nearness", "repetition", "anomaly")


def rare(value: float, column: list[float], owners: list[int], tail: float) -> float:
    """(u - .8)+ of a value, once who show it most are left out, up to a quarter."""
    hits = [other >= value - evidence.SHOWN for other in column]
    kept = stays(hits, owners)
    seen, at_least = sum(kept), sum(hit and keep for hit, keep in zip(hits, kept, strict=True))
    if not any(hits):
        seen = len(column)
    return max(-math.log10((at_least + 100 * tail + 1) / (seen + 100 + 1)) - 0.8, 0.0)


def stays(hits: list[bool], owners: list[int]) -> list[bool]:
    """Who stays: the greatest shares of hits go first, then who wrote less, then who wrote first, while there is room.

    Nobody goes who is vouched for, shows nothing, or wrote more than a quarter.
    """
    wrote, shown = Counter(owners), Counter(owner for owner, hit in zip(owners, hits, strict=True) if hit)
    some = [one for one in dict.fromkeys(owners) if one != VOUCHED and shown[one] and 4 * wrote[one] <= len(owners)]
    out, room = set[int](), len(owners) / 4
    for one in sorted(some, key=lambda one: (-shown[one] / wrote[one], wrote[one])):
        room -= wrote[one]
        if room < 0:
            break
        out.add(one)
    return [owner not in out for owner in owners]


def nearness(value: float, column: list[float], owners: list[int]) -> float:
    """.8 min((z - 2.5)+, 2.5): z against those that came near, without who lie above their upper median most."""
    if value <= 0.4:
        return 0.0
    some = [(near, who) for near, who in zip(column, owners, strict=True) if near > 0]
    centre, spread = 0.55, 0.12
    if some:
        middle = sorted(near for near, _ in some)[len(some) // 2]
        kept = stays([near > middle for near, _ in some], [who for _, who in some])
        values = [near for (near, _), keep in zip(some, kept, strict=True) if keep]
        median = float(np.median(values))
        deviation = 1.4826 * float(np.median(np.abs(np.array(values) - median)))
        centre = (len(values) * median + 100 * centre) / (len(values) + 100)
        spread = (len(values) * deviation + 100 * spread) / (len(values) + 100)
    return 0.8 * min(max((value - centre) / max(spread, 0.08) - 2.5, 0.0), 2.5)


def plain(values: list[float], table: Any, owners: list[int], habitual: bool) -> tuple[float, ...]:
    """The six parts by the module's own definition."""
    columns = [[float(row[at]) for row in table] for at in range(7)]
    tail = 1 / (1 + math.exp((values[C] + 2.2) / 0.55))
    wording = 0.2 * max(values[C] + 0.5, 0) + 0.65 * rare(values[C], columns[C], owners, tail)
    asks = values[Q] == 1 and values[U] >= 0.8 and len(table) >= COLD_WRITES and not habitual
    question = 1.8 * rare(0.5, columns[Q], owners, 0.01) if asks else 0.0
    quotes = values[Q] == 0.5 and values[U] >= 0.8
    repeats = values[R] > 0.12 and not quotes
    repeated = 1.5 * (values[R] - 0.12) + 0.9 * rare(values[R], columns[R], owners, 0.03) if repeats else 0.0
    near = 0.0 if quotes else nearness(values[W], columns[W], owners)
    anomaly = 0.0 if quotes else ANOMALY_WEIGHT * min(values[A], ANOMALY_MAX)
    return wording, question, max(values[U] - 0.5, 0.0), near, repeated, anomaly


def draw(rng: np.random.Generator, size: int) -> Any:
    """Values of so many writes: log-odds, some questions, some repetition, some that came near a question."""
    return np.stack(
        [
            rng.normal(-2.0, 1.5, size).round(4),
            (rng.random(size) < rng.choice([0.0, 0.1, 0.5])) * rng.choice([0.5, 1.0], size),
            (rng.random(size) * (rng.random(size) < 0.3)).round(4),
            np.where(rng.random(size) < 0.3, 0.0, rng.normal(rng.choice([0.3, 0.5, 0.9]), 0.1, size).clip(0)).round(5),
            rng.random(size).round(4),
            np.zeros(size),
            (rng.random(size) * 8 * (rng.random(size) < 0.3)).round(4),
        ],
        axis=1,
    )


@pytest.mark.parametrize("size", [0, 1, 2, COLD_WRITES - 1, COLD_WRITES, 60, 201])
def test_the_parts_are_what_their_definition_says(size: int) -> None:
    """Each part by its formula, for any writers; of the reference the rows that are named, in whatever place."""
    rng, shown = np.random.default_rng(size), Counter[str]()
    for _ in range(300):
        table = draw(rng, size + 5)
        places = rng.permutation(size + 5)[:size].astype(np.int64)
        owners = rng.choice(5, size, p=rng.dirichlet(np.ones(5))).astype(np.int64)
        values, habitual = draw(rng, 1)[0], bool(rng.random() < 0.2)
        found = evidence.parts(values, table, places, owners, habitual)
        expected = plain(values.tolist(), table[places], owners.tolist(), habitual)
        assert found == pytest.approx(expected, abs=6e-5), (values.tolist(), size)
        shown.update(name for name, part in zip(PARTS, found, strict=True) if part)
    assert set(shown) == set(PARTS) - ({"question"} if size < COLD_WRITES else set())


def test_parts_are_given_to_four_digits() -> None:
    """A row keeps four, so what decides has no more."""
    found = evidence.parts(
        np.array([0.1, 0, 0.2, 0.7, 0.77777, 0, 0]), np.zeros((0, 7)), *no_reference(), habitual=False
    )
    assert all(part == round(part, 4) for part in found)
    assert found[2] == 0.2778


def no_reference() -> tuple[Any, Any]:
    """Places and owners of nothing."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def lasting(who: list[str], votes: Counter[str]) -> int:
    """Votes that are left without those who gave most for what landed of theirs, up to a quarter of what landed."""
    landed = Counter(who)
    room, kept = len(who) / 4, votes.total()
    some = [tag for tag in votes if tag and landed[tag] <= room]
    for tag in sorted(some, key=lambda tag: (-votes[tag] / max(landed[tag], 0.1), tag)):
        room -= landed[tag]
        if room < 0:
            return kept
        kept -= votes[tag]
    return kept


NAMES = st.sampled_from(["", "ana", "ben", "cem", "dan", "eve"])


@given(st.lists(NAMES, max_size=24), st.lists(NAMES, max_size=24))
def test_votes_last_without_a_quarter_of_what_landed(who: list[str], voted: list[str]) -> None:
    """Who gave most for what landed of theirs goes first, until one more would be too many: nobody behind him goes."""
    assert Standing.of(who).lasting(Counter(voted)) == lasting(who, Counter(voted))


def test_votes_by_hand() -> None:
    """Eight landed, a quarter is two: Cem with nothing landed and two votes, and Ben with two landed, both go."""
    who = ["ana"] * 6 + ["ben"] * 2
    assert Standing.of(who).lasting(Counter(ana=3, ben=2, cem=2)) == 3
    who = ["ana"] * 4 + ["ben"] * 2 + ["dan"] * 1 + ["eve"] * 1
    # three for one of Dan's, then two of Ben's would be three in all: nobody from him on goes, Eve neither
    assert Standing.of(who).lasting(Counter(dan=3, ben=4, eve=1)) == 5


def test_codes_of_whom_nothing_is_left_are_given_anew() -> None:
    """A tenant whose writers come and go keeps no code of each of them for ever, and who is whose stays told apart."""
    names = [f"p{number}" for number in range(3 * CODES_SPARE)]
    standing, last = Standing.of(["", "ana"]), ["", "ana"]
    for name in names:
        standing, last = standing.landed(name, drop=True), [*last[1:], name]
        tags = {code: tag for tag, code in standing.codes.items()}
        assert [tags[code] for code in standing.owners.tolist()] == last
        assert len(standing.codes) <= len(last) + CODES_SPARE + 2
        assert standing.codes[""] == VOUCHED
