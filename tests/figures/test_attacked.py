"""The figure of the attacks behind the gate: what it is measured on, and that it comes out bad where something is let
through."""

import pytest

from memsluice.errors import StateError
from memsluice_lab.attacks.poison import Attack
from memsluice_lab.attacks.routes import ROUTES
from memsluice_lab.figures import attacked
from memsluice_lab.figures.attacked import Tenant, worst

NONE = dict.fromkeys(ROUTES, 0.0)
ALL = dict.fromkeys(Attack, 1.0)


def test_every_counted_route_can_make_it_bad() -> None:
    """Whatever one counted way in reaches is the figure; what needs the victim's name is told and not counted."""
    assert worst(ALL, NONE) == 0
    for route in ROUTES:
        assert worst(ALL, NONE | {route: 0.3}) == (0.3 if route.counted else 0)


def test_a_class_that_reaches_little_without_a_gate_does_not_count() -> None:
    """A class below .5 without a gate shows nothing by staying out; where no class counts nothing is measured."""
    one = next(route for route in ROUTES if route.attack is Attack.MINJA and route.counted)
    assert worst(ALL | {Attack.MINJA: 0.49}, NONE | {one: 0.3}) == 0
    with pytest.raises(StateError, match="without a gate"):
        worst(dict.fromkeys(Attack, 0.49), NONE)


def test_half_of_the_questions_were_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The past has the first writes and every second of the victims' questions; too short a stream is refused."""
    monkeypatch.setattr(attacked, "HONEST", 3)
    monkeypatch.setattr(attacked, "ASKED", 4)
    lines = [
        {"kind": kind, "text": f"{kind} {number}"}
        for number in range(5)
        for kind in ("query", "query", "write", "observe")
    ]
    for number, line in enumerate(lines):
        line["text"] = f"{line['kind']} {number}"
    tenant = Tenant.of(lines)
    asked = {line["text"] for line in tenant.past if line["kind"] == "query"}
    assert tenant.texts == ["write 2", "write 6", "write 10"]
    assert [question in asked for question in tenant.questions] == [True, False, True, False]
    with pytest.raises(StateError, match="too few"):
        Tenant.of(lines[:8])
