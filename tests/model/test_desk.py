"""What reviewers do at a desk, in the model and in the core: random sequences, and that a difference would show."""

from collections import Counter

import pytest
from msgspec.structs import replace
from tests.model.test_oracle import ANA, note, order

from memsluice.events.models import Tier
from memsluice.gate.commands import reopening, review
from memsluice_lab.model.actions import Order, Write
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.walk import play

SEQUENCES = 150


def test_the_core_and_the_model_agree_on_what_reviewers_do_at_a_desk() -> None:
    """Rejections taken back, notes, commands that say what was shown and by what an entry stood: in random sequences,
    a fifth of them through the whole stage, both say the same."""
    drawn: Counter[str] = Counter()
    for seed in range(SEQUENCES):
        played = play(seed, staged=seed % 5 == 0)
        assert not played.differs, (seed, played.differs)
        orders = [one for one in played.actions if isinstance(one, Order)]
        drawn += Counter(one.action for one in orders)
        drawn["stale"] += sum(one.on == "an-older-one" for one in orders)
        drawn["lied"] += sum(one.shown is False for one in orders)
    assert min(drawn[what] for what in ("reopen", "note", "stale", "lied")) >= 3


def played(pair: Pair, *actions: Write | Order) -> str:
    """Return the first difference between both."""
    return next((differs for one in actions if (differs := pair.step(one))), "")


REFUSED = Write("w1", ANA, "tool", Tier.EXTERNAL_TOOL, "page")
"""What the strict profile rejects, and keeps."""


def test_a_way_around_the_policy_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a policy refused is refused once it is reopened: a core that lets a reviewer release it is told apart."""
    orders = (order(1, "reject", "w1"), order(2, "reopen", "w1"), order(3, "release", "w1"), order(4, "reject", "w1"))
    assert not played(Pair(strict=True), REFUSED, *orders)
    monkeypatch.setattr(reopening, "_before", lambda *_: "held")
    monkeypatch.setattr(review.monitor, "check_write", lambda *_, **__: [])
    assert played(Pair(strict=True), REFUSED, *orders)


def test_a_core_that_takes_what_another_screen_showed_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command about another content than was shown lands nothing on either side."""
    actions = (note("n1", suspect=True), order(1, "release", "n1", shown=False))
    assert not played(Pair(), *actions)
    monkeypatch.setattr(review, "not_shown", lambda *_: None)
    assert played(Pair(), *actions)


def test_a_core_that_forgets_what_came_between_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release by who looked before a replay is refused on both sides; by who looked after it, it is not."""
    first = (note("n1", suspect=True), order(1, "replay", "n1"))
    stale, fresh = order(2, "release", "n1", on="n1"), order(3, "release", "n1", on="o1")
    pair = Pair()
    assert not played(pair, *first, stale, fresh)
    assert pair.verdict is not None
    assert pair.verdict.object_id is not None
    unbound = review.unbound
    monkeypatch.setattr(review, "unbound", lambda row, command: unbound(replace(row, last=""), command))
    assert played(Pair(), *first, stale)
