"""The oracle itself: what it may know of the gate, and that it can fail where it used to look away."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memsluice_lab.model
from memsluice.events.models import Tier, Visibility
from memsluice.gate.state import placement
from memsluice_lab.model.actions import Action, Actor, Order, Scope, Wait, Write
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.state import DAY_MS

MODEL = ("actions", "state", "rules", "commands", "transition")
"""The model. What holds it against the production core (production, staged, compare, walk) knows both, of course."""
ALLOWED = ("memsluice.events.models", "memsluice_lab.model")
ANA = Actor("s0", "planner", "ana")
OWN = Scope(Visibility.PRINCIPAL, "ana", "default")


@pytest.mark.parametrize("name", MODEL)
def test_the_model_knows_nothing_of_the_gate(name: str) -> None:
    """An oracle that imports the code that it judges says what that code says: it imports data models alone."""
    (folder,) = memsluice_lab.model.__path__
    tree = ast.parse((Path(folder) / f"{name}.py").read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {one for one in named if one.startswith("memsluice")}
    assert all(one.startswith(ALLOWED) for one in ours), ours
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def note(name: str, *parents: str, **fields: Any) -> Write:
    """Return a write of Ana's own."""
    return Write(name, ANA, "user", Tier.USER_OBSERVED, f"note {name}", parents=parents, **fields)


def order(number: int, action: str, target: str, by: str = "reviewer", **fields: Any) -> Order:
    """Return a command that two signed."""
    return Order(f"o{number}", by, action, target, approvals=2, **fields)


PROTECT = order(0, "protect", "k", "operator", scope=OWN)


def test_part_i_fails_where_a_reviewer_takes_out_what_is_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides without that rule agree with each other; the theorem does not."""
    monkeypatch.setattr(placement, "guards", lambda _rows, _name: False)
    pair = Pair(broken=frozenset({"rule_3"}))
    assert [pair.step(one) for one in (note("n1", key="k"), PROTECT)] == ["", ""]
    assert "Part I" in pair.step(order(1, "withdraw", "n1"))


@pytest.mark.parametrize("action", ["protect", "revoke", "withdraw"])
def test_part_i_fails_where_a_protected_item_goes_in_the_step_of_another_command(action: str) -> None:
    """A command about another entry or key allows no change of it: what lay there is not simply noted anew."""
    pair = Pair()
    for one in (note("n1", key="k"), note("n2"), PROTECT):
        assert not pair.step(one)
    name, _ = pair.production.admitted["n1"]
    decide: Callable[..., Any] = pair.production.decide

    def faulty(*arguments: Any) -> Any:
        pair.production.shelf.pop(name)
        return decide(*arguments)

    pair.production.decide = faulty  # type: ignore[method-assign]
    target, by = ("other", "operator") if action == "protect" else ("n2", "reviewer")
    differs = pair.step(order(1, action, target, by, scope=OWN if action == "protect" else None))
    assert "Part I" in differs


def test_an_operator_takes_out_what_is_protected_and_the_key_is_free() -> None:
    """Both sides say so, and Part I holds: with the item its protection ended."""
    assert decided(
        note("n1", key="k"), PROTECT, order(1, "withdraw", "n1"), order(2, "withdraw", "n1", "operator"),
        note("n2", key="k"),
    ) == ["accept", "record", "reject", "record", "accept"]  # fmt: skip


def decided(*actions: Action) -> list[str]:
    """Return what both sides decide, having made sure that they agree."""
    pair, found = Pair(), list[str]()
    for one in actions:
        assert not pair.step(one)
        if not isinstance(one, Wait):
            found.append(pair.verdict.decision)
    return found


@pytest.mark.parametrize("away", ["revoke", "withdraw"])
@pytest.mark.parametrize("action", ["promote", "renew", "release"])
def test_both_sides_ask_all_ancestors_anew(away: str, action: str) -> None:
    """A falls alone; what was made of what was made of it is not shared, prolonged, or let in."""
    last = note("c", "b", suspect=action == "release")
    *_, said = decided(note("a"), note("b", "a"), last, order(1, away, "a"), Wait(DAY_MS), order(2, action, "c"))
    assert said == "reject"


def test_both_sides_replay_what_fell_into_the_other_zone() -> None:
    """A replay lands no more in guidance than a release would, and what a content check held not even as data: its
    label fell, and nobody changed the check or read what it held."""
    pair = Pair(hold_contained=False)
    for one in (note("a"), note("b", "a"), note("c", "b", suspect=True), order(1, "revoke", "a"),
                order(2, "replay", "c")):  # fmt: skip
        assert not pair.step(one)
    assert (pair.verdict.decision, pair.verdict.taint) == ("quarantine", True)
    assert pair.verdict.reasons == ("replay.recalibrated",)


def test_both_sides_take_a_forgotten_parent_for_a_tainted_one() -> None:
    """Contained and over after a week: its child, which lives for a month, is not shared."""
    *_, said = decided(note("a"), note("b", "a"), order(1, "revoke", "a"), Wait(8 * DAY_MS), order(2, "promote", "b"))
    assert said == "reject"


def test_both_sides_forget_a_revocation_that_two_reviewers_lifted() -> None:
    """Held: it is revoked again, and stays out. Landed: it is renewed, and its child is shared."""
    held = decided(note("a", suspect=True), order(1, "revoke", "a"), order(2, "declassify", "a"),
                   order(3, "revoke", "a"), order(4, "release", "a"))  # fmt: skip
    assert held == ["quarantine", "record", "record", "record", "reject"]
    landed = decided(note("a"), note("b", "a"), order(1, "revoke", "a"), order(2, "declassify", "a"), Wait(DAY_MS),
                     order(3, "renew", "a"), order(4, "promote", "b"))  # fmt: skip
    assert landed == ["accept", "accept", "contain", "accept", "accept", "accept"]


def test_both_sides_leave_a_better_item_in_its_place() -> None:
    """Nobody shares a user's words over an operator's."""
    words = Write("op", ANA, "operator", Tier.OPERATOR, "all", key="k", visibility=Visibility.SHARED)
    assert decided(words, note("n1", key="k"), order(1, "promote", "n1"))[-1] == "reject"


def test_both_sides_leave_a_better_item_in_its_place_when_a_held_page_is_let_in() -> None:
    """Two lifted its label while it was held; an operator's words under its key stay."""
    pair = Pair(hold_contained=True)
    words = Write("op", ANA, "operator", Tier.OPERATOR, "all", key="k")
    page = Write("page", ANA, "web", Tier.EXTERNAL_WEB, "page", key="k", suspect=True)
    for one in (words, page, order(1, "declassify", "page"), order(2, "release", "page")):
        assert not pair.step(one)
    assert pair.verdict.decision == "reject"
